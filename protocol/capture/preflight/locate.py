"""Where a difference begins: every operation of the traced graph, given the exact step's own operands, beside torch.

An operation that is far from torch on the same operands computes something else; if there is none, the difference is
what the number formats make of a long chain of operations, and more bits help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg
from torch.utils._pytree import tree_map

from protocol.capture.analysis.roles import OPERANDS, Roles
from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.lower import lower
from protocol.capture.lowering.views import View
from protocol.capture.preflight.reference import Masks, call, in_type, inputs_of
from protocol.capture.tracing.sources import source_of
from protocol.capture.tracing.tracer import TracedStep
from protocol.capture.types import tensor_type
from protocol.numerics.types import DType
from protocol.program.builder import Builder
from protocol.program.execute import Interpreter
from protocol.program.library import fusions, hints, kernels
from protocol.program.step import State
from protocol.program.types import TensorType

aten = torch.ops.aten
MOST_ERROR = 0.02
"""Relative error of an operation that no number format explains."""
MULTILINEAR = {
    *OPERANDS,
    *(aten.convolution.default, aten.convolution_backward.default),
    *(aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim),
}
"""Operations whose terms may cancel. Their error is measured beside the result for the operands' absolute values."""


@dataclass(frozen=True)
class LocalError:
    """One operation on the exact step's operands: its error relative to what torch computes in float64."""

    operation: str
    source: str
    error: float


def local_errors(
    traced: TracedStep, roles: Roles, state: State, batch: Mapping[str, Tensor], masks: Masks, counter: int
) -> Iterator[LocalError]:
    """The error of every operation in the order of the graph."""
    exact = _values(traced, roles, inputs_of(traced, state, batch), state["key"], counter)
    known: dict[Node, Any] = {}
    for node in traced.graph.nodes:
        if node.op == "output":
            return
        if node.op == "placeholder":
            known[node] = in_type(exact[node], torch.float64)
            continue
        if node.op == "get_attr":
            known[node] = in_type(getattr(traced.graph.owning_module, node.target), torch.float64)
            continue
        args, kwargs = (map_arg(x, known.__getitem__) for x in (node.args, node.kwargs))
        true = call(node.target, args, kwargs, torch.float64, masks)
        known[node] = true
        if node in exact:
            scale = true
            if node.target in MULTILINEAR:
                scale = call(node.target, *(tree_map(_size, x) for x in (args, kwargs)), torch.float64, masks)
            yield LocalError(str(node.target), source_of(node), _error(exact[node], true, scale))
            known[node] = in_type(exact[node], torch.float64)


def _values(
    traced: TracedStep, roles: Roles, inputs: Sequence[Tensor], key: Tensor, counter: int
) -> dict[Node, Tensor]:
    """What the exact step computes for every node that is one tensor."""
    graph = traced.graph
    nodes = [node for node in graph.nodes if node.op == "call_function" and isinstance(node.meta["val"], Tensor)]
    output = graph.output_node()
    before = output.args
    output.args = (tuple(nodes),)
    try:
        b = Builder("laid_open")
        types = [TensorType(tensor_type(t).dtype, tuple(t.shape)) for t in inputs]
        given = [View.of(b.input(type_)) for type_ in types]
        lowering = Lowering(b, roles, b.input(TensorType(DType.U32, (2,))), b.input(TensorType(DType.U32, ())))
        for view in lower(lowering, graph, given):
            b.output(lowering.elements(view))
    finally:
        output.args = before
    program = b.build()
    interpreter = Interpreter(kernels(program, hints(program)), fuse=fusions)
    stored = [t.to(torch.int32) if t.dtype is torch.int64 else t for t in inputs]
    step = torch.tensor(counter, dtype=torch.int64).to(torch.int32)
    found = interpreter.run(program, (*stored, key, step))
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    return dict(zip(placeholders, inputs)) | dict(zip(nodes, found))


def _size(value: Any) -> Any:
    return value.abs() if isinstance(value, Tensor) and value.is_floating_point() else value


def _error(ours: Tensor, true: Tensor, scale: Tensor) -> float:
    """The norm of the error beside that of `scale`; of types without fractions the share of wrong elements."""
    if not true.is_floating_point():
        return float((ours.long() != true.long()).double().mean()) if true.numel() else 0.0
    finite = true.isfinite()
    if not torch.equal(finite, ours.isfinite()):
        return float("inf")
    error = (ours.double() - true)[finite].norm()
    return float(error / scale[scale.isfinite()].norm().clamp_min(1e-30)) if float(error) else 0.0
