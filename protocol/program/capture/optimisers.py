"""What an optimiser keeps in the state and how one update of a parameter is written, by the optimiser's exact type.

Hyperparameters are read from the submitter's own instance. A new optimiser is one entry in `UPDATES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer

from protocol.program.builder import Builder, Value
from protocol.program.capture.errors import CaptureError, Problem
from protocol.program.library import sgd

Update = Callable[[Builder, Value, Value, tuple[Value, ...], Value], tuple[Value, ...]]
"""From builder, parameter, gradient, slots and rate to the next parameter and slots."""


@dataclass(frozen=True)
class ParameterUpdate:
    """How one parameter is updated: its group, the names of its slots (zeros of its shape at first), the update."""

    group: int
    slots: tuple[str, ...]
    update: Update


def parameter_updates(
    optimizer: Optimizer, parameters: Mapping[str, torch.nn.Parameter]
) -> dict[str, ParameterUpdate]:
    """The update of every parameter, by name. Raises `CaptureError` for what has no exact form here."""
    make = UPDATES.get(type(optimizer))
    if make is None:
        supported = ", ".join(sorted(kind.__name__ for kind in UPDATES))
        raise CaptureError(
            [Problem(f"optimiser {type(optimizer).__name__} is not supported", f"use one of: {supported}")]
        )
    groups = {id(p): k for k, group in enumerate(optimizer.param_groups) for p in group["params"]}
    missing = [name for name, p in parameters.items() if id(p) not in groups]
    if missing:
        raise CaptureError(
            Problem(f"the optimiser does not hold parameter {name}", "freeze it, or pass it to the optimiser")
            for name in missing
        )
    kinds = [make(group) for group in optimizer.param_groups]
    return {name: ParameterUpdate(groups[id(p)], *kinds[groups[id(p)]]) for name, p in parameters.items()}


def _sgd(group: Mapping[str, Any]) -> tuple[tuple[str, ...], Update]:
    refused = {key: group[key] for key in ("dampening", "maximize", "differentiable") if group[key]}
    if refused:
        raise CaptureError(
            Problem(f"SGD with {key}={value}", f"leave {key} at its default")
            for key, value in refused.items()
        )
    momentum, weight_decay = float(group["momentum"]), float(group["weight_decay"])
    nesterov = bool(group["nesterov"])
    if momentum == 0:
        return (), lambda b, p, g, _, rate: (sgd.sgd.call(b, p, g, rate, weight_decay=weight_decay),)

    def update(b: Builder, p: Value, g: Value, slots: tuple[Value, ...], rate: Value) -> tuple[Value, ...]:
        result: tuple[Value, ...] = sgd.sgd_momentum.call(
            b, p, g, *slots, rate, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov
        )
        return result

    return ("momentum",), update


UPDATES: dict[type[Optimizer], Callable[[Mapping[str, Any]], tuple[tuple[str, ...], Update]]] = {
    torch.optim.SGD: _sgd,
}
