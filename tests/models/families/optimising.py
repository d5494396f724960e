"""Optimisers, from torch or custom, and learning-rate schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer, lr_scheduler

from tests.models.entry import ROWS, Entry, Optimiser, Training, adamw, entry, integers, normal

ENTRIES: Final[list[Entry]] = []
FAMILY: Final = "optimisers"
COLUMNS, HIDDEN, CLASSES = 6, 12, 4


def classifier(optimiser: Optimiser, *, bias: bool = True, **rest: Any) -> Training:
    """A two-layer classifier, trained by `optimiser`."""
    model = nn.Sequential(
        nn.Linear(COLUMNS, HIDDEN, bias=bias), nn.GELU(), nn.Linear(HIDDEN, CLASSES, bias=bias)
    )
    data = {"x": normal(ROWS, COLUMNS), "y": integers(0, CLASSES, ROWS)}
    return Training(model, lambda m, b: F.cross_entropy(m(b["x"]), b["y"]), data, optimiser, **rest)


@entry(ENTRIES, FAMILY, "Adagrad")
def adagrad() -> Training:
    return classifier(lambda m: torch.optim.Adagrad(m.parameters(), lr=0.05, lr_decay=0.01))


@entry(ENTRIES, FAMILY, "RMSprop, centred, with momentum")
def rmsprop() -> Training:
    return classifier(lambda m: torch.optim.RMSprop(m.parameters(), lr=1e-3, centered=True, momentum=0.9))


@entry(ENTRIES, FAMILY, "Adafactor")
def adafactor() -> Training:
    return classifier(lambda m: torch.optim.Adafactor(m.parameters(), lr=0.01))


@entry(ENTRIES, FAMILY, "Muon over matrices")
def muon() -> Training:
    return classifier(lambda m: torch.optim.Muon(m.parameters(), lr=0.02, weight_decay=0.01), bias=False)


@entry(ENTRIES, FAMILY, "NAdam")
def nadam() -> Training:
    return classifier(lambda m: torch.optim.NAdam(m.parameters(), lr=1e-3))


class Lion(Optimizer):
    """The sign of an interpolation between momentum and gradient (Chen and others, 2023)."""

    def __init__(self, params: Iterable[Tensor], lr: float, betas: tuple[float, float] = (0.9, 0.99)) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": 0.1})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            low, high = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                momentum = state["momentum"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(torch.lerp(p.grad, momentum, low).sign(), alpha=-group["lr"])
                momentum.lerp_(p.grad, 1 - high)


@entry(ENTRIES, FAMILY, "Lion, the user's own class")
def lion() -> Training:
    return classifier(lambda m: Lion(m.parameters(), lr=1e-3))


class Lamb(Optimizer):
    """Adam's direction, scaled to the parameter's norm (You and others, 2020)."""

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["mean"], state["square"] = torch.zeros_like(p), torch.zeros_like(p)
                mean, square = state["mean"], state["square"]
                mean.mul_(0.9).add_(p.grad, alpha=0.1)
                square.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                way = mean / (square.sqrt() + 1e-6) + 0.01 * p
                length, own = way.norm(), p.norm()
                trust = torch.where((length > 0) & (own > 0), own / length, torch.ones_like(own))
                p.sub_(group["lr"] * trust * way)


@entry(ENTRIES, FAMILY, "LAMB, the user's own class")
def lamb() -> Training:
    return classifier(lambda m: Lamb(m.parameters(), lr=0.01))


@entry(ENTRIES, FAMILY, "SGD with Nesterov's momentum, groups with their own rates and decay")
def groups() -> Training:
    def optimiser(model: nn.Module) -> Optimizer:
        matrices = [p for p in model.parameters() if p.dim() > 1]
        others = [p for p in model.parameters() if p.dim() < 2]
        return torch.optim.SGD(
            [{"params": matrices, "weight_decay": 0.01}, {"params": others, "lr": 0.02}],
            lr=0.05,
            momentum=0.9,
            nesterov=True,
        )

    return classifier(optimiser)


@entry(ENTRIES, FAMILY, "a cosine after a warm-up")
def cosine() -> Training:
    def schedule(optimiser: Optimizer) -> lr_scheduler.LRScheduler:
        warm = lr_scheduler.LinearLR(optimiser, 0.1, total_iters=2)
        rest = lr_scheduler.CosineAnnealingLR(optimiser, 8)
        return lr_scheduler.SequentialLR(optimiser, [warm, rest], [2])

    return classifier(adamw, scheduler=schedule)


@entry(ENTRIES, FAMILY, "one cycle of rates")
def cycle() -> Training:
    return classifier(
        adamw, scheduler=lambda o: lr_scheduler.OneCycleLR(o, 0.01, total_steps=8, cycle_momentum=False)
    )
