"""Schedules without a plan on the command line: files of torch, templates, the table of all templates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Run
from test_cli import expect_golden

CSV = "tests/data/schedules/csv/"


def test_schedules_prints_what_the_golden_text_says(tessera: Run) -> None:
    result = tessera("schedules", "-p", "4", "-v", "2", "-m", "12")
    assert result.returncode == 0, result.stderr
    expect_golden(result.stdout, "schedules-p4-v2-m12.txt")
    uneven = tessera("schedules", "-p", "3", "-v", "2", "-m", "4").stdout
    assert "not at these sizes:\n  dualpipe: " in uneven


def test_schedules_json_has_the_closed_forms(tessera: Run) -> None:
    report = json.loads(tessera("schedules", "-p", "4", "-v", "2", "-m", "8", "--json").stdout)
    rows = {row["template"]: row for row in report["templates"]}
    assert len(rows) == 16
    assert rows["1f1b"]["makespan"] == 33 and rows["1f1b"]["peak_live"] == 4
    assert rows["interleaved"]["makespan"] == (8 * 2 + 3) * 3 and rows["interleaved"]["peak_live"] == 11
    assert rows["zb-h1"]["makespan"] == 27 and rows["dualpipe-v"]["peak_live"] == 9
    costs = ("--forward", "10", "--input-gradient", "12", "--weight-gradient", "8", "--transfer", "1")
    costly = json.loads(tessera("schedules", "-p", "4", "-m", "8", *costs, "--json").stdout)
    assert {row["template"]: row for row in costly["templates"]}["1f1b"]["makespan"] == 346


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("pytorch-dualpipev-4rank-10mb.csv", "dualpipev"),
        ("pytorch-zb1p-2rank-2stage-8mb.comms-notation-B-BW.csv", "zb1p-2024"),
        ("torchtitan-4rank-8stage-6mb.csv", "torchtitan"),
    ],
)
def test_import_and_check_print_what_the_golden_text_says(file: str, name: str, tessera: Run) -> None:
    imported = tessera("import", "--schedule", CSV + file)
    checked = tessera("check", CSV + file)
    assert imported.returncode == 0 and checked.returncode == 0, imported.stderr + checked.stderr
    expect_golden(imported.stdout + checked.stdout, f"schedule-{name}.txt")
    assert json.loads(tessera("import", "--schedule", CSV + file, "--json").stdout)["unit_times"]["makespan"] > 0
    assert json.loads(tessera("check", CSV + file, "--json").stdout)["sound"] is True


@pytest.mark.parametrize("target", ["torch-csv", "torch-csv-comms"])
@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "interleaved-zb", "dualpipe-v"])
def test_what_is_exported_passes_both_checks(name: str, target: str, tessera: Run) -> None:
    vp = ("-v", "2") if name.startswith("interleaved") else ()
    result = tessera("export", "--template", name, "-p", "4", *vp, "-m", "8", "--to", target, "-o", "s.csv")
    assert result.returncode == 0, result.stderr
    assert tessera("check", "s.csv").returncode == 0
    assert tessera("check", "s.csv", "--as", "torch").returncode == 0


def test_a_template_is_exported_to_megatron_and_chrome(tessera: Run) -> None:
    sizes = ("-p", "4", "-v", "2", "-m", "10", "-n", "5")
    flags = tessera("export", "--template", "interleaved-overlap", *sizes, "--to", "megatron").stdout.splitlines()
    assert "--microbatch-group-size-per-virtual-pipeline-stage 5" in flags
    assert "--overlap-moe-expert-parallel-comm" in flags
    trace = json.loads(tessera("export", "--template", "1f1b", "-p", "2", "-m", "3", "--to", "chrome").stdout)
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(slices) == 12
    assert max(event["ts"] + event["dur"] for event in slices) == 12_000
    assert sum(event["ph"] == "s" for event in trace["traceEvents"]) == 6


def test_a_plan_is_exported_to_torch_and_torchtitan(tessera: Run, tmp_path: Path) -> None:
    job = "examples/qwen3-next-80b.yaml"
    assert tessera("export", job, "--to", "torchtitan", "-o", "titan.toml").stdout == "wrote titan.toml, titan.csv\n"
    settings = (tmp_path / "titan.toml").read_text(encoding="utf-8")
    assert 'pipeline_parallel_schedule_csv = "titan.csv"' in settings
    modules = json.loads(settings.rsplit(" = ", 1)[1])
    flat = [module for stage in modules for module in stage]
    assert flat == ["tok_embeddings", *(f"layers.{i}" for i in range(48)), "norm", "lm_head"]
    assert tessera("check", "titan.csv").returncode == 0
    assert tessera("export", job, "--to", "torch-csv").stdout == (tmp_path / "titan.csv").read_text(encoding="utf-8")
    assert tessera("export", job, "--to", "torch-csv-comms", "-o", "comms.csv").returncode == 0
    assert tessera("check", "comms.csv", "--as", "torch").returncode == 0


def test_torch_and_we_differ_where_torch_is_lenient(tessera: Run, tmp_path: Path) -> None:
    (tmp_path / "twice.csv").write_text("0F0,0F0,0B0\n1F0,1B0\n", encoding="utf-8")
    ours = tessera("check", "twice.csv")
    assert ours.returncode == 1
    assert "twice.csv: 0F0, action 1 of rank 0, is the second forward of stage 0 for microbatch 0" in ours.stderr
    assert tessera("check", "twice.csv", "--as", "torch").returncode == 0
    (tmp_path / "early.csv").write_text("0B0,0F0\n1F0,1B0\n", encoding="utf-8")
    torch = tessera("check", "early.csv", "--as", "torch")
    assert torch.returncode == 1
    assert "Running Full Backward for stage 0, microbatch 0 without first running Forward" in torch.stdout
    assert json.loads(tessera("check", "early.csv", "--as", "torch", "--json").stdout)["accepted"] is False


def test_a_schedule_is_held_to_a_placement(tessera: Run) -> None:
    assert tessera("export", "--template", "zb-v", "-p", "4", "-m", "8", "--to", "torch-csv", "-o", "s.csv").stdout
    assert tessera("check", "s.csv", "--placement", "v").returncode == 0
    loop = tessera("check", "s.csv", "--placement", "loop")
    assert loop.returncode == 1
    assert "rank 1 runs stages 1 and 6, but holds 1 and 5" in loop.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export",), "nothing to export: expected FILE, or --template with -p and -m"),
        (("export", "--template", "interleaved", "-p", "4"), "nothing to export"),
        (("export", "--template", "zb-x", "-p", "4", "-m", "8"), "zb-x"),
        (("export", "--template", "zb-v", "-p", "4", "-m", "8", "--to", "megatron"), "has no schedule like zb-v"),
        (("export", "--template", "1f1b", "-p", "4", "-m", "8", "--to", "torchtitan"), "needs a plan"),
        (("export", "--template", "dualpipe", "-p", "4", "-m", "8", "--to", "torch-csv"), "2 pipelines side by side"),
        (("export", "--template", "1f1b", "-p", "0", "-m", "8"), "--pp 0: expected a whole number"),
        (("export", "--template", "1f1b", "-p", "60000", "-m", "60000"), "are more than"),
        (("export", "--template", "1f1b", "-p", "4", "-m", "8", "--tp", "2"), "layout.tp belongs to a job"),
        (("export", "examples/deepseek-v3.yaml", "--to", "torchtitan"), "no module for multi-token prediction"),
        (("schedules", "-p", "4", "-m", "x"), "--microbatches x: expected a whole number"),
        (("schedules", "-p", "4", "-m", "8", "--forward", "-1"), "--forward -1: expected 0"),
        (("check", CSV + "torchtitan-4rank-8stage-6mb.csv", "--pp", "4"), "flags stand over a job file only"),
        (("check", "examples/qwen3-next-80b.yaml", "--as", "torch"), "expected a schedule in CSV"),
        (("check", "missing.csv"), "missing.csv: no such file"),
        (("import", "--schedule", "data/models/DeepSeek-V3.json"), "DeepSeek-V3.json:1: cell 1: "),
    ],
)
def test_bad_input_exits_with_2(arguments: tuple[str, ...], message: str, tessera: Run) -> None:
    result = tessera(*arguments)
    assert result.returncode == 2, result.stdout
    assert message in result.stderr
