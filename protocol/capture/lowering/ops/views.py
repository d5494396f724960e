"""View operations, which need no instruction (see `lowering.views`), and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.library.rows import count_up

aten = torch.ops.aten


@lowers(aten.detach.default, aten.alias.default, aten.clone.default, aten.lift_fresh_copy.default)
def same(_: Lowering, __: torch.fx.Node, x: View, **___: Any) -> View:
    """The same elements; `clone`'s memory format has no meaning in a program."""
    return x


@lowers(
    aten.t.default,
    aten.transpose.int,
    aten.permute.default,
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.expand.default,
    aten.slice.Tensor,
    aten.select.int,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.unsqueeze.default,
    aten.diagonal.default,
    aten.unfold.default,
)
def view(lowering: Lowering, node: torch.fx.Node, x: View, *args: Any, **kwargs: Any) -> View:
    """The result of an ATen view operation: an affine map of indices, which torch computes on a meta tensor."""
    operation = node.target
    if operation in (aten._unsafe_view.default, aten.reshape.default):
        operation = aten.view.default
    return x.apply(lowering.builder, operation, *args, **kwargs)  # type: ignore[arg-type]


@lowers(aten.slice_backward.default)
def slice_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    shape: Sequence[int],
    axis: int,
    start: int,
    __: int,
    step: int,
) -> View:
    """Zeros with the gradient at the slice; a slice with steps also has zeros between its elements."""
    b = lowering.builder
    axis %= len(shape)
    start, _stop, _step = slice(start, None).indices(shape[axis])
    if step != 1:
        apart = g.apply(b, aten.unsqueeze.default, axis + 1)
        wide = [*apart.shape[: axis + 1], step, *apart.shape[axis + 2 :]]
        spread = View.of(b.pad(apart.elements(b), wide, [0] * len(wide), 0.0))
        flat = spread.apply(b, aten.view.default, [*g.shape[:axis], -1, *g.shape[axis + 1 :]])
        g = flat.apply(b, aten.slice.Tensor, axis, 0, shape[axis] - start)
    return _inside_zeros(lowering, g, shape, axis, start)


@lowers(aten.select_backward.default)
def select_grad(
    lowering: Lowering, _: torch.fx.Node, g: View, shape: Sequence[int], axis: int, index: int
) -> View:
    """Zeros with the gradient at the index."""
    one = g.apply(lowering.builder, aten.unsqueeze.default, axis % len(shape))
    return _inside_zeros(lowering, one, shape, axis, index)


@lowers(aten.diagonal_backward.default)
def diagonal_grad(
    lowering: Lowering, _: torch.fx.Node, g: View, shape: Sequence[int], offset: int, first: int, second: int
) -> View:
    """Zeros with the gradient on a diagonal. The gradient is repeated along a new axis; then all elements are
    replaced by zeros except those where row + offset = column.
    """
    b = lowering.builder
    first, second = first % len(shape), second % len(shape)
    rows, columns = shape[first], shape[second]
    low = max(-offset, 0)
    rest = [axis for axis in range(len(shape)) if axis not in (first, second)]
    along = b.pad(g.elements(b), (*g.shape[:-1], rows), [0] * len(rest) + [low], 0.0)
    place = b.add(b.reshape(count_up(b, rows), (rows, 1)), b.i32(offset))
    hit = b.eq(count_up(b, columns), place)
    table = b.select(hit, b.reshape(along, (*along.shape, 1)), b.constant(DType.F32, (), 0.0))
    order = [*rest, first, second]
    back = [order.index(axis) for axis in range(len(shape))]
    return View.of(table).apply(b, aten.permute.default, back)


def _inside_zeros(lowering: Lowering, g: View, shape: Sequence[int], axis: int, start: int) -> View:
    if 0 in g.shape:
        return View.of(lowering.builder.constant(DType.F32, tuple(shape), 0.0))
    axis %= len(shape)
    low = [0] * len(shape)
    low[axis] = start if start >= 0 else start + shape[axis]
    return View.of(lowering.builder.pad(g.elements(lowering.builder), shape, low, 0.0))
