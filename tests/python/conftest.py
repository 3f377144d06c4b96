"""The command line as a user runs it: the built program, on files in a temporary folder."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "release" / "tessera"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def tessera(tmp_path: Path) -> Run:
    """Run `tessera ARGUMENTS` in an empty folder; paths below the repository may be given relative to it."""
    for name in ("examples", "data", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(PROGRAM), *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def without_clock(text: str) -> str:
    """The text of `tessera pair` without the solvers' wall clocks, which differ from run to run."""
    return re.sub(r"(proved in|optimal in|, after) [0-9.]+ m?s", r"\1 T", text)
