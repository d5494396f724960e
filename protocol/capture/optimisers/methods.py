"""The update rule of each supported optimiser: what it keeps in the state and the instructions of one step.

Hyperparameters are read from the submitter's own parameter groups; learning rates are data (`schedules`). A new
optimiser is one entry in `METHODS`. `update` decides which parameter is in which group, and the names in the state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer

from protocol.capture.optimisers.checks import require_supported
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library import adam, sgd

Values = tuple[Value, ...]


@dataclass(frozen=True)
class Method:
    """How the parameters of one group are updated.

    The state holds `slots` for every parameter, of its shape, and `scalars`, f32 [], for the group; all start at zero.
    `prepare(b, scalars, rate)` returns the next scalars and the values that the updates of all parameters share;
    `update(b, parameter, gradient, slots, common)` returns the next parameter and slots.
    """

    slots: tuple[str, ...]
    scalars: tuple[str, ...]
    prepare: Callable[[Builder, Values, Value], tuple[Values, Values]]
    update: Callable[[Builder, Value, Value, Values, Values], Values]


def methods(optimizer: Optimizer) -> list[Method]:
    """The method of every parameter group. Raises `CaptureError` for types and options that are not supported."""
    require_supported(optimizer, METHODS)
    make = METHODS[type(optimizer)]
    return [make(group) for group in optimizer.param_groups]


def _alone(_b: Builder, _scalars: Values, rate: Value) -> tuple[Values, Values]:
    """No scalars; the updates share the rate alone."""
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
