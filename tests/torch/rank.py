"""One rank of two: runs schedules from files on gloo and saves what came out.

    python rank.py RANK WORLD STORE CASES RESULTS

CASES is a JSON list of {name, file, form, stages, microbatches, sharded}; RESULTS maps each name to losses (of the rank
that holds the last stage) and gradients. The process ends by itself, whatever its peer does.
"""

from __future__ import annotations

import datetime
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import model
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _Action, _PipelineScheduleRuntime

LONGEST_WAIT = datetime.timedelta(seconds=30)
LIFETIME_SECONDS = 130


def stages_of_row(line: str) -> list[int]:
    actions = [_Action.from_str(cell) for cell in line.split(",")]
    parts = [part for action in actions if action is not None for part in (action.sub_actions or (action,))]
    return sorted({part.stage_index for part in parts})


def run(case: dict[str, Any], rank: int, mesh: Any) -> dict[str, Any]:
    count, microbatches = case["stages"], case["microbatches"]
    held = stages_of_row(Path(case["file"]).read_text(encoding="utf-8").splitlines()[rank])
    modules = {index: model.stage_module(index) for index in held}
    if case["sharded"]:
        for module in modules.values():
            fully_shard(module, mesh=mesh, reshard_after_forward=False)
    stages = [PipelineStage(modules[index], index, count, torch.device("cpu")) for index in held]
    schedule = _PipelineScheduleRuntime(stages, microbatches, loss_fn=model.loss_of)
    schedule._load_csv(case["file"], format=case["form"])
    source, target = model.batch(count, microbatches)
    first, last = 0 in held, count - 1 in held
    losses: list[Any] = []
    schedule.step(*([source] if first else []), target=target if last else None, losses=losses if last else None)
    assert not schedule.fwd_recv_ops and not schedule.bwd_recv_ops, "a message was received and not used"
    gradients = {}
    for index, module in modules.items():
        for name, parameter in module.named_parameters():
            gradient = parameter.grad
            gradients[f"{index}.{name}"] = gradient.full_tensor() if case["sharded"] else gradient
    return {"losses": torch.stack(losses).detach() if last else None, "gradients": gradients}


def main() -> None:
    rank, world, store, cases, results = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    signal.alarm(LIFETIME_SECONDS)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group(
        "gloo", store=dist.FileStore(store, world), rank=rank, world_size=world, timeout=LONGEST_WAIT
    )
    mesh = init_device_mesh("cpu", (world, 1), mesh_dim_names=("pipeline", "shard"))["shard"]
    found = {}
    for case in json.loads(Path(cases).read_text(encoding="utf-8")):
        print(case["name"], file=sys.stderr, flush=True)
        found[case["name"]] = run(case, rank, mesh)
    torch.save(found, results)
    dist.barrier()
    dist.destroy_process_group()


main()
