"""Finds where a difference begins: compares every operation of the traced graph with torch, on the exact
step's operands.

If the result of an operation is far from torch's result on the same operands, the program does not compute
the same operation as torch. If the results of all operations are close, the difference comes from the number
formats, over a long chain of operations. In this case, more bits help.
"""

from __future__ import annotations

import operator
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
from protocol.capture.preflight.reference import Draws, call, in_type, inputs_of
from protocol.capture.tracing.recurrent import OPS
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
"""For any operation, a relative error of the result up to this size can come from number formats alone."""
SUMS = {aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim}
"""Operations whose terms may cancel: their error is measured relative to the sum of the terms' absolute values."""
CONTRACTIONS: Mapping[Any, tuple[int, ...]] = {
    **OPERANDS,
    aten.convolution.default: (0, 1),
    aten.convolution_backward.default: (0, 1, 2),
    OPS.lstm.default: (1, 3),
    OPS.gru.default: (1, 2),
    OPS.rnn.default: (1, 2),
}
"""For each operation that rounds some of its operands: the positions of these operands. Their elements are
rounded to a number of bits that is counted downwards from the largest element of the row or block.
"""
ROUNDING = 2.0**-12
"""Rounding to 13 bits changes an element by at most half of this number, relative to the largest element. No
role has fewer than 13 bits.
"""
UNDERFLOW = 2.0**-100
"""Allowed error per element: products and scales of tiny elements may fall below float32's normal numbers."""
TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True)
class LocalError:
    """How far the result of one operation is off, computed on the exact step's operands. `error` is relative
    to torch's float64 result. `times_explained` is the ratio of the error to the error that the operation's
    number formats explain.
    """

    operation: str
    source: str
    error: float
    times_explained: float


def local_errors(
    traced: TracedStep, roles: Roles, state: State, batch: Mapping[str, Tensor], draws: Draws, counter: int
) -> Iterator[LocalError]:
    """The errors of the operations, in the order of the graph. Operations whose result is not a single
    tensor, or has undefined elements, are left out.
    """
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
        true = call(node.target, args, kwargs, torch.float64, draws)
        known[node] = true
        if node in exact:
            error, size = _error(exact[node], true), _norm(true)
            explained = MOST_ERROR * size + _explained(node, known, draws) + UNDERFLOW * true.numel() ** 0.5
            yield LocalError(
                str(_maker(node).target),
                source_of(node),
                error / max(size, TINY),
                error / max(explained, TINY),
            )
            known[node] = exact[node].to(true.dtype)


def _values(
    traced: TracedStep, roles: Roles, inputs: Sequence[Tensor], key: Tensor, counter: int
) -> dict[Node, Tensor]:
    """The exact step's value of every node that is a single tensor."""
    graph = traced.graph
    nodes = [node for node in graph.nodes if node.op == "call_function" and _is_one_tensor(node)]
    output = graph.output_node()
    before = output.args
    output.args = (tuple(nodes),)
    try:
        b = Builder("laid_open")
        types = [TensorType(tensor_type(t).dtype, tuple(t.shape)) for t in inputs]
        given = [View.of(b.input(type_)) for type_ in types]
        lowering = Lowering(
            b, roles, b.input(TensorType(DType.U32, (2,))), b.input(TensorType(DType.U32, ()))
        )
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


def _is_one_tensor(node: Node) -> bool:
    """Whether a node's result is a single tensor whose elements are defined. Those of `empty` are not."""
    return isinstance(node.meta["val"], Tensor) and "empty" not in str(node.target)


def _maker(node: Node) -> Node:
    """The operation that computes a node; for a `getitem`, the operation with several results."""
    operand = node.args[0] if node.target is operator.getitem else node
    assert isinstance(operand, Node)
    return operand


def _explained(node: Node, known: Mapping[Node, Any], draws: Draws) -> float:
    """The part of the error, as a norm, that can come from cancelling terms or from rounded operands.

    `local_errors` also allows `MOST_ERROR` times the norm of the result.
    """
    maker = _maker(node)
    place = None if maker is node else node.args[1]
    args, kwargs = (map_arg(x, known.__getitem__) for x in (maker.args, maker.kwargs))
    terms = [tree_map(_absolute, x) for x in args]

    def norm(of: list[Any]) -> float:
        found = call(maker.target, of, kwargs, torch.float64, draws)
        return _norm(found if place is None else found[place])

    if maker.target in SUMS:
        return MOST_ERROR * norm(terms)
    rounded = CONTRACTIONS.get(maker.target, ())
    return ROUNDING * sum(
        norm([_largest(x) if k == at else x for k, x in enumerate(terms)]) for at in rounded
    )


def _largest(x: Tensor) -> Tensor:
    return torch.full_like(x, float(x.amax()))


def _absolute(value: Any) -> Any:
    return value.abs() if isinstance(value, Tensor) and value.is_floating_point() else value


def _norm(x: Tensor) -> float:
    return (
        float(x[x.isfinite()].double().norm())
        if isinstance(x, Tensor) and x.is_floating_point()
        else float(x.numel())
    )


def _error(ours: Tensor, true: Tensor) -> float:
    """The norm of the error; infinite if `ours` and `true` differ in which elements are finite. Elements of
    `true` that exceed the largest f32 do not count as finite. For integers and bools, the error is the number
    of wrong elements. It is compared with `_norm`, which for these types is the number of all elements.
    """
    if not true.is_floating_point():
        return float((ours.long() != true.long()).sum())
    finite = true.isfinite() & (true.abs() <= torch.finfo(torch.float32).max)
    if not torch.equal(finite, ours.isfinite()):
        return float("inf")
    return float((ours.double() - true)[finite].norm())
