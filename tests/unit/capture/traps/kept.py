"""Harmless Python state between steps. `capture` accepts it, and computes what torch computes."""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.unit.capture.steps import cross_entropy
from tests.unit.capture.traps.trap import Around, Batch, Made, trap


@trap(None)
def a_cache_that_is_filled_once() -> Made:
    class Cached(Around):
        def __init__(self) -> None:
            super().__init__()
            self.mask: Tensor | None = None

        def before(self, x: Tensor) -> Tensor:
            if self.mask is None:
                self.mask = torch.ones(8, 8).tril()[4]
            return x * self.mask

    return Cached(), cross_entropy


@trap(None)
def a_cache_in_a_dict() -> Made:
    kept: dict[int, Tensor] = {}

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        size = batch["x"].shape[1]
        if size not in kept:
            kept[size] = torch.linspace(0.5, 1.5, size) if size < 0 else torch.arange(size) / size
        return F.cross_entropy(model(batch["x"] * kept[size]), batch["y"])

    return nn.Linear(8, 3), objective


@trap(None)
def a_cached_function() -> Made:
    @lru_cache
    def scale(size: int) -> float:
        return 1.0 / (1 + size)

    def objective(model: nn.Module, batch: Batch) -> Tensor:
        return cross_entropy(model, batch) * scale(batch["x"].shape[1])

    return nn.Linear(8, 3), objective


@trap(None)
def a_constant_of_the_closure() -> Made:
    smoothing = 0.1
    return nn.Linear(8, 3), lambda model, batch: F.cross_entropy(
        model(batch["x"]), batch["y"], label_smoothing=smoothing
    )


@trap(None)
def a_counter_that_is_a_buffer() -> Made:
    class Counted(Around):
        steps: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("steps", torch.zeros(()))

        def before(self, x: Tensor) -> Tensor:
            self.steps += 1
            return x * self.steps

    return Counted(), cross_entropy
