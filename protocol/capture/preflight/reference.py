"""Runs the same step in torch in two ways: as the submitter's own code, unchanged, and as the traced graph,
in a chosen type.

Both runs use the program's batch and random numbers, so that only arithmetic can differ.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.fx import GraphModule, Interpreter
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from protocol.capture.expansion.table import EXPANSIONS
from protocol.capture.inputs.model import places, tensors_of, with_attributes
from protocol.capture.lowering.context import Draw
from protocol.capture.tracing.checkpoints import drawn_once
from protocol.capture.tracing.step import Objective, StepModule, decomposed_kernels
from protocol.capture.tracing.tracer import TracedStep
from protocol.numerics.philox import mask as drawn
from protocol.numerics.philox import philox
from protocol.program.step import State

aten = torch.ops.aten
RANDOM = (aten.native_dropout.default, aten.bernoulli.p, aten.bernoulli_.float, aten.rand.default)
"""Random operations with a rule in `lowering.ops.random`. `bernoulli_` becomes `bernoulli` in a trace."""
IN_PLACE = {
    aten.normal_.default: aten.normal_functional.default,
    aten.uniform_.default: aten.uniform.default,
    aten.exponential_.default: aten.exponential.default,
    aten.bernoulli_.Tensor: aten.bernoulli.Tensor,
    aten.random_.to: aten.random.to,
}
"""In-place random operations, and the operations that they become in a trace."""


@dataclass(frozen=True)
class Results:
    """The results of a step: the loss, an f32 or f64 scalar; gradients and written buffers by name."""

    loss: Tensor
    gradients: Mapping[str, Tensor]
    buffers: Mapping[str, Tensor]


class Draws:
    """The random numbers of one step, or of one unit of it, in the order in which the graph draws them."""

    def __init__(self, graph: torch.fx.Graph, draws: Mapping[str, Draw], key: Tensor, counter: int) -> None:
        self._draws = [draws.get(node.name) for node in graph.nodes if node.target in RANDOM]
        self._key, self._counter = key, torch.tensor(counter, dtype=torch.int64).to(torch.int32)
        self._next = 0

    def __bool__(self) -> bool:
        """Whether the graph has any of the operations in `RANDOM`."""
        return bool(self._draws)

    def draw(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The result of `func`, one of `RANDOM`, computed from the program's next numbers."""
        draw = self._draws[self._next]
        self._next += 1
        if func is aten.rand.default:
            assert draw is not None, "uniform numbers are always drawn"
            words = philox(self._key, self._counter, draw.stream, tuple(args[0]))
            return ((words >> 8) & 0xFFFFFF).to(kwargs.get("dtype") or torch.float32) * 2.0**-24
        given = {**dict(zip(("x", "p", "train"), args)), **kwargs}
        x: Tensor = given["x"] if "x" in given else given["self"] if "self" in given else given["input"]
        p = given.get("p", 0.5)
        keep = 1.0 - p if func is aten.native_dropout.default else p
        ones = self._ones(draw, x, keep)
        if func is aten.bernoulli_.float:
            return x.copy_(ones)
        if func is aten.bernoulli.p:
            return ones.to(x.dtype)
        if given.get("train") is False or p == 0:
            return x.clone(), torch.ones_like(x, dtype=torch.bool)
        return x * ones * (0.0 if p == 1 else 1.0 / (1.0 - p)), ones.bool()

    def _ones(self, draw: Draw | None, x: Tensor, keep: float) -> Tensor:
        if draw is None or draw.below is None:  # nothing is drawn if all elements are kept, or none
            return torch.full(x.shape, float(math.floor(keep * 2**32) >= 2**32))
        return drawn(self._key, self._counter, draw.stream, tuple(x.shape), draw.below)


class Drawn(TorchDispatchMode):
    """Replaces torch's random numbers by the program's while it is active."""

    def __init__(self, draws: Draws) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._draws = draws

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in RANDOM:
            return self._draws.draw(func, args, kwargs or {})
        if torch.Tag.nondeterministic_seeded in func.tags and IN_PLACE.get(func, func) in EXPANSIONS:
            with self:
                found = EXPANSIONS[IN_PLACE.get(func, func)](*args, **(kwargs or {}))
            return args[0].copy_(found) if func in IN_PLACE else found
        return func(*args, **(kwargs or {}))


