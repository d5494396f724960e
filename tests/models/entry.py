"""What an entry of the suite is. A family is a module with a list of them, `ENTRIES`, which `entry` fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from protocol.capture import Objective

Optimiser = Callable[[nn.Module], torch.optim.Optimizer]
Scheduler = Callable[[torch.optim.Optimizer], LRScheduler]


def adamw(model: nn.Module) -> torch.optim.Optimizer:
    """What most people take."""
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)


@dataclass(frozen=True)
class Training:
    """A training as its submitter would hand it over: the arguments of `capture`. `options` are its others."""

    model: nn.Module
    objective: Objective
    data: Mapping[str, Tensor]
    optimiser: Optimiser = adamw
    batch: int = 4
    scheduler: Scheduler | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A model or pattern of a family; `make` builds it, in the smallest configuration that is still what it is."""

    family: str
    name: str
    make: Callable[[], Training]
    quick: bool = False
    """Part of `make test`: such an entry needs no library that the lock does not have."""

    def __str__(self) -> str:
        return f"{self.family}: {self.name}"


def entry(
    entries: list[Entry], family: str, name: str, *, quick: bool = False
) -> Callable[[Callable[[], Training]], Callable[[], Training]]:
    """Add the decorated function to a family's entries."""

    def add(make: Callable[[], Training]) -> Callable[[], Training]:
        entries.append(Entry(family, name, make, quick))
        return make

    return add


ROWS = 16
"""Of a data set that nothing else is asked of."""


def normal(*shape: int, seed: int = 1) -> Tensor:
    """f32 of the standard normal distribution."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def integers(low: int, high: int, *shape: int, seed: int = 2) -> Tensor:
    """i64 from `low` to `high` - 1."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))
