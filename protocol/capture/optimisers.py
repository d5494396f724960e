"""What an optimiser keeps in the state and how one step of it is written, by the optimiser's exact type.

Hyperparameters are read from the submitter's own parameter groups; rates are data (see `schedules`). A new optimiser is
one entry in `METHODS`. Which parameter is in which group, and the names in the state, are in `update`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer

from protocol.capture.errors import CaptureError, Problem
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library import adam, sgd

Values = tuple[Value, ...]


@dataclass(frozen=True)
class Method:
    """How the parameters of one group are updated.

    `slots` are kept for every parameter (of its shape), `scalars` (f32 []) for the group; both are zero at first.
    `prepare(b, scalars, rate)` gives the next scalars and what all parameters have in common; `update(b, parameter,
    gradient, slots, common)` the next parameter and slots.
    """

    slots: tuple[str, ...]
    scalars: tuple[str, ...]
    prepare: Callable[[Builder, Values, Value], tuple[Values, Values]]
    update: Callable[[Builder, Value, Value, Values, Values], Values]


def methods(optimizer: Optimizer) -> list[Method]:
    """The method of every parameter group. Raises `CaptureError` with everything that has no exact form here."""
    make = METHODS.get(type(optimizer))
    if make is None:
        supported = ", ".join(sorted(kind.__name__ for kind in METHODS))
        raise CaptureError(
            [Problem(f"optimiser {type(optimizer).__name__} is not supported", f"use one of: {supported}")]
        )
    kind = type(optimizer).__name__
    refused = {
        Problem(f"{kind} with {key}={group[key]}", remedy): None
        for group in optimizer.param_groups
        for key, remedy in REFUSED.items()
        if group.get(key)
    }
    if refused:
        raise CaptureError(refused)
    return [make(group) for group in optimizer.param_groups]


REFUSED = {
    "maximize": "minimise the negative: return -loss from the objective, and leave maximize at its default",
    "dampening": "leave dampening at its default; scale the rate and the momentum instead",
    "differentiable": "leave differentiable at its default; nobody takes gradients through the update",
}
"""Options that would change what a step computes. `foreach`, `fused` and `capturable` only say how torch runs it."""


def _alone(_b: Builder, _scalars: Values, rate: Value) -> tuple[Values, Values]:
    """No scalars, and the rate alone in common."""
    return (), (rate,)


def _sgd(group: Mapping[str, Any]) -> Method:
    momentum, weight_decay = float(group["momentum"]), float(group["weight_decay"])
    nesterov = bool(group["nesterov"])

    def plain(b: Builder, p: Value, g: Value, _slots: Values, common: Values) -> Values:
        return (sgd.sgd.call(b, p, g, *common, weight_decay=weight_decay),)

    def with_momentum(b: Builder, p: Value, g: Value, slots: Values, common: Values) -> Values:
        result: Values = sgd.sgd_momentum.call(
            b, p, g, *slots, *common, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov
        )
        return result

    if momentum == 0:
        return Method((), (), _alone, plain)
    return Method(("momentum",), (), _alone, with_momentum)


def _adam(group: Mapping[str, Any]) -> Method:
    beta1, beta2 = map(float, group["betas"])
    weight_decay, decoupled = float(group["weight_decay"]), bool(group["decoupled_weight_decay"])
    scales = {
        "beta1": beta1,
        "beta2": beta2,
        "eps": float(group["eps"]),
        "weight_decay": weight_decay if decoupled else 0.0,
    }

    def prepare(b: Builder, masses: Values, rate: Value) -> tuple[Values, Values]:
        first, second, *common = adam.adamw_scales.call(b, *masses, rate, **scales)
        return (first, second), tuple(common)

    def update(b: Builder, p: Value, g: Value, slots: Values, common: Values) -> Values:
        if weight_decay and not decoupled:
            g = b.add(g, b.mul(b.constant(DType.F32, (), weight_decay), p))
        moments, largest = slots[:2], slots[2:]
        result: Values = adam.adamw.call(b, p, g, *moments, *common, *largest, beta1=beta1, beta2=beta2)
        return result

    slots = ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group["amsgrad"] else ()))
    return Method(slots, ("mass1", "mass2"), prepare, update)


METHODS: dict[type[Optimizer], Callable[[Mapping[str, Any]], Method]] = {
    torch.optim.SGD: _sgd,
    torch.optim.Adam: _adam,
    torch.optim.AdamW: _adam,
}
