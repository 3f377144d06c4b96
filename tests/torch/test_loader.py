"""PyTorch's own loader on every file we write, its generators against our templates, both verdicts on bad files."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")
from lists import (
    FORMS,
    ROOT,
    TEMPLATES,
    Form,
    Sizes,
    export,
    leaves,
    load,
    parse,
    refusal,
    tessera,
    torch_runtime,
    verdict_as_torch,
)
from torch.distributed.pipelining import schedules

# The chunks of a template that fixes their number stand over v, and n counts where there are groups.
SIZES = [
    Sizes(1, 2, 3),
    Sizes(2, 2, 4),
    Sizes(2, 2, 7, 7),
    Sizes(3, 3, 6),
    Sizes(4, 2, 8),
    Sizes(4, 3, 13, 13),
    Sizes(8, 4, 20, 10),
    Sizes(16, 2, 40, 20),
]


def sizes_for(template: str, sizes: Sizes) -> Sizes:
    group = sizes.n if template.startswith("interleaved") else None
    return Sizes(sizes.p, TEMPLATES[template] or sizes.v, sizes.m, group)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("template", TEMPLATES)
def test_torch_loads_what_we_write_and_we_accept_what_it_makes_of_it(
    template: str, sizes: Sizes, tmp_path: Path
) -> None:
    sizes = sizes_for(template, sizes)
    stages = sizes.p * sizes.v
    for form in FORMS:
        text = export(template, sizes, form)
        runtime = load(text, form, tmp_path / "ours.csv", sizes)
        assert len(runtime.stage_index_to_group_rank) == stages
        cells = sum(len(leaves(action)) for row in parse(text) for action in row if action.is_compute_op)
        assert 2 * stages * sizes.m <= cells <= 3 * stages * sizes.m
        # The runtime keeps losses in the order in which they come and reads them by microbatch.
        ends = [
            part.microbatch_index
            for row in parse(text)
            for action in row
            for part in leaves(action)
            if part.stage_index == stages - 1 and part.computation_type == schedules.F
        ]
        assert ends == list(range(sizes.m))
        lowered = tmp_path / "lowered.csv"
        runtime._dump_csv(str(lowered))
        if form == "compute_comms":
            assert lowered.read_text(encoding="utf-8").splitlines() == text.splitlines()
            simulate(text, runtime, stages)
        checked = tessera("check", str(lowered))
        assert checked.returncode == 0, checked.stderr
        assert "warning" not in checked.stdout


def simulate(text: str, runtime: Any, stages: int) -> None:
    """Torch's dry run; it raises at a deadlock. It knows neither pairs nor sharding."""
    unknown = (schedules.UNSHARD, schedules.RESHARD, schedules.REDUCE_GRAD)
    rows = {
        rank: [part for action in row for part in leaves(action) if part.computation_type not in unknown]
        for rank, row in enumerate(parse(text))
    }
    schedules._simulate_comms_compute(rows, lambda stage: runtime.stage_index_to_group_rank[stage], stages)


@pytest.mark.parametrize("sizes", [Sizes(2, 2, 4), Sizes(3, 2, 9), Sizes(4, 3, 12), Sizes(8, 2, 16)], ids=str)
@pytest.mark.parametrize(
    ("template", "generator"),
    [
        ("gpipe", "ScheduleGPipe"),
        ("1f1b", "Schedule1F1B"),
        ("interleaved", "ScheduleInterleaved1F1B"),
        ("interleaved-zb", "ScheduleInterleavedZeroBubble"),
        ("looped-bfs", "ScheduleLoopedBFS"),
        ("zb-v-torch", "ScheduleZBVZeroBubble"),
        ("dualpipe-v", "ScheduleDualPipeV"),
    ],
)
def test_our_template_is_torchs_own_schedule(template: str, generator: str, sizes: Sizes, tmp_path: Path) -> None:
    sizes = sizes_for(template, sizes)
    stage = SimpleNamespace(num_stages=sizes.p * sizes.v, group_size=sizes.p, group_rank=0, submod=None)
    make = getattr(schedules, generator)
    if sizes.v == 1:
        order = make(stage, sizes.m, loss_fn=max)._get_pipeline_order()
    else:
        stages = [stage for _ in range(sizes.v)]
        order = (make(stages, sizes.m, loss_fn=max)).pipeline_order
    theirs = [
        [action for action in order[rank] if action is not None and action.computation_type != schedules.REDUCE_GRAD]
        for rank in range(sizes.p)
    ]
    ours = parse(export(template, sizes, "compute_only"))
    if template == "1f1b":
        # Torch lists the forwards of the last rank as 1 … m, though it runs 0 … m − 1; the list does not load.
        listed = {rank: list(row) for rank, row in enumerate(theirs)}
        with pytest.raises(AssertionError, match="without first running Forward"):
            torch_runtime(sizes.p, sizes.p, sizes.m)._prepare_schedule_with_comms(listed)
        theirs[-1] = [
            action._replace(microbatch_index=action.microbatch_index - 1)
            if action.computation_type == schedules.F
            else action
            for action in theirs[-1]
        ]
    assert ours == theirs


@pytest.mark.parametrize("case", json.loads(
    (ROOT / "tests/data/schedules/csv/torch_csv_validation.json").read_text(encoding="utf-8"))["cases"],
    ids=lambda case: case["case"])  # fmt: skip
