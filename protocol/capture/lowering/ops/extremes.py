"""The largest and the smallest elements along axes, and their indices."""

from __future__ import annotations

import torch

from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.ops.operands import reshaped
from protocol.capture.lowering.ops.rows import Axes, largest_of_rows, rows_of, smallest_of_rows
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library import sums

aten = torch.ops.aten
LOW_BITS = 12
"""An i32 is split into this many low bits and 20 high bits, so that both parts are exact in f32."""


@lowers(aten.amax.default, aten.max.default, aten.amin.default, aten.min.default)
def extreme(
    lowering: Lowering, node: torch.fx.Node, x: View, axes: Axes = None, _keepdim: bool = False
) -> View:
    """The maximum or minimum; for f32, NaN if any element is NaN."""
    up = node.target in (aten.amax.default, aten.max.default)
    return reshaped(lowering, node, _values(lowering, _rows(lowering, x, axes), up))


@lowers(aten.max.dim, aten.min.dim)
def extreme_and_place(
    lowering: Lowering, node: torch.fx.Node, x: View, axis: int, _keepdim: bool = False
) -> tuple[View, View]:
    """The maximum or minimum along an axis, and the lowest index at which it occurs. If there is a NaN, the
    result is NaN and the index of the first NaN.
    """
    rows, up = _rows(lowering, x, axis), node.target is aten.max.dim
    shape = tuple(node.meta["val"][0].shape)
    found = _values(lowering, rows, up), _places(lowering, rows, up)
    value, place = (View.of(v).apply(lowering.builder, aten.view.default, shape) for v in found)
    return value, place


@lowers(aten.argmax.default, aten.argmin.default)
def position(
    lowering: Lowering, node: torch.fx.Node, x: View, axis: int | None = None, _keepdim: bool = False
) -> View:
    """The index of the first NaN. If there is no NaN, the lowest index at which the maximum or minimum occurs."""
    rows = _rows(lowering, x, axis)
    return reshaped(lowering, node, _places(lowering, rows, node.target is aten.argmax.default))


def _rows(lowering: Lowering, x: View, axes: Axes) -> Value:
    """The elements as a matrix [kept elements, reduced elements], with one row for each element of the
    result. Its type is f32 if x is f32, otherwise i32.
    """
    rows = rows_of(lowering, x, axes).elements(lowering.builder)
    return rows if rows.dtype is DType.F32 else lowering.builder.cast(rows, DType.I32)


def _values(lowering: Lowering, rows: Value, up: bool) -> Value:
    b = lowering.builder
    if rows.dtype is DType.F32:
        return largest_of_rows(b, rows) if up else smallest_of_rows(b, rows)
    high, low = _extreme_parts(b, rows, up)
    found = b.or_(b.shl(b.f32_to_i32(high), b.i32(LOW_BITS)), b.f32_to_i32(largest_of_rows(b, low)))
    return found if up else _reversed(b, found)


def _places(lowering: Lowering, rows: Value, up: bool) -> Value:
    b = lowering.builder
    if rows.dtype is DType.F32:
        return lowering.call(sums.argmax_rows, rows if up else b.neg(rows))
    return lowering.call(sums.argmax_rows, _extreme_parts(b, rows, up)[1])


def _extreme_parts(b: Builder, rows: Value, up: bool) -> tuple[Value, Value]:
    """For i32 rows [M, K]: each row's largest high part, f32 [M, 1], and the low parts, f32 [M, K].

    The low part of an element with a smaller high part is -1. For the minimum (not `up`), the elements are
    complemented first, which reverses their order.
    """
    rows = rows if up else _reversed(b, rows)
    high = b.i32_to_f32(b.shr(rows, b.i32(LOW_BITS)))
    low = b.i32_to_f32(b.and_(rows, b.i32((1 << LOW_BITS) - 1)))
    largest = largest_of_rows(b, high)
    return largest, b.select(b.eq(high, largest), low, b.constant(DType.F32, (), -1.0))


def _reversed(b: Builder, x: Value) -> Value:
    return b.xor(x, b.i32(-1))
