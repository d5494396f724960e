"""Operations that select elements by integer data: gathers, and sums by index, which are the gradients of
gathers (arithmetic.md section 5).

Some writes replace elements instead of adding to them. These are refused if two values could go to the same
place, since torch does not define which value remains there (arithmetic.md section 9, point 8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.context import Lowering, Scalar
from protocol.capture.lowering.ops.operands import binary, require_f32, shaped
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Value
from protocol.program.library import embedding
from protocol.program.library.rows import count_up
from protocol.program.types import Shape, broadcast_shape, contiguous_strides

aten = torch.ops.aten
Indices = Sequence[View | None]
DUPLICATES = "add up with index_add, scatter_add or index_put(accumulate=True), or choose with torch.where"
LARGEST = 2**31
"""An indexed tensor must have fewer elements than this, since flat indices are i32."""


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def index(lowering: Lowering, _: torch.fx.Node, x: View, indices: Indices) -> View:
    """x[i, :, j, …] for integer tensors i, j, …, which broadcast; negative indices count from the end."""
    chosen = _Chosen(lowering, x.shape, indices)
    b = lowering.builder
    table = x.apply(b, aten.permute.default, chosen.axes + chosen.rest)
    rows = b.reshape(table.elements(b), (chosen.rows, *chosen.kept))
    return View.of(b.gather(rows, chosen.row)).apply(b, aten.permute.default, chosen.to_result)


@lowers(aten.index_select.default)
def index_select(lowering: Lowering, node: torch.fx.Node, x: View, axis: int, chosen: View) -> View:
    """The slices of x at some indices along an axis."""
    if not x.shape:  # the only index is 0
        return x
    return index(lowering, node, x, _along(lowering, x, axis, chosen))


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def index_put(
    lowering: Lowering, node: torch.fx.Node, x: View, indices: Indices, values: View, accumulate: bool = False
) -> View:
    """x with `values` added at x[i, :, j, …], or x with one value written where a mask holds."""
    if not accumulate and len(indices) == 1 and indices[0] is not None and indices[0].dtype is DType.BOOL:
        return _masked(lowering, node, x, indices[0], values)
    if not accumulate:
        raise Unsupported("without adding up", DUPLICATES)
    b = lowering.builder
    chosen = _Chosen(lowering, x.shape, indices)
    shape = [(chosen.row.shape + chosen.kept)[axis] for axis in chosen.to_result]
    back = [chosen.to_result.index(axis) for axis in range(len(shape))]
    given = values.apply(b, aten.expand.default, shape).apply(b, aten.permute.default, back)
    width = math.prod(chosen.kept)
    table = b.reshape(given.elements(b), (chosen.row.type.elements, width))
    total = _added(lowering, table, b.reshape(chosen.row, table.shape[:1]), chosen.rows)
    permuted = View.of(b.reshape(total, [x.shape[axis] for axis in chosen.axes + chosen.rest]))
    order = chosen.axes + chosen.rest
    total_view = permuted.apply(b, aten.permute.default, [order.index(axis) for axis in range(len(order))])
    return binary(lowering, node, x, total_view, b.add)


@lowers(aten.index_add.default)
def index_add(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    axis: int,
    chosen: View,
    values: View,
    *,
    alpha: Scalar = 1,
) -> View:
    """x with slices of `values` added at some indices along an axis."""
    if alpha != 1:
        raise Unsupported("with a factor", "multiply the values first")
    if not x.shape:  # the only index is 0
        one = values.apply(lowering.builder, aten.view.default, ())
        return binary(lowering, node, x, one, lowering.builder.add)
    return index_put(lowering, node, x, _along(lowering, x, axis, chosen), values, True)


@lowers(aten.gather.default)
def gather(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    axis: int,
    chosen: View,
    *,
    sparse_grad: bool = False,  # noqa: ARG001
) -> View:
    """Element […, k, …] of the result is x[…, chosen[…, k, …], …]. `chosen` gives the index along `axis`."""
    if not x.shape:  # the only index is 0
        return shaped(lowering, node, x)
    b = lowering.builder
    flat = b.reshape(x.elements(b), (math.prod(x.shape),))
    return View.of(b.gather(flat, _flat_index(lowering, x.shape, axis, chosen)))


@lowers(aten.scatter_add.default)
def scatter_add(
    lowering: Lowering, node: torch.fx.Node, x: View, axis: int, chosen: View, values: View
) -> View:
    """x with `values` added. Each value is added to the element of x that `gather` would read for the same
    entry of `chosen`.
    """
    b = lowering.builder
    if not x.shape and not chosen.shape:  # the only index is 0
        return binary(lowering, node, x, values, b.add)
    part = values
    for k, size in enumerate(chosen.shape):
        part = part.apply(b, aten.slice.Tensor, k, 0, size)
    row = _flat_index(lowering, x.shape, axis, chosen)
    count, elements = row.type.elements, math.prod(x.shape)
    table = b.reshape(part.elements(b), (count, 1))
    total = b.reshape(_added(lowering, table, b.reshape(row, (count,)), elements), x.shape)
    return binary(lowering, node, x, View.of(total), b.add)


@lowers(aten.scatter.src, aten.scatter.value)
def scatter(
    lowering: Lowering, node: torch.fx.Node, x: View, axis: int, chosen: View, value: View | Scalar
) -> View:
    """x with one element of every row along `axis` replaced by `value`. `chosen` holds the index of this
    element. The gradient of a maximum needs this.
    """
    b = lowering.builder
    if not x.shape and not chosen.shape:  # the only index is 0
        return shaped(lowering, node, View.of(lowering.operand(value, x.dtype)))
    if not x.shape:
        raise Unsupported("of a single number", "unsqueeze it first")
    axis %= len(x.shape)
    one = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    if chosen.shape != one:
        raise Unsupported("of more than one element of a row", DUPLICATES)
    place = b.reshape(count_up(b, x.shape[axis]), (x.shape[axis], *(1 for _ in x.shape[axis + 1 :])))
    dtype = x.dtype
    hit = b.eq(place, lowering.operand(chosen, DType.I32))
    if isinstance(value, View):
        for k, size in enumerate(one):
            value = value.apply(b, aten.slice.Tensor, k, 0, size)
    result = b.select(hit, lowering.operand(value, dtype), lowering.operand(x, dtype))
    return shaped(lowering, node, View.of(result))


@lowers(aten.unfold_backward.default)
def unfold_grad(
    lowering: Lowering, _: torch.fx.Node, g: View, shape: Sequence[int], axis: int, size: int, step: int
) -> View:
    """The gradients of windows, summed where the windows overlap."""
    b = lowering.builder
    if not shape:
        return g.apply(b, aten.view.default, ())
    axis %= len(shape)
    rest = [k for k in range(len(shape)) if k != axis]
    windows = g.shape[axis]
    permuted = g.apply(b, aten.permute.default, [axis, len(shape), *rest])
    table = b.reshape(permuted.elements(b), (windows * size, math.prod(shape[k] for k in rest)))
    start = b.reshape(b.mul(count_up(b, windows), b.i32(step)), (windows, 1))
    row = b.reshape(b.add(start, count_up(b, size)), (windows * size,))
    total = _added(lowering, table, row, shape[axis])
    moved = View.of(b.reshape(total, [shape[k] for k in (axis, *rest)]))
    return moved.apply(b, aten.movedim.int, 0, axis)


def _masked(lowering: Lowering, node: torch.fx.Node, x: View, mask: View, value: View) -> View:
    """x with a single value written wherever a mask over its leading axes is true."""
    if math.prod(value.shape) != 1:
        raise Unsupported("of several values by a mask", "choose with torch.where")
    b = lowering.builder
    whole = mask.apply(b, aten.view.default, (*mask.shape, *(1 for _ in x.shape[len(mask.shape) :])))
    one = value.apply(b, aten.view.default, ())
    result = b.select(whole.broadcast(b), lowering.operand(one, x.dtype), x.broadcast(b))
    return shaped(lowering, node, View.of(result))


class _Chosen:
    """The elements that `x[i, :, j]` selects, as rows of a reordered x: the indexed `axes` of x come first,
    then the other axes, `rest`.

    `row`, i32, holds the number of each selected row, in the broadcast shape of the indices. The selected
    elements have the axes of `row`, followed by `rest`. `to_result` permutes these axes to torch's order: if
    the indexed axes are adjacent, the axes of `row` go to the place of the first indexed axis, otherwise to
    the front.
    """

    def __init__(self, lowering: Lowering, shape: Shape, indices: Indices) -> None:
        b = lowering.builder
        given = {axis: view for axis, view in enumerate(indices) if view is not None}
        if any(view.dtype is not DType.I32 for view in given.values()):
            raise Unsupported("by a mask", "use torch.where in place of boolean indexing")
        self.axes = list(given)
        self.rest = [axis for axis in range(len(shape)) if axis not in given]
        sizes = tuple(shape[axis] for axis in self.axes)
        self.rows = math.prod(sizes)
        self.kept = tuple(shape[axis] for axis in self.rest)
        self.row = _row(lowering, sizes, [view.elements(b) for view in given.values()])
        rank = self.row.type.rank
        neighbours = self.axes == list(range(self.axes[0], self.axes[0] + len(self.axes)))
        before = self.axes[0] if neighbours else 0
        behind = list(range(rank, rank + len(self.rest)))
        self.to_result = behind[:before] + list(range(rank)) + behind[before:]


def _row(lowering: Lowering, sizes: Shape, indices: list[Value]) -> Value:
    """The flat index of [i, j, …] in a table of `sizes`. Where [i, j, …] lies outside the table, it is -1,
    which reads zeros.
    """
    b = lowering.builder
    _require_small(math.prod(sizes))
    shape = broadcast_shape(value.shape for value in indices)
    total = inside = None
    for value, size, stride in zip(indices, sizes, contiguous_strides(sizes)):
        place = b.select(b.lt(value, b.i32(0)), b.add(value, b.i32(size)), value)
        fits = b.and_(b.le(b.i32(0), place), b.lt(place, b.i32(size)))
        term = place if stride == 1 else b.mul(place, b.i32(stride))
        total = term if total is None else b.add(total, term)
        inside = fits if inside is None else b.and_(inside, fits)
    if total is None or inside is None:
        raise Unsupported("without an index", "index with at least one tensor")
    return b.expand(b.select(inside, total, b.i32(embedding.NOWHERE)), shape)


def _flat_index(lowering: Lowering, shape: Shape, axis: int, chosen: View) -> Value:
    """The flat index of every element that `chosen` selects along an axis of a tensor of this `shape`. It is
    -1 where `chosen` is outside the axis.
    """
    b = lowering.builder
    _require_small(math.prod(shape))
    if not shape:
        raise Unsupported("of a single number", "unsqueeze it first")
    axis %= len(shape)
    strides = contiguous_strides(shape)
    given = lowering.elements(chosen, DType.I32)
    inside = b.and_(b.le(b.i32(0), given), b.lt(given, b.i32(shape[axis])))
    total = b.mul(given, b.i32(strides[axis]))
    for k, size in enumerate(chosen.shape):
        if k != axis and size > 1:
            place = b.mul(count_up(b, size), b.i32(strides[k]))
            total = b.add(total, b.reshape(place, (size, *(1 for _ in chosen.shape[k + 1 :]))))
    return b.select(inside, total, b.i32(embedding.NOWHERE))


def _added(lowering: Lowering, table: Value, row: Value, rows: int) -> Value:
    """Sums of rows of an f32 `table`. For each index r from 0 to `rows` - 1, row r of the result is the sum
    of all table[n] for which row[n] is r.
    """
    require_f32(View.of(table))
    return lowering.call(embedding.embedding_grad, table, row, rows=rows)


def _along(lowering: Lowering, x: View, axis: int, chosen: View) -> Indices:
    """`chosen` as indices along one axis, in the form that `index` takes; a single number becomes a row of one."""
    row = chosen if chosen.shape else chosen.apply(lowering.builder, aten.view.default, (1,))
    return [None] * (axis % len(x.shape)) + [row]


def _require_small(elements: int) -> None:
    if elements >= LARGEST:
        raise Unsupported(f"of {elements} elements", "index tensors of less than 2^31 elements")
