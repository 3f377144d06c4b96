#!/usr/bin/env python3
"""Holds every #include to the house's arrows, which include/README.md lists.

A room may include itself and the rooms its line names; nothing may include an app, a test or a bench; a file of
include/ may include only public headers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULE = re.compile(r"^\s{4}(\S+)\s+(?:->|→)\s*(.*)$")
INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


def read_rules() -> dict[str, set[str]]:
    """Rooms and what each may include, written out (an arrow reaches through the rooms below it)."""
    direct: dict[str, list[str]] = {}
    for line in (ROOT / "include" / "README.md").read_text(encoding="utf-8").splitlines():
        if match := RULE.match(line):
            direct[match[1]] = match[2].split()
    reach: dict[str, set[str]] = {}
    for room, below in direct.items():
        reach[room] = {room}
        for other in below:
            if other not in reach:
                sys.exit(f"include/README.md: {room} points at {other}, which is not above it in the list")
            reach[room] |= reach[other]
    return reach


def room_of(path: str, rooms: dict[str, set[str]]) -> str | None:
    return next((room for room in rooms if path.startswith(room + "/")), None)


def main() -> int:
    rooms = read_rules()
    faults: list[str] = []
    files = [
        p for top in ("include/tessera", "src") for p in sorted((ROOT / top).rglob("*")) if p.suffix in (".h", ".cc")
    ]
    for path in files:
        public = path.is_relative_to(ROOT / "include")
        relative = path.relative_to(ROOT / ("include/tessera" if public else "src")).as_posix()
        room = room_of(relative, rooms)
        if room is None:
            faults.append(f"{path.relative_to(ROOT)}: lies in no room that include/README.md lists")
            continue
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if target.startswith("tessera/"):
                other = room_of(target.removeprefix("tessera/"), rooms)
                if other is None:
                    faults.append(f"{path.relative_to(ROOT)}: includes {target}, which lies in no room")
                elif other not in rooms[room]:
                    faults.append(f"{path.relative_to(ROOT)}: {room} must not include {other} ({target})")
            elif public:
                faults.append(f"{path.relative_to(ROOT)}: a public header includes the private {target}")
            elif not (path.parent / target).exists():
                faults.append(f"{path.relative_to(ROOT)}: a private header of another room: {target}")
    for fault in faults:
        print(fault)
    print(f"{len(files)} files, {len(rooms)} rooms, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
