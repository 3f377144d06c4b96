"""The commands on real models: what they print, what they write, and how they fail."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM, ROOT, Run, without_clock

GOLDEN = Path(__file__).parent / "golden"
PAIR = ("pair", "examples/qwen3-next-80b.yaml")
PAIR_1_1 = (*PAIR, "--forward", "1", "--backward", "1")


def expect_golden(text: str, name: str) -> None:
    path = GOLDEN / name
    if os.environ.get("TESSERA_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name}: tools/update_golden.sh rewrites it"


@pytest.mark.parametrize("job", ["qwen3-next-80b", "deepseek-v3"])
def test_plan_prints_what_the_golden_text_says(job: str, tessera: Run) -> None:
    result = tessera("plan", f"examples/{job}.yaml")
    assert result.returncode == 0, result.stderr
    expect_golden(result.stdout, f"plan-{job}.txt")


COMMANDS = [
    "",
    "import",
    "plan",
    "pair",
    "simulate",
    "check",
    "export",
    "schedules",
    "profile",
    "profile list",
    "profile add",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str, tessera: Run) -> None:
    result = tessera(*command.split(), "--help")
    assert result.returncode == 0
    expect_golden(result.stdout, f"help-{command.replace(' ', '-') or 'tessera'}.txt")
    assert "xample" in result.stdout


PAIRS = [
    ("examples/qwen3-next-80b.yaml", 3, 11, ()),
    ("examples/qwen3-next-80b.yaml", 7, 15, ("--width", "140")),
    ("examples/deepseek-v3.yaml", 7, 31, ()),
    ("examples/deepseek-v3.yaml", 0, 24, ("--pool-credit", "2")),
    ("examples/deepseek-v3.yaml", 9, 12, ("--width", "60")),
    ("examples/deepseek-v3.yaml", 0, 0, ()),
    ("examples/deepseek-v3.yaml", 30, 31, ()),
]


@pytest.mark.parametrize(("job", "forward", "backward", "more"), PAIRS)
def test_pair_prints_what_the_golden_text_says(
    job: str, forward: int, backward: int, more: tuple[str, ...], tessera: Run
) -> None:
    arguments = ("pair", job, "--forward", str(forward), "--backward", str(backward), *more)
    result = tessera(*arguments)
    assert result.returncode == 0, result.stderr
    expect_golden(without_clock(result.stdout), f"pair-{Path(job).stem}-{forward}-{backward}.txt")
    report = json.loads(tessera(*arguments, "--json").stdout)
    assert report["proved"] and report["gap"] == 0
    assert report["bound_seconds"] == report["optimum_seconds"] == min(m["makespan_seconds"] for m in report["methods"])
    assert report["order"]["interference_makespan_seconds"] >= report["bound_seconds"] > 0
    assert max(task["end_seconds"] for task in report["order"]["tasks"]) == report["order"]["makespan_seconds"]
    assert [m["method"] for m in report["methods"]][:6] == [
        "serial",
        "fifo",
        "align",
        "defer-literal",
        "defer",
        "exact",
    ]


def test_pair_of_a_plan_file_is_that_of_its_job(tessera: Run) -> None:
    job = "examples/qwen3-next-80b.yaml"
    assert tessera("plan", job, "--no-trace").returncode == 0
    texts = [
        without_clock(tessera("pair", file, "--forward", "14", "--backward", "6").stdout) for file in (job, "plan.yaml")
    ]
    assert texts[0] == texts[1] and "the plan" in texts[0]


def test_pair_solves_by_milp_too(tessera: Run) -> None:
    arguments = ("examples/deepseek-v3.yaml", "--forward", "7", "--backward", "31", "--ilp")
    text = tessera("pair", *arguments).stdout
    assert "ILP (HiGHS): optimal in " in text
    methods = {m["method"]: m for m in json.loads(tessera("pair", *arguments, "--json").stdout)["methods"]}
    assert methods["ilp"]["makespan_seconds"] == pytest.approx(methods["exact"]["makespan_seconds"], rel=1e-9)


def test_import_prints_the_published_counts(tessera: Run) -> None:
    result = tessera("import", "data/models/DeepSeek-V3.json")
    assert result.returncode == 0, result.stderr
    expect_golden(result.stdout, "import-deepseek-v3.txt")
    counts = json.loads(tessera("import", "data/models/DeepSeek-V3.json", "--json").stdout)
    assert counts["parameters"]["total"] == 671_026_419_200
    assert counts["parameters"]["active"] == 37_552_297_472


def test_plan_json_and_files_agree(tessera: Run, tmp_path: Path) -> None:
    report = json.loads(tessera("plan", "examples/qwen3-next-80b.yaml", "--json").stdout)
    plan = report["plan"]
    assert plan["iteration_seconds"] >= plan["lower_bound_seconds"] > 0
    assert plan["iteration_seconds"] < report["baseline"]["iteration_seconds"]
    tokens = 1024 * 4096 / 128 / plan["iteration_seconds"]
    assert math.isclose(tokens, plan["tokens_per_second_per_gpu"], rel_tol=1e-9)
    assert sum(source["share"] for source in report["cost_sources"].values()) == pytest.approx(1)
    layers = [layer for stage in report["partition"] for layer in stage["layers"]]
    assert layers == list(range(48))
    again = json.loads(tessera("simulate", "plan.yaml", "--json").stdout)
    assert again["plan"] == plan
    assert tessera("check", "plan.yaml").returncode == 0


def test_the_trace_is_what_perfetto_reads(tessera: Run, tmp_path: Path) -> None:
    assert tessera("plan", "examples/qwen3-next-80b.yaml", "--microbatches", "16").returncode == 0
    trace = json.loads((tmp_path / "plan.trace.json").read_text(encoding="utf-8"))
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "s", "f", "C"}
    # Slices of one lane nest: sorted by start, each ends before its parent does.
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X":
            start = round(event["ts"] * 1000)
            lanes.setdefault((event["pid"], event["tid"]), []).append((start, start + round(event["dur"] * 1000)))
    for lane, slices in lanes.items():
        open_ends: list[int] = []
        for start, end in sorted(slices, key=lambda slice_: (slice_[0], -slice_[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1], f"slices cross in lane {lane}"
            open_ends.append(end)
    # Every arrow has two ends, and its start lies in a slice of its lane.
    arrows = {event["id"] for event in events if event["ph"] == "s"}
    assert arrows and arrows == {event["id"] for event in events if event["ph"] == "f"}
    exported = tessera("export", "plan.yaml", "--chrome").stdout
    assert json.loads(exported) == trace


def test_megatron_layout_leaves_and_comes_back(tessera: Run, tmp_path: Path) -> None:
    assert tessera("plan", "examples/qwen3-next-80b.yaml").returncode == 0
    layout = tessera("export", "plan.yaml", "--to", "megatron").stdout.strip()
    assert layout.startswith("E") and layout.endswith("L") and layout.count("t") == 48 and layout.count("|") == 15
    first = json.loads(tessera("simulate", "plan.yaml", "--json").stdout)
    layout_key = f"schedule.megatron_layout={layout}"
    result = tessera("plan", "examples/qwen3-next-80b.yaml", "--set", layout_key, "-o", "b.yaml")
    assert result.returncode == 0, result.stderr
    assert json.loads(tessera("simulate", "b.yaml", "--json").stdout) == first


def test_the_plan_does_not_depend_on_data_parallel_copies(tessera: Run, tmp_path: Path) -> None:
    """Two worlds that differ by copies of the pipeline alone have the same pipeline in their plans."""
    texts = []
    for gpus in ("128", "512"):
        flags = ("--gpus", gpus, "--microbatches", "64")
        assert tessera("plan", "examples/qwen3-next-80b.yaml", *flags, "-o", f"{gpus}.yaml").returncode == 0
        text = (tmp_path / f"{gpus}.yaml").read_text(encoding="utf-8")
        texts.append(text[text.index("partition:") : text.index("step:")])
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "subcommand is required"),
        (("foo",), "there is no command foo"),
        (("plan", "examples/qwen3-next-80b.yaml", "--pp", "4", "--set", "layout.pp=8"), "layout.pp is given twice"),
        (("plan", "examples/qwen3-next-80b.yaml", "-o", "examples/qwen3-next-80b.yaml"), "would overwrite the input"),
        (("plan", "examples/qwen3-next-80b.yaml", "-o", "data/models/Qwen3-Next-80B-A3B.json"), "overwrite the input"),
        (("plan", "examples/qwen3-next-80b.yaml", "-o", "a.yaml", "--trace", "./a.yaml"), "two outputs"),
        (("plan", "examples/qwen3-next-80b.yaml", "-o", "/dev/null"), "is no regular file"),
        (("plan", "examples/qwen3-next-80b.yaml", "--trace", "no/folder/t.json"), "cannot be opened for writing"),
        (("plan",), "JOB is required"),
        (("plan", "missing.yaml"), "missing.yaml: no such file"),
        (("plan", "examples"), "examples: expected a file, found a directory"),
        (("plan", "examples/qwen3-next-80b.yaml", "--set", "layout"), "expected KEY=VALUE"),
        (("plan", "examples/qwen3-next-80b.yaml", "--pp", "7"), "examples/qwen3-next-80b.yaml"),
        (("plan", "examples/qwen3-next-80b.yaml", "--set", "layout.pp.x=7"), "layout.pp.x: cannot be set"),
        (("plan", "examples/qwen3-next-80b.yaml", "-o", "no/such/folder/plan.yaml"), "cannot be opened for writing"),
        ((*PAIR, "--backward", "1"), "--forward is required"),
        ((*PAIR, "--forward", "1"), "--backward is required"),
        ((*PAIR, "--forward", "16", "--backward", "1"), "--forward 16: expected a whole number, 0 … 15"),
        ((*PAIR, "--forward", "0", "--backward", "-1"), "--backward -1: expected a whole number, 0 … 15"),
        ((*PAIR, "--forward", "one", "--backward", "1"), "--forward one: expected a whole number"),
        ((*PAIR, "--forward", "1.5", "--backward", "1"), "--forward 1.5: expected a whole number"),
        (
            (*PAIR_1_1, "--pool-credit", "-2"),
            "--pool-credit -2: expected milliseconds",
        ),
        ((*PAIR_1_1, "--pool-credit", "nan"), "--pool-credit nan: expected"),
        (
            (*PAIR_1_1, "--width", "39"),
            "--width 39: expected a whole number, 40 … 1000",
        ),
        (
            (*PAIR_1_1, "--time-limit", "0"),
            "--time-limit 0: expected seconds, above 0",
        ),
        (
            (*PAIR_1_1, "--labels", "0"),
            "--labels 0: expected a whole number, at least 1",
        ),
        (("pair", "missing.yaml", "--forward", "1", "--backward", "1"), "missing.yaml: no such file"),
        (("plan", "examples/qwen3-next-80b.yaml", "--profile", "none.db"), "none.db: no such file"),
        (("plan", "examples/qwen3-next-80b.yaml", "--to-measure", "-o", "a.yaml"), "--output excludes --to-measure"),
        (("plan", "examples/qwen3-next-80b.yaml", "--to-measure", "--template", "interleaved"), "overlaps no forward"),
        (("profile",), "subcommand is required"),
        (("profile", "list", "none.db"), "none.db: no such file"),
        (("profile", "list", "examples/deepseek-v3.yaml"), "it is no SQLite file"),
        (("profile", "add", "new.db", "examples/deepseek-v3.yaml"), "examples/deepseek-v3.yaml:3: model: unknown key"),
        (("profile", "add", "examples/deepseek-v3.yaml", "examples/profile-cells.yaml"), "it is no SQLite file"),
        (("profile", "add", "no/folder/new.db", "examples/profile-cells.yaml"), "there is no folder"),
        (("simulate", "data/models/DeepSeek-V3.json"), "unknown key"),
        (("export", "examples/qwen3-next-80b.yaml", "--to", "gpipe"), "gpipe"),
    ],
)
def test_bad_input_exits_with_2(arguments: tuple[str, ...], message: str, tessera: Run, tmp_path: Path) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    result = tessera(*arguments)
    assert result.returncode == 2
    assert message in result.stderr + result.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == before, "nothing may be written"


def test_a_plan_that_does_not_fit_is_no_plan(tessera: Run, tmp_path: Path) -> None:
    result = tessera("plan", "examples/qwen3-next-80b.yaml", "--sequence", "131072")
    assert result.returncode == 1
    assert "NOT USABLE" in result.stdout
    assert not (tmp_path / "plan.yaml").exists()


def test_output_that_does_not_arrive_is_a_failure(tessera: Run) -> None:
    with Path("/dev/full").open("w") as full:
        command = [str(PROGRAM), "import", str(ROOT / "data" / "models" / "DeepSeek-V3.json")]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1
    assert "cannot be written" in result.stderr


def test_a_link_is_written_through(tessera: Run, tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text("old", encoding="utf-8")
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    assert tessera("plan", "examples/qwen3-next-80b.yaml", "-o", "link.yaml", "--no-trace").returncode == 0
    assert (tmp_path / "link.yaml").is_symlink()
    assert (tmp_path / "real.yaml").read_text(encoding="utf-8").startswith("tessera_plan")


def test_defaults_written_out_change_nothing(tessera: Run, tmp_path: Path) -> None:
    """A constant set to its default, or a cost that moves in its last digits, must not move the plan."""
    plain = json.loads(tessera("plan", "examples/qwen3-next-80b.yaml", "--json").stdout)
    for setting in ("cost.constants.memory_traffic=1.25", "cost.constants.host_per_sublayer_ms=2.0"):
        other = json.loads(tessera("plan", "examples/qwen3-next-80b.yaml", "--json", "--set", setting).stdout)
        assert other["partition"] == plain["partition"]
        assert other["plan"]["iteration_seconds"] == pytest.approx(plain["plan"]["iteration_seconds"], rel=1e-9)


def test_an_edited_plan_is_told_to_be_stale(tessera: Run, tmp_path: Path) -> None:
    assert tessera("plan", "examples/qwen3-next-80b.yaml", "--no-trace").returncode == 0
    plan = tmp_path / "plan.yaml"
    text = plan.read_text(encoding="utf-8")
    assert "stale" not in tessera("check", "plan.yaml").stdout
    plan.write_text(text.replace("predicted: {iteration: ", "predicted: {iteration: 1"), encoding="utf-8")
    assert "stale: The step takes" in tessera("check", "plan.yaml").stdout


def test_check_holds_a_job_to_its_memory(tessera: Run) -> None:
    result = tessera(
        "check", "examples/qwen3-next-80b.yaml", "--set", "cluster.memory_gb=40", "--set", "layout.recompute=none"
    )
    assert result.returncode == 1
    assert "the allocator retries" in result.stderr


def test_an_illegal_default_group_is_replaced_and_told(tessera: Run) -> None:
    result = tessera("plan", "examples/qwen3-next-80b.yaml", "--microbatches", "65", "--ignore-memory")
    assert result.returncode == 0, result.stderr
    assert "groups of 11 are used" in result.stdout


def test_a_failed_check_exits_with_1(tessera: Run, tmp_path: Path) -> None:
    assert tessera("plan", "examples/qwen3-next-80b.yaml").returncode == 0
    plan = tmp_path / "plan.yaml"
    text = plan.read_text(encoding="utf-8")
    broken = text.replace("0F0 0F1 ", "0F1 0F1 ", 1)
    assert broken != text
    plan.write_text(broken, encoding="utf-8")
    result = tessera("check", "plan.yaml")
    assert result.returncode == 1, result.stdout
    assert "0F1" in result.stderr
    assert tessera("simulate", "plan.yaml").returncode == 2


def test_the_repository_names_no_folder_of_this_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folder = str(ROOT.parent) + "/"
    if folder == "//":
        pytest.skip("the repository lies in the root folder")
    for name in listed.splitlines():
        assert folder.encode() not in (ROOT / name).read_bytes(), name
