"""The second half of a step: gradients are clipped, then a rule updates the parameters and the optimiser's state.

`methods` has the rule for optimisers with kernels, `traced` the rule for all others, `schedules` the tables of rates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.optim import Optimizer

from protocol.capture.errors import Problems
from protocol.capture.lowering.concatenation import concatenated
from protocol.capture.lowering.context import Lowering
from protocol.capture.optimisers.checks import require_limits, require_new, require_same_parameters
from protocol.capture.optimisers.methods import has_method, methods
from protocol.capture.optimisers.rule import Rule
from protocol.capture.optimisers.traced import trace_update
from protocol.program.builder import Builder, Value
from protocol.program.library import clipping
from protocol.program.step import State

GRADIENT_NORM = "grad_norm"
"""Metric of a step that clips by norm: the norm before clipping, as `clip_grad_norm_` returns it."""


@dataclass(frozen=True)
class Update:
    """The update of the parameters in a step.

    `clip_norm` limits the joint norm of all gradients, and `clip_value` then limits each element; None means
    no limit.
    """

    rule: Rule
    clip_norm: float | None
    clip_value: float | None

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics that the update adds to the objective's."""
        return (GRADIENT_NORM,) if self.clip_norm is not None else ()

    def write(
        self,
        lowering: Lowering,
        state: Mapping[str, Value],
        gradients: Mapping[str, Value],
        rates: Sequence[Value],
    ) -> dict[str, Value]:
        """The parameters, the optimiser's state and the update's metrics after the step, by name. `rates`
        holds one f32 [] per group.
        """
        b = lowering.builder
        metrics: dict[str, Value] = {}
        if self.clip_norm is not None:
            gradients, metrics[GRADIENT_NORM] = _clip_norm(b, gradients, self.clip_norm)
        if self.clip_value is not None:
            limit = self.clip_value
            gradients = {name: clipping.clip_value.call(b, g, limit=limit) for name, g in gradients.items()}
        return self.rule.write(lowering, state, gradients, rates) | metrics


def update_of(
    optimizer: Optimizer,
    parameters: Mapping[str, nn.Parameter],
    reached: Collection[str],
    clip_norm: float | None,
    clip_value: float | None,
    resumed: State | None = None,
    first_group: int = 0,
) -> Update:
    """The update of the trainable `parameters` whose names are in `reached`, which are those that the loss
    depends on.

    As in torch, parameters without a gradient are skipped and have no state. If training goes on from a state,
    `resumed`, in which the optimiser has stepped, no step is treated as the optimiser's first. The groups are
    counted from `first_group`, so that no two optimisers of a step share a group number. Raises one
    `CaptureError` with everything that the checks refuse.
    """
    problems = Problems()
    with problems.collected():
        require_limits(clip_norm=clip_norm, clip_value=clip_value)
    with problems.collected():
        require_same_parameters(parameters, reached, optimizer)
    with problems.collected():
        require_new(optimizer)
    problems.raise_any()
    groups = {id(p): k for k, group in enumerate(optimizer.param_groups) for p in group["params"]}
    group = {name: groups[id(parameters[name])] for name in reached}
    if has_method(optimizer):
        return Update(methods(optimizer, group, first_group), clip_norm, clip_value)
    traced = trace_update(optimizer, {name: parameters[name] for name in reached})
    kept = resumed or {}
    # A phase that has not acted yet leaves what its optimiser keeps as it was.
    first = traced.initial
    begun = any(name in kept and not torch.equal(kept[name].to(t.dtype), t) for name, t in first.items())
    return Update(replace(traced, first=None) if begun else traced, clip_norm, clip_value)


def _clip_norm(b: Builder, gradients: Mapping[str, Value], limit: float) -> tuple[dict[str, Value], Value]:
    """The gradients times min(1, limit / (norm + 1e-6)), and the norm before clipping."""
    squares = [b.reshape(clipping.square_sum.call(b, g), (1,)) for g in gradients.values()]
    norm, scale = clipping.clip_scale.call(b, concatenated(b, squares), limit=limit)
    return {name: b.mul(g, scale) for name, g in gradients.items()}, norm
