"""Entries of the suite. A family is a module with a list of entries, `ENTRIES`, which `entry` fills."""

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
    """AdamW, the most common optimiser, for the parameters that require gradients."""
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)


@dataclass(frozen=True)
class Training:
    """The arguments of `capture`, as a submitter would pass them. `options` are further keyword arguments."""

    model: nn.Module
    objective: Objective
    data: Mapping[str, Tensor]
    optimiser: Optimiser = adamw
    batch: int = 4
    scheduler: Scheduler | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A model or pattern of a family; `make` builds it in the smallest representative configuration."""

    family: str
    name: str
    make: Callable[[], Training]
    quick: bool = False
    """Whether `make test` runs the entry. If so, the entry needs only libraries in the lock file."""

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
"""Default number of rows of a dataset."""


def normal(*shape: int, seed: int = 1) -> Tensor:
    """f32 values from the standard normal distribution."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def integers(low: int, high: int, *shape: int, seed: int = 2) -> Tensor:
    """i64 values from `low` to `high` - 1."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed))
