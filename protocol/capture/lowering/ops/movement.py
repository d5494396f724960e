"""Data-independent movement of elements: splitting, concatenation, padding, flipping, repetition."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from protocol.capture.lowering.concatenation import concatenated
from protocol.capture.lowering.context import Lowering, Scalar
from protocol.capture.lowering.ops.operands import shaped
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.library.rows import count_up

aten = torch.ops.aten


@lowers(aten.split.Tensor, aten.split_with_sizes.default, aten.unsafe_split.Tensor, aten.unbind.int)
def pieces(
    lowering: Lowering, node: torch.fx.Node, x: View, sizes: int | Sequence[int] = 0, axis: int = 0
) -> tuple[View, ...]:
    """The parts of x along an axis, in order, as views. A split gives slices. `unbind` gives one view per
    index, without the axis. The axis of an `unbind` arrives as `sizes`.
    """
    b = lowering.builder
    if node.target is aten.unbind.int:
        axis = int(sizes)  # type: ignore[arg-type]
        return tuple(x.apply(b, aten.select.int, axis, k) for k in range(x.shape[axis]))
    whole = x.shape[axis]
    if isinstance(sizes, int):
        sizes = [min(sizes, whole - start) for start in range(0, whole, sizes)]
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return tuple(
        x.apply(b, aten.slice.Tensor, axis, start, start + size) for start, size in zip(starts, sizes)
    )


@lowers(aten.cat.default)
def concatenate(lowering: Lowering, node: torch.fx.Node, parts: Sequence[View | None], axis: int = 0) -> View:
    """Tensors concatenated along an axis; those without elements are ignored."""
    dtype = lowering.dtype_of(node)
    values = [lowering.elements(x, dtype) for x in parts if x is not None and 0 not in x.shape]
    return View.of(concatenated(lowering.builder, values, axis))


@lowers(aten.stack.default)
def stack(lowering: Lowering, node: torch.fx.Node, parts: Sequence[View], axis: int = 0) -> View:
    """Tensors concatenated along a new axis."""
    axis %= len(parts[0].shape) + 1
    apart = [x.apply(lowering.builder, aten.unsqueeze.default, axis) for x in parts]
    return concatenate(lowering, node, apart, axis)


@lowers(aten.constant_pad_nd.default)
def pad(lowering: Lowering, _: torch.fx.Node, x: View, widths: Sequence[int], value: Scalar = 0) -> View:
    """x padded with one value; widths start with the last axis, and negative ones crop."""
    b = lowering.builder
    rank = len(x.shape)
    sides = [(0, 0)] * (rank - len(widths) // 2) + [
        (widths[k], widths[k + 1]) for k in range(len(widths) - 2, -1, -2)
    ]
    for axis, (low, high) in enumerate(sides):
        stop = x.shape[axis] + min(high, 0)
        x = x.apply(b, aten.slice.Tensor, axis, max(-low, 0), stop)
    sides = [(max(low, 0), max(high, 0)) for low, high in sides]
    if not any(low + high for low, high in sides):
        return x
    shape = [low + size + high for size, (low, high) in zip(x.shape, sides)]
    number = float(value) if x.dtype is DType.F32 else int(value)
    return View.of(b.pad(x.elements(b), shape, [low for low, _high in sides], number))


@lowers(aten.flip.default)
def flip(lowering: Lowering, _: torch.fx.Node, x: View, axes: Sequence[int]) -> View:
    """The elements with some axes reversed."""
    if not axes or not x.shape:
        return x
    strides, offset = list(x.strides), x.offset
    for axis in axes:
        offset += (x.shape[axis] - 1) * strides[axis]
        strides[axis] = -strides[axis]
    return View.of(lowering.builder.strided(x.value, x.shape, strides, offset))


@lowers(aten.roll.default)
def roll(
    lowering: Lowering, node: torch.fx.Node, x: View, shifts: Sequence[int], axes: Sequence[int] = ()
) -> View:
    """Elements shifted cyclically along axes; without axes, all elements are shifted as one row."""
    b = lowering.builder
    if not axes:
        row = roll(lowering, node, x.apply(b, aten.view.default, (-1,)), shifts, [0])
        return row.apply(b, aten.view.default, x.shape)
    for shift, axis in zip(shifts, axes):
        cut = -shift % x.shape[axis]
        if cut:
            halves = [
                x.apply(b, aten.slice.Tensor, axis, cut, x.shape[axis]),
                x.apply(b, aten.slice.Tensor, axis, 0, cut),
            ]
            x = View.of(b.concat([half.elements(b) for half in halves], axis))
    return x


@lowers(aten.repeat.default)
def repeat(lowering: Lowering, _: torch.fx.Node, x: View, times: Sequence[int]) -> View:
    """The tensor repeated along every axis; new axes are in front."""
    b = lowering.builder
    shape = (1,) * (len(times) - len(x.shape)) + x.shape
    apart = [part for size in shape for part in (1, size)]
    wide = [part for size, count in zip(shape, times) for part in (count, size)]
    whole = x.apply(b, aten.view.default, apart).apply(b, aten.expand.default, wide)
    return whole.apply(b, aten.view.default, [size * count for size, count in zip(shape, times)])


@lowers(aten.tril.default)
def lower_triangle(lowering: Lowering, node: torch.fx.Node, x: View, diagonal: int = 0) -> View:
    """x with zeros above a diagonal of the last two axes."""
    return _triangle(lowering, node, x, lower=True, diagonal=diagonal)


@lowers(aten.triu.default)
def upper_triangle(lowering: Lowering, node: torch.fx.Node, x: View, diagonal: int = 0) -> View:
    """x with zeros below a diagonal of the last two axes."""
    return _triangle(lowering, node, x, lower=False, diagonal=diagonal)


def _triangle(lowering: Lowering, node: torch.fx.Node, x: View, *, lower: bool, diagonal: int) -> View:
    """x where column - row <= diagonal (>= for the upper triangle), else 0."""
    b = lowering.builder
    rows, columns = x.shape[-2:]
    bound = b.add(b.reshape(count_up(b, rows), (rows, 1)), b.i32(diagonal))
    place = count_up(b, columns)
    kept = b.le(place, bound) if lower else b.le(bound, place)
    zero = lowering.constant(0, x.dtype).value
    return shaped(lowering, node, View.of(b.select(kept, x.broadcast(b), zero)))
