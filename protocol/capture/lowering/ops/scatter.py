"""Operations that write into a part of a tensor, in functionalised form: the result is the whole tensor with
this part replaced.

`h[:, 0] = y` arrives here as `select_scatter(h, y, 1, 0)`. The rules do no arithmetic. They only move
elements, and cast them where types differ.
"""

from __future__ import annotations

import torch

from protocol.capture.expansion.empties import is_overwritten
from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.context import Lowering, Scalar
from protocol.capture.lowering.ops.operands import filled
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View

aten = torch.ops.aten


@lowers(aten.copy.default)
def copy(lowering: Lowering, node: torch.fx.Node, _: View, source: View, non_blocking: bool = False) -> View:  # noqa: ARG001
    """`source`, cast to the type and expanded to the shape of the tensor that it overwrites."""
    b, shape = lowering.builder, tuple(node.meta["val"].shape)
    whole = source if 0 in shape else View.of(lowering.elements(source, lowering.dtype_of(node)))
    return whole.apply(b, aten.expand.default, shape)


@lowers(aten.fill.Scalar, aten.fill.Tensor)
def fill(lowering: Lowering, node: torch.fx.Node, x: View, value: View | Scalar) -> View:
    """A tensor in the shape and type of `x` in which every element is `value`."""
    dtype = lowering.dtype_of(node)
    return copy(lowering, node, x, value if isinstance(value, View) else lowering.constant(value, dtype))


@lowers(aten.zero.default, aten.new_empty.default, aten.new_empty_strided.default)
def zero(lowering: Lowering, node: torch.fx.Node, *_: object, **__: object) -> View:
    """Zeros, also for `new_empty`, whose contents torch leaves undefined until they are written."""
    return filled(lowering, node, 0)


@lowers(aten.empty_like.default, aten.empty.memory_format)
def empty(lowering: Lowering, node: torch.fx.Node, *_: object, **__: object) -> View | None:  # noqa: ARG001
    """None for an uninitialised tensor, such as one of `torch.empty`, if every operation that takes the
    tensor overwrites all its elements. Otherwise raises `Unsupported`.

    Uninitialised tensors that are written part by part have already been replaced by zeros, in
    `expansion.empties`.
    """
    if is_overwritten(node):
        return None
    raise Unsupported("with elements that nobody has written", "use zeros")


@lowers(aten.slice_scatter.default)
def slice_scatter(
    lowering: Lowering,
    _: torch.fx.Node,
    x: View,
    part: View,
    axis: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> View:
    """x with `part` in place of x[start:end] along an axis."""
    if step != 1:
        raise Unsupported(f"a write with step {step}", "write into slices without gaps, or use torch.where")
    axis %= len(x.shape)
    low, high, _step = slice(start, end).indices(x.shape[axis])
    return _replaced(lowering, x, part, axis, low, max(low, high))


@lowers(aten.select_scatter.default)
def select_scatter(lowering: Lowering, _: torch.fx.Node, x: View, part: View, axis: int, index: int) -> View:
    """x with `part` in place of x[index] along an axis."""
    axis %= len(x.shape)
    index %= x.shape[axis]
    one = part.apply(lowering.builder, aten.unsqueeze.default, axis)
    return _replaced(lowering, x, one, axis, index, index + 1)


def _replaced(lowering: Lowering, x: View, part: View, axis: int, low: int, high: int) -> View:
    b = lowering.builder
    if low == high or 0 in x.shape:
        return x
    pieces = [part]
    if low > 0:
        pieces.insert(0, x.apply(b, aten.slice.Tensor, axis, 0, low))
    if high < x.shape[axis]:
        pieces.append(x.apply(b, aten.slice.Tensor, axis, high, x.shape[axis]))
    values = [lowering.elements(piece, x.dtype) for piece in pieces]
    return View.of(values[0] if len(values) == 1 else b.concat(values, axis))