def test_the_recorded_verdicts_are_the_loaders(case: dict[str, Any], tmp_path: Path) -> None:
    form: Form = case.get("format", "compute_only")
    file = tmp_path / "case.csv"
    file.write_text(case["csv"] + "\n", encoding="utf-8")
    runtime = torch_runtime(case["ranks"], case["stages"], case["microbatches"])
    try:
        runtime._load_csv(str(file), format=form)
        accepted = True
    except Exception:
        accepted = False
    assert accepted == case["torch_accepts"]


TWO_BY_TWO = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
COMMS = (
    "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
    "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n"
)


# The rows of the table in docs/formats.md: what the file is like, torch's verdict, ours.
@pytest.mark.parametrize(
    ("text", "torch", "ours"),
    [
        pytest.param(TWO_BY_TWO, True, True, id="sound"),
        pytest.param(COMMS, True, True, id="sound with communication"),
        pytest.param("0F0,,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", True, True, id="idle cells, compute only"),
        pytest.param(COMMS.replace("0F0,", "0F0,,"), False, True, id="idle cells beside communication"),
        pytest.param("0F0,0B0,0W0,0F1,0BW1\n1F0,1BW0,1F1,1BW1\n", False, True, id="letters of 2024"),
        pytest.param(TWO_BY_TWO.replace("0F1", "0F1junk"), True, False, id="text after a cell"),
        pytest.param(TWO_BY_TWO.replace("0F1", "0F1,0F1"), True, False, id="an action twice"),
        pytest.param(TWO_BY_TWO.replace("0F1", "0F1,()OVERLAP_F_B"), True, False, id="an empty pair"),
        pytest.param(TWO_BY_TWO.replace("0F1,0B0", "(0F1)OVERLAP_F_B,0B0"), True, False, id="a pair of one"),
        pytest.param(COMMS.replace("0SEND_F0,", ""), True, False, id="a message never sent"),
        pytest.param(COMMS.replace("0F0,0SEND_F0", "0SEND_F0,0F0"), True, False, id="sent before it is made"),
        pytest.param(COMMS.replace("0UNSHARD,", ""), True, False, id="weights never gathered"),
        pytest.param(COMMS.replace(",0REDUCE_GRAD", ""), True, False, id="gradients of one stage never reduced"),
        pytest.param(TWO_BY_TWO.replace("0F1,0B0", "0B0,0F1").replace("1F0,1B0,1F1", "1F1,1F0,1B0"), False, False,
                     id="a circle"),
        pytest.param(TWO_BY_TWO.replace("0F0,", ""), False, False, id="an action missing"),
    ],
)  # fmt: skip
def test_where_torch_and_we_differ(text: str, torch: bool, ours: bool, tmp_path: Path) -> None:
    file = tmp_path / "case.csv"
    form: Form = "compute_comms" if "SEND" in text or "RECV" in text else "compute_only"
    assert (refusal(text, form, file) is None) == torch
    assert verdict_as_torch(file)[0] == torch
    assert (tessera("check", str(file)).returncode == 0) == ours


def mutant(text: str, pick: random.Random) -> str:
    """The text with one cell or row damaged, as by a slip of the hand."""
    rows = [line.split(",") for line in text.splitlines()]
    row = pick.choice(rows)
    at = pick.randrange(len(row))
    other = pick.randrange(len(row))
    match pick.randrange(11):
        case 0:
            row[at], row[other] = row[other], row[at]
        case 1:
            del row[at]
        case 2:
            row.insert(other, row[at])
        case 3:
            pick.choice(rows).insert(0, row.pop(at))
        case 4:
            row[at] = row[at].replace(pick.choice("FBIW"), pick.choice("FBIW"))
        case 5:
            row[at] = re.sub(r"\d", str(pick.randrange(6)), row[at], count=1)
        case 6:
            row[at] += pick.choice(("junk", " ", "0", ";"))
        case 7:
            row.insert(
                at, pick.choice(("", " ", "()OVERLAP_F_B", "x", "(0F0)OVERLAP_F_B", "(0F0;0B0)", "0REDUCE_GRAD7"))
            )
        case 8:
            row[at] = f"({row[at]};{row[other]})OVERLAP_F_B"
        case 9:
            row[at] = row[at].strip("(").split(")")[0][:-1]
        case 10:
            rows.remove(row) if len(rows) > 1 else rows.append(row)
    return "\n".join(",".join(row) for row in rows) + pick.choice(("\n", "", "\n\n"))


@pytest.mark.parametrize("template", ["1f1b", "interleaved", "interleaved-overlap", "zb-v", "dualpipe-v"])
def test_as_torch_says_of_damaged_files_what_torch_says(template: str, tmp_path: Path) -> None:
    pick = random.Random(template)
    sound = [export(template, sizes_for(template, Sizes(2, 2, 4)), form) for form in FORMS]
    file = tmp_path / "mutant.csv"
    verdicts = set()
    for _ in range(150):
        text = mutant(pick.choice(sound), pick)
        form: Form = "compute_comms" if re.search("SEND|RECV|SHARD|REDUCE", text) else "compute_only"
        refused = refusal(text, form, file)
        accepted, reason = verdict_as_torch(file)
        assert accepted == (refused is None), f"{text}\n{refused}\n{reason}"
        if refused:
            assert reason.split(":")[0] == refused.split(":")[0], text
        verdicts.add(accepted)
        # We take nothing that torch refuses, but for idle cells beside communication.
        if refused and "Expected action to be not None" not in refused:
            assert tessera("check", str(file)).returncode != 0, text
    assert verdicts == {True, False}
