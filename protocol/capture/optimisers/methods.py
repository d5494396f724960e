"""Optimisers that have kernels: their tensors in the state, and the library function of their update.

Hyperparameters are read from the submitter's own parameter groups; learning rates are data (`schedules`). In
the state, a slot is named `<parameter>.<slot>`, and a scalar of group k is named `optimizer.<k>.<scalar>`.
All other optimisers are traced (`traced`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from protocol.capture.lowering.context import Lowering
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library import adam, sgd
from protocol.program.types import TensorType

Values = tuple[Value, ...]
OTHER_OPTIONS = ("maximize", "dampening")
"""Options of torch's optimisers that the kernels do not support."""


@dataclass(frozen=True)
class Method:
    """The update of the parameters of one group.

    The state holds `slots` for every parameter and `scalars` for the group. A slot has the shape of its
    parameter; a scalar is f32 []. All of them start at zero. `prepare(b, scalars, rate)` returns the next
    scalars, and the values `common` that the updates of all parameters share. `update(b, parameter, gradient,
    slots, common)` returns the next parameter and its next slots.
    """

    slots: tuple[str, ...]
    scalars: tuple[str, ...]
    prepare: Callable[[Builder, Values, Value], tuple[Values, Values]]
    update: Callable[[Builder, Value, Value, Values, Values], Values]


@dataclass(frozen=True)
class Methods:
    """One method per group. `group` maps each parameter's name to the index of its method in `methods`. In
    the names of the state, groups are numbered from `first_group`.
    """

    methods: Sequence[Method]
    group: Mapping[str, int]
    first_group: int = 0
    initial: Mapping[str, Tensor] = field(default_factory=dict)

    def state(self, parameters: Mapping[str, TensorType]) -> list[tuple[str, TensorType]]:
        """Implements `rule.Rule.state`. All these tensors are zero before the first step."""
        scalar = TensorType(DType.F32, ())
        slots = [(slot, type_) for name, type_ in parameters.items() for slot in self._slots(name)]
        return slots + [(name, scalar) for k in self._groups for name in self._scalars(k)]

    def write(
        self,
        lowering: Lowering,
        state: Mapping[str, Value],
        gradients: Mapping[str, Value],
        rates: Sequence[Value],
    ) -> dict[str, Value]:
        """Implements `rule.Rule.write`."""
        b = lowering.builder
        after: dict[str, Value] = {}
        common: dict[int, tuple[Value, ...]] = {}
        for k in self._groups:
            scalars = tuple(state[name] for name in self._scalars(k))
            scalars, common[k] = self.methods[k].prepare(b, scalars, rates[k])
            after.update(zip(self._scalars(k), scalars, strict=True))
        for name, k in self.group.items():
            slots = tuple(state[slot] for slot in self._slots(name))
            new = self.methods[k].update(b, state[name], gradients[name], slots, common[k])
            after.update(zip((name, *self._slots(name)), new, strict=True))
        return after

    @property
    def _groups(self) -> list[int]:
        """Indices of the groups that train at least one parameter."""
        return sorted(set(self.group.values()))

    def _slots(self, name: str) -> list[str]:
        return [f"{name}.{slot}" for slot in self.methods[self.group[name]].slots]

    def _scalars(self, k: int) -> list[str]:
        return [f"optimizer.{self.first_group + k}.{scalar}" for scalar in self.methods[k].scalars]


def has_method(optimizer: Optimizer) -> bool:
    """Whether kernels can run the optimiser. Its type must be one that has kernels, not a subclass of one.
    Its `step` must be torch's, possibly wrapped by a scheduler. The kernels must support its options.
    """
    step = vars(optimizer).get("step")
    wrapped = hasattr(step, "_wrapped_by_lr_sched")
    replaced = step is not None and not (wrapped and step.__wrapped__ is type(optimizer).step)
    others = any(group.get(key) for group in optimizer.param_groups for key in OTHER_OPTIONS)
    return type(optimizer) in METHODS and not replaced and not others


def methods(optimizer: Optimizer, group: Mapping[str, int], first_group: int = 0) -> Methods:
    """The methods of all groups of an optimiser for which `has_method` holds."""
    make = METHODS[type(optimizer)]
    return Methods([make(options) for options in optimizer.param_groups], group, first_group)


def _alone(_b: Builder, _scalars: Values, rate: Value) -> tuple[Values, Values]:
    """The `prepare` of a method without scalars: the updates share only the rate."""
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
