"""Schedules as files, from the built program, and PyTorch's loader for them without any process group."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from torch.distributed.pipelining import schedules

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = ROOT / "build" / "release" / "tessera"

Form = Literal["compute_only", "compute_comms"]
FORMS: tuple[Form, ...] = ("compute_only", "compute_comms")

# Chunks per rank; 0 = any number of two or more. DualPipe holds each stage twice, which no CSV can say.
TEMPLATES = {
    "gpipe": 1,
    "1f1b": 1,
    "1f1b-overlap": 1,
    "zb-h1": 1,
    "zb-h2": 1,
    "interleaved": 0,
    "interleaved-overlap": 0,
    "interleaved-zb": 0,
    "looped-bfs": 0,
    "1f1b-v": 2,
    "zb-v": 2,
    "zb-v-torch": 2,
    "v-half": 2,
    "v-min": 2,
    "dualpipe-v": 2,
}


@dataclass(frozen=True)
class Sizes:
    """Ranks, chunks per rank, microbatches, and microbatches per group where the template has groups."""

    p: int
    v: int
    m: int
    n: int | None = None

    def __str__(self) -> str:
        return f"p{self.p}-v{self.v}-m{self.m}" + (f"-n{self.n}" if self.n else "")


def tessera(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(PROGRAM), *arguments], capture_output=True, text=True, timeout=60, check=False)


def export(template: str, sizes: Sizes, form: Form) -> str:
    """The CSV of a template."""
    chunks = ["-v", str(sizes.v)] if TEMPLATES[template] == 0 else []
    group = ["-n", str(sizes.n)] if sizes.n else []
    target = "torch-csv" if form == "compute_only" else "torch-csv-comms"
    done = tessera(
        "export", "--template", template, "-p", str(sizes.p), *chunks, "-m", str(sizes.m), *group, "--to", target
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def torch_runtime(ranks: int, stages: int, microbatches: int) -> Any:
    """`_PipelineScheduleRuntime` on rank 0. Loading looks at no more of a stage than its numbers."""
    stage = SimpleNamespace(num_stages=stages, group_size=ranks, group_rank=0)
    return schedules._PipelineScheduleRuntime([stage], microbatches, loss_fn=None)


def parse(text: str) -> list[list[Any]]:
    """Rows of torch's own actions, without idle cells."""
    rows = [[schedules._Action.from_str(cell) for cell in line.split(",")] for line in text.splitlines()]
    return [[action for action in row if action is not None] for row in rows]


def leaves(action: Any) -> tuple[Any, ...]:
    """The two passes of a pair, or the action itself."""
    return action.sub_actions or (action,)


def load(text: str, form: Form, file: Path, sizes: Sizes) -> Any:
    """Load a text into torch as a user does, from a file; raises what torch raises."""
    file.write_text(text, encoding="utf-8")
    runtime = torch_runtime(sizes.p, sizes.p * sizes.v, sizes.m)
    runtime._load_csv(str(file), format=form)
    return runtime


def refusal(text: str, form: Form, file: Path) -> str | None:
    """The exception of torch's loader, made for the ranks, stages and microbatches that the text names."""
    file.write_text(text, encoding="utf-8")
    try:
        parts = [part for row in parse(text) for action in row for part in leaves(action)]
        stages = max((part.stage_index + 1 for part in parts), default=0)
        forwards = {a.microbatch_index for a in parts if a.stage_index == 0 and a.computation_type == schedules.F}
        runtime = torch_runtime(max(1, len(text.splitlines())), stages, len(forwards))
        runtime._load_csv(str(file), format=form)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def verdict_as_torch(file: Path) -> tuple[bool, str]:
    """What `tessera check --as torch` says of a file."""
    report = json.loads(tessera("check", str(file), "--as", "torch", "--json").stdout)
    return bool(report["accepted"]), str(report.get("reason", ""))
