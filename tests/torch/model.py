"""A small model cut into stages, and what one process makes of it.

Stages differ in width, so that a message that meets the wrong stage has the wrong shape; all is float64 on one thread,
so that a difference is an error and no rounding.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

torch.set_num_threads(1)

SAMPLES = 2  # per microbatch


def width(boundary: int) -> int:
    return 5 + boundary % 3


def stage_module(index: int) -> Any:
    """Stage `index`, the same in every process."""
    torch.manual_seed(1000 + index)
    return torch.nn.Sequential(
        torch.nn.Linear(width(index), 7),
        torch.nn.LayerNorm(7),
        torch.nn.Tanh(),
        torch.nn.Linear(7, width(index + 1)),
    ).double()


def batch(stages: int, microbatches: int) -> tuple[Any, Any]:
    """Input and target of a whole step: (microbatches · SAMPLES, width)."""
    torch.manual_seed(microbatches)
    rows = microbatches * SAMPLES
    return torch.randn(rows, width(0)).double(), torch.randn(rows, width(stages)).double()


def loss_of(output: Any, target: Any) -> Any:
    return torch.nn.functional.mse_loss(output, target)


@cache
def one_process(stages: int, microbatches: int) -> tuple[Any, dict[str, Any]]:
    """Losses by microbatch, and gradients of their mean by `stage.parameter`."""
    modules = [stage_module(index) for index in range(stages)]
    source, target = batch(stages, microbatches)
    losses = []
    for part, wanted in zip(source.chunk(microbatches), target.chunk(microbatches), strict=True):
        for module in modules:
            part = module(part)
        losses.append(loss_of(part, wanted))
        losses[-1].backward()
    gradients = {
        f"{index}.{name}": parameter.grad / microbatches
        for index, module in enumerate(modules)
        for name, parameter in module.named_parameters()
    }
    return torch.stack(losses).detach(), gradients
