"""What the README and the docs show must run, and the links must lead somewhere."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest
from conftest import ROOT, Run, without_clock

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


def shown(document: Path) -> list[tuple[str, str]]:
    """Commands after a `$`, each with the output that stands below it."""
    found = []
    lines = document.read_text(encoding="utf-8").splitlines()
    for at, line in enumerate(lines):
        if not line.startswith("    $ tessera "):
            continue
        output = list(itertools.takewhile(lambda text: not text or text.startswith("    "), lines[at + 1 :]))
        found.append((line.removeprefix("    $ "), "\n".join(text[4:] for text in output).strip("\n") + "\n"))
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_outputs_shown_are_what_is_printed(document: Path, tessera: Run) -> None:
    for command, output in shown(document):
        result = tessera(*shlex.split(command)[1:])
        assert without_clock(result.stdout) == without_clock(output), command


def test_the_readme_shows_an_output() -> None:
    assert shown(ROOT / "README.md")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target