def by_torch(
    model: nn.Module,
    objective: Objective,
    traced: TracedStep,
    state: State,
    batch: Mapping[str, Tensor],
    draws: Draws,
) -> Results:
    """Run the submitter's own code for the step, in float32, on a model with the tensors of `state`."""
    tensors = dict(zip((*traced.parameters, *traced.buffers), inputs_of(traced, state, {})))
    leaves = [tensors[name].clone().requires_grad_() for name in traced.parameters]
    tensors |= dict(zip(traced.parameters, leaves))
    tensors |= {name: tensors[name].clone() for name in traced.buffers}
    originals = dict(tensors_of(model))
    named = {
        f"model.{place}": with_attributes(tensors[name], originals[name])
        for place, name in places(model).items()
    }
    with Drawn(draws), decomposed_kernels(), drawn_once():
        found = functional_call(StepModule(model, objective), named, (dict(batch), leaves), tie_weights=False)
    gradients = {  # this run may reach fewer parameters than the trace, because of what Python keeps
        name: torch.zeros_like(leaf) if g is None else g.detach()
        for name, leaf, g in zip(traced.parameters, leaves, found.gradients)
    }
    place_of = {name: place for place, name in places(model).items()}
    after = {name: found.buffers[place_of[name]].detach() for name in traced.written}
    return Results(found.loss.detach(), gradients, after)


def in_type(value: Any, dtype: torch.dtype) -> Any:
    """A tensor of floats converted to `dtype`; anything else unchanged."""
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def call(target: Any, args: Any, kwargs: Any, dtype: torch.dtype, draws: Draws) -> Any:
    """Run an operation of the graph with `dtype` in place of float32, and with the program's random numbers."""
    args, kwargs = (tree_map(lambda x: dtype if x is torch.float32 else x, given) for given in (args, kwargs))
    if target in RANDOM:
        return draws.draw(target, args, kwargs)
    if target is aten.view.default:  # a kernel may lay out its result differently from the trace
        target = aten.reshape.default
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # for tensors created without a type
    try:
        return target(*args, **kwargs)
    finally:
        torch.set_default_dtype(before)


class _InType(Interpreter):
    """Runs a traced graph in another type."""

    def __init__(self, graph: torch.fx.Graph, dtype: torch.dtype, draws: Draws) -> None:
        super().__init__(GraphModule(graph.owning_module or nn.Module(), graph))
        self._dtype, self._draws = dtype, draws

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Run one operation."""
        return call(target, args, kwargs, self._dtype, self._draws)


def by_graph(
    traced: TracedStep, state: State, batch: Mapping[str, Tensor], draws: Draws, dtype: torch.dtype
) -> Results:
    """Run the traced graph of the step with torch's own operations, in `dtype` instead of float32."""
    inputs = [in_type(t, dtype) for t in inputs_of(traced, state, batch)]
    with torch.no_grad():
        found = _InType(traced.graph, dtype, draws).run(*inputs, enable_io_processing=False)
    count, metrics = len(traced.parameters), len(traced.metrics)
    return Results(
        found[count],
        dict(zip(traced.parameters, found[:count])),
        dict(zip(traced.written, found[count + 1 + metrics :])),
    )


def inputs_of(traced: TracedStep, state: State, batch: Mapping[str, Tensor]) -> list[Tensor]:
    """The tensors for the traced graph's placeholders: parameters, buffers, and the batch's tensors, each in
    the type of its placeholder.

    Tensors that the step neither trains nor writes are not in the state, so they are taken from `traced`.
    """
    tensors = [
        *(state[name] for name in traced.parameters),
        *(state.get(name, t) for name, t in traced.buffers.items()),
        *batch.values(),
    ]
    holders = (node for node in traced.graph.nodes if node.op == "placeholder")
    return [t.to(node.meta["val"].dtype) for t, node in zip(tensors, holders)]


def mean(units: Sequence[Results], accumulated: Collection[str]) -> Results:
    """The results of a whole step, computed from the results of its equal parts. Buffers that are
    `accumulated` are taken from the last part. Of everything else, floats are averaged over the parts, and
    other types are taken from the first part.
    """
    first, last = units[0], units[-1]
    return Results(
        _mean([unit.loss for unit in units]),
        {name: _mean([unit.gradients[name] for unit in units]) for name in first.gradients},
        {
            name: last.buffers[name] if name in accumulated else _mean([unit.buffers[name] for unit in units])
            for name in first.buffers
        },
    )


def _mean(parts: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(parts)).mean(0) if parts[0].is_floating_point() else parts[0]
