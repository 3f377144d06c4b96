"""The profile database from the command line: ask what to measure, add it, plan with it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from conftest import Run
from test_cli import expect_golden

JOB = "examples/qwen3-next-80b.yaml"


def cells(report: dict[str, Any], factor: float) -> list[dict[str, Any]]:
    keys = ("mesh", "pair", "schedule", "software")
    return [
        {key: pair[key] for key in keys} | {"median_ms": factor * pair["composed_ms"], "count": 50}
        for pair in report["to_measure"]
    ]


def test_what_to_measure_is_what_the_golden_text_says(tessera: Run, tmp_path: Path) -> None:
    result = tessera("plan", JOB, "--to-measure")
    assert result.returncode == 0, result.stderr
    expect_golden(result.stdout, "to-measure-qwen3-next-80b.txt")
    assert not (tmp_path / "plan.yaml").exists()


def test_measured_pairs_come_back_in_the_plan(tessera: Run, tmp_path: Path) -> None:
    before = json.loads(tessera("plan", JOB, "--to-measure", "--json").stdout)
    assert not before["certain"] and 0 < len(before["to_measure"]) <= before["distinct_pairs"]
    first = before["to_measure"][0]
    assert len(first["launch_order"]) == len(set(map(str, first["launch_order"]))) > 0
    (tmp_path / "cells.json").write_text(json.dumps(cells(before, 1.1)), encoding="utf-8")
    added = tessera("profile", "add", "profile.db", "cells.json")
    assert added.returncode == 0, added.stderr
    assert added.stdout == f"profile.db: {len(before['to_measure'])} values added, 0 replaced\n"
    after = json.loads(tessera("plan", JOB, "--to-measure", "--json", "--profile", "profile.db").stdout)
    assert after["measured_pairs"] == len(before["to_measure"])
    known = {(pair["pair"], pair["schedule"]) for pair in before["to_measure"]}
    assert not known & {(pair["pair"], pair["schedule"]) for pair in after["to_measure"]}

    flags = ("--set", "schedule.partition=overlap-aware", "--json", "--no-trace")
    plain = json.loads(tessera("plan", JOB, *flags, "-o", "plain.yaml").stdout)
    measured = json.loads(tessera("plan", JOB, *flags, "--profile", "profile.db").stdout)
    assert plain["cost_sources"]["measured pair"]["values"] == 0
    assert measured["cost_sources"]["measured pair"]["values"] > 0
    assert measured["plan"]["iteration_seconds"] > plain["plan"]["iteration_seconds"]
    # The plan file keeps it.
    again = json.loads(tessera("simulate", "plan.yaml", "--json").stdout)
    assert again["plan"] == measured["plan"]
    assert tessera("check", "plan.yaml").returncode == 0
    assert "measured: [" not in (tmp_path / "plain.yaml").read_text(encoding="utf-8")


def test_the_job_file_can_name_the_profile(tessera: Run, tmp_path: Path) -> None:
    report = json.loads(tessera("plan", JOB, "--to-measure", "--json").stdout)
    (tmp_path / "cells.json").write_text(json.dumps(cells(report, 1.1)), encoding="utf-8")
    (tmp_path / "run").mkdir()
    assert tessera("profile", "add", "run/profile.db", "cells.json").returncode == 0
    text = (tmp_path / JOB).read_text(encoding="utf-8")
    (tmp_path / "run" / "job.yaml").write_text(text + "cost: {profile: profile.db}\n", encoding="utf-8")
    by_job = tessera("plan", "run/job.yaml", "--json", "--no-trace")
    assert by_job.returncode == 0, by_job.stderr
    by_flag = tessera("plan", JOB, "--json", "--no-trace", "--profile", "run/profile.db")
    assert json.loads(by_job.stdout)["plan"] == json.loads(by_flag.stdout)["plan"]


def test_a_list_can_be_added_again(tessera: Run, tmp_path: Path) -> None:
    assert tessera("profile", "add", "a.db", "examples/profile-cells.yaml").returncode == 0
    listed = tessera("profile", "list", "a.db", "--json").stdout
    (tmp_path / "list.json").write_text(listed, encoding="utf-8")
    assert tessera("profile", "add", "b.db", "list.json").returncode == 0
    assert tessera("profile", "list", "b.db", "--json").stdout == listed
    assert "1 replaced" in tessera("profile", "add", "b.db", "list.json").stdout
    expect_golden(tessera("profile", "list", "b.db").stdout, "profile-list.txt")


def test_many_programs_add_at_once(tessera: Run, tmp_path: Path) -> None:
    def add(number: int) -> int:
        name = f"cells-{number}.json"
        cell = {"mesh": "m", "pair": f"p{number}", "schedule": "s", "software": "v", "median_ms": 1 + number}
        (tmp_path / name).write_text(json.dumps([cell]), encoding="utf-8")
        return tessera("profile", "add", "shared.db", name).returncode

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(add, range(24))) == {0}
    assert len(json.loads(tessera("profile", "list", "shared.db", "--json").stdout)) == 24
