"""What the README and the docs show must run, and the links must lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from conftest import ROOT, Run

DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
COMMAND = re.compile(r"^    (?:\$ )?(tessera [^\n]+)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)\)")


def commands(document: Path) -> list[str]:
    return COMMAND.findall(document.read_text(encoding="utf-8"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_runs(document: Path, tessera: Run) -> None:
    for command in commands(document):
        result = tessera(*shlex.split(command)[1:])
        assert result.returncode == 0, f"{command}\n{result.stderr}"
        assert result.stdout


def test_the_readme_shows_commands() -> None:
    assert len(commands(ROOT / "README.md")) >= 3


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target
