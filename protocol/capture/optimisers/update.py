"""The second half of a step: gradients are clipped, then each group's method updates its parameters and its state.

Names in the state: a slot is `<parameter>.<slot>`, a scalar of group k `optimizer.<k>.<scalar>`. `methods` writes what
an optimiser computes, `schedules` the tables of learning rates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from torch import nn
from torch.optim import Optimizer

from protocol.capture.errors import Problems
from protocol.capture.lowering.concatenation import concatenated
from protocol.capture.optimisers.checks import require_limits, require_new, require_same_parameters
from protocol.capture.optimisers.methods import Method, methods
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library import clipping
from protocol.program.step import METRIC
from protocol.program.types import TensorType

GRADIENT_NORM = METRIC + "grad_norm"
"""Metric of a step that clips by norm: the norm before clipping, as `clip_grad_norm_` returns it."""


@dataclass(frozen=True)
class Update:
    """How a step changes the parameters. `group` is every parameter's index into `methods`, by the parameter's name.

    `clip_norm` limits the norm of all gradients together, `clip_value` each element after that; None is no limit.
    """

    methods: Sequence[Method]
    group: Mapping[str, int]
    clip_norm: float | None
    clip_value: float | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """State tensors of the metrics that the update adds to the objective's."""
        return (GRADIENT_NORM,) if self.clip_norm is not None else ()

    def state(self, parameters: Mapping[str, TensorType]) -> list[tuple[str, TensorType]]:
        """Names and types of the optimiser's state, in order; all zero before the first step."""
        scalar = TensorType(DType.F32, ())
        slots = [(slot, type_) for name, type_ in parameters.items() for slot in self._slots(name)]
        return slots + [(name, scalar) for k in self._groups for name in self._scalars(k)]

    def write(
        self, b: Builder, state: Mapping[str, Value], gradients: Mapping[str, Value], rates: Sequence[Value]
    ) -> dict[str, Value]:
        """The parameters, the optimiser's state and the metrics after the step. `rates` holds one f32 [] a group."""
        after: dict[str, Value] = {}
        if self.clip_norm is not None:
            gradients, after[GRADIENT_NORM] = _clip_norm(b, gradients, self.clip_norm)
        if self.clip_value is not None:
            limit = self.clip_value
            gradients = {name: clipping.clip_value.call(b, g, limit=limit) for name, g in gradients.items()}
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
        """Groups that train at least one parameter."""
        return sorted(set(self.group.values()))

    def _slots(self, name: str) -> list[str]:
        return [f"{name}.{slot}" for slot in self.methods[self.group[name]].slots]

    def _scalars(self, k: int) -> list[str]:
        return [f"optimizer.{k}.{scalar}" for scalar in self.methods[k].scalars]


def update_of(
    optimizer: Optimizer,
    parameters: Mapping[str, nn.Parameter],
    reached: Collection[str],
    clip_norm: float | None,
    clip_value: float | None,
) -> Update:
    """The update of those of the trainable `parameters` that the loss has `reached`, by name: torch leaves the others,
    which have no gradient, and keeps nothing of them. Raises one `CaptureError` with all that the checks refuse."""
    problems = Problems()
    with problems.collected():
        require_limits(clip_norm=clip_norm, clip_value=clip_value)
    with problems.collected():
        found = methods(optimizer)
    groups = {id(p): k for k, group in enumerate(optimizer.param_groups) for p in group["params"]}
    with problems.collected():
        require_same_parameters(parameters, reached, optimizer)
    with problems.collected():
        require_new(optimizer)
    problems.raise_any()
    return Update(found, {name: groups[id(parameters[name])] for name in reached}, clip_norm, clip_value)


def _clip_norm(b: Builder, gradients: Mapping[str, Value], limit: float) -> tuple[dict[str, Value], Value]:
    """The gradients times min(1, limit / norm), and the norm."""
    squares = [b.reshape(clipping.square_sum.call(b, g), (1,)) for g in gradients.values()]
    norm, scale = clipping.clip_scale.call(b, concatenated(b, squares), limit=limit)
    return {name: b.mul(g, scale) for name, g in gradients.items()}, norm
