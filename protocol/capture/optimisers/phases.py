"""Phases of a step, run one after the other: each has a loss and an optimiser, as in adversarial training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protocol.capture.tracing.step import Objective


@dataclass(frozen=True)
class Phase:
    """A forward and backward pass of `objective`, then the update of the parameters that `optimizer` holds.
    All other parameters are treated as frozen. Options are as in `capture`.

    The phase acts in step `first` (counted from 0) and in every `every`-th step after it; `scheduler` counts
    only the steps in which the phase acts. Its metrics are named `<name>.loss`, and so on.
    """

    name: str
    objective: Objective
    optimizer: Optimizer
    scheduler: LRScheduler | None = None
    clip_norm: float | None = None
    clip_value: float | None = None
    every: int = 1
    first: int = 0

    def times(self, steps: int) -> int:
        """The number of steps in which the phase acts, out of the first `steps` steps."""
        return max(0, -(-(steps - self.first) // self.every))


@contextmanager
def training_only(model: nn.Module, optimizer: Optimizer) -> Iterator[None]:
    """Inside the context, freeze all parameters except those of `optimizer`."""
    own = {id(p) for group in optimizer.param_groups for p in group["params"]}
    others = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
    for p in others:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in others:
            p.requires_grad_(True)
