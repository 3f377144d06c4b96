"""`_PipelineScheduleRuntime` trains a small model on two processes from our files, as one process does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
import model
import torch
from lists import FORMS, TEMPLATES, Sizes, export, leaves, parse, tessera

RANKS = 2
LONGEST_SECONDS = 120
# Where a stage adds up its microbatches out of their order, the last bits of the sum differ; else nothing may.
RELATIVE, ABSOLUTE = 1e-12, 1e-15
SWAPPED = "swapped"


def run_ranks(cases: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """Run the cases on RANKS processes; each is killed when the other fails or the time is over."""
    listed = folder / "cases.json"
    listed.write_text(json.dumps(cases), encoding="utf-8")
    results = [folder / f"rank{rank}.pt" for rank in range(RANKS)]
    logs = [folder / f"rank{rank}.log" for rank in range(RANKS)]
    script = str(Path(__file__).with_name("rank.py"))
    ranks: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(RANKS):
            arguments = [str(rank), str(RANKS), str(folder / "store"), str(listed), str(results[rank])]
            with logs[rank].open("wb") as log:
                ranks.append(
                    subprocess.Popen([sys.executable, script, *arguments], stderr=log, stdout=log, env=dict(os.environ))
                )
        end = time.monotonic() + LONGEST_SECONDS
        while any(process.poll() is None for process in ranks) and time.monotonic() < end:
            if any(process.poll() for process in ranks):
                break
            time.sleep(0.05)
    finally:
        codes = [process.poll() for process in ranks]
        for process in ranks:
            process.kill()
            process.wait()
    tails = "\n".join(f"rank {rank}:\n" + log.read_text(encoding="utf-8")[-3000:] for rank, log in enumerate(logs))
    assert codes == [0] * RANKS, f"exit codes {codes}\n{tails}"
    return [torch.load(result, weights_only=True) for result in results]


def case(name: str, text: str, form: str, sizes: Sizes, sharded: bool, folder: Path) -> dict[str, Any]:
    file = folder / f"{name}.csv"
    file.write_text(text, encoding="utf-8")
    return {
        "name": name,
        "file": str(file),
        "form": form,
        "stages": sizes.p * sizes.v,
        "microbatches": sizes.m,
        "sharded": sharded,
    }


def swapped_messages(text: str) -> str:
    """GPipe with its first two activations sent in the other order."""
    sends = "0SEND_F0,0F1,0SEND_F1"
    assert sends in text
    return text.replace(sends, "0F1,0SEND_F1,0SEND_F0")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """All cases by name, and what each rank made of them. One pair of processes runs them all."""
    folder = tmp_path_factory.mktemp("runtime")
    cases = []
    for template, chunks in TEMPLATES.items():
        for form in FORMS:
            # With FSDP, over a group of one, the weight gathers of the file count too.
            for sharded, m in ((False, 6), (True, 5)):
                grouped = template.startswith("interleaved")
                sizes = Sizes(RANKS, chunks or 2, m, m if grouped else None)
                name = name_of(template, form, sharded)
                cases.append(case(name, export(template, sizes, form), form, sizes, sharded, folder))
    sizes = Sizes(RANKS, 1, 4)
    text = swapped_messages(export("gpipe", sizes, "compute_comms"))
    cases.append(case(SWAPPED, text, "compute_comms", sizes, False, folder))
    return {each["name"]: each for each in cases}, run_ranks(cases, folder)


def name_of(template: str, form: str, sharded: bool) -> str:
    return f"{template}-{form}" + ("-sharded" if sharded else "")


def outcome(name: str, ranks: list[dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
    losses = [rank[name]["losses"] for rank in ranks if rank[name]["losses"] is not None]
    assert len(losses) == 1
    gradients: dict[str, Any] = {}
    for rank in ranks:
        assert not gradients.keys() & rank[name]["gradients"].keys()
        gradients |= rank[name]["gradients"]
    return losses[0], gradients


def adds_up_in_order(text: str) -> bool:
    """Whether every stage makes its weight gradients microbatch by microbatch."""
    last: dict[int, int] = {}
    for row in parse(text):
        for part in (part for action in row for part in leaves(action)):
            if part.computation_type.value in ("B", "W"):
                if part.microbatch_index < last.get(part.stage_index, 0):
                    return False
                last[part.stage_index] = part.microbatch_index
    return True


@pytest.mark.parametrize("sharded", [False, True], ids=["plain", "sharded"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_two_processes_train_as_one(
    template: str, form: str, sharded: bool, ran: tuple[dict[str, Any], list[dict[str, Any]]]
) -> None:
    cases, ranks = ran
    name = name_of(template, form, sharded)
    losses, gradients = outcome(name, ranks)
    wanted_losses, wanted = model.one_process(cases[name]["stages"], cases[name]["microbatches"])
    assert torch.equal(losses, wanted_losses)
    assert gradients.keys() == wanted.keys()
    in_order = adds_up_in_order(Path(cases[name]["file"]).read_text(encoding="utf-8"))
    assert in_order == (template != "looped-bfs")
    for parameter, gradient in wanted.items():
        assert gradient.abs().max() > 0
        if in_order:
            assert torch.equal(gradients[parameter], gradient), parameter
        else:
            torch.testing.assert_close(gradients[parameter], gradient, rtol=RELATIVE, atol=ABSOLUTE)


def test_torch_hands_over_the_wrong_tensor_where_messages_change_places(
    ran: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    cases, ranks = ran
    losses, gradients = outcome(SWAPPED, ranks)
    wanted_losses, wanted = model.one_process(cases[SWAPPED]["stages"], cases[SWAPPED]["microbatches"])
    assert not torch.equal(losses, wanted_losses)
    assert not torch.allclose(gradients["0.0.weight"], wanted["0.0.weight"])
    # Torch loads and runs it; our check is the one that speaks up.
    checked = tessera("check", cases[SWAPPED]["file"])
    assert "is received in another order than it is sent" in " ".join(checked.stdout.split())
