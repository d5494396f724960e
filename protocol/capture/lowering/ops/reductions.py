"""Sums, means, variances, norms and running sums along axes: arithmetic.md section 5.

The reduced axes are moved to the end, which gives a table [kept, reduced] with one row per result. f32 sums
over leading axes are taken over columns instead.
"""

from __future__ import annotations

import math

import torch

from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.context import Lowering, Scalar
from protocol.capture.lowering.ops.operands import f32, require_f32, reshaped
from protocol.capture.lowering.ops.rows import Axes, axes_of, largest_of_rows, rows_of
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Value
from protocol.program.library import elementary, sums
from protocol.program.library.rows import mean_last, sum_last

aten = torch.ops.aten


@lowers(aten.sum.default, aten.sum.dim_IntList)
def sum_(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    axes: Axes = None,
    _keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001 - given by the node's type
) -> View:
    """The exact fixed-point sum, rounded once; sums of integers and bools are exact."""
    if lowering.dtype_of(node) is DType.I32:
        return reshaped(lowering, node, _count(lowering, x, axes))
    return reshaped(lowering, node, _sum(lowering, _as_f32(lowering, x), axes))


@lowers(aten.mean.default, aten.mean.dim)
def mean(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    axes: Axes = None,
    _keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> View:
    """The rounded sum divided by the number of terms, rounded again."""
    total = _sum(lowering, _as_f32(lowering, x), axes)
    count = math.prod(x.shape[axis] for axis in axes_of(x, axes))
    return reshaped(lowering, node, lowering.builder.div(total, f32(lowering, float(count))))


@lowers(aten.var.correction, aten.std.correction)
def variance(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    axes: Axes = None,
    *,
    correction: Scalar | None = None,
    keepdim: bool = False,  # noqa: ARG001
) -> View:
    """The sum of squared distances from the mean, divided by (terms - correction). For `std`, the square root
    of that.
    """
    squares, _mean = _moments(lowering, x, axes, correction)
    root = node.target is aten.std.correction
    return reshaped(lowering, node, lowering.builder.sqrt(squares) if root else squares)


@lowers(aten.var_mean.correction)
def variance_and_mean(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    axes: Axes = None,
    *,
    correction: Scalar | None = None,
    keepdim: bool = False,  # noqa: ARG001
) -> tuple[View, View]:
    """Variance and mean."""
    shape = tuple(node.meta["val"][0].shape)
    moments = _moments(lowering, x, axes, correction)
    values = [View.of(value).apply(lowering.builder, aten.view.default, shape) for value in moments]
    return values[0], values[1]


@lowers(aten.linalg_vector_norm.default)
def norm(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    order: Scalar = 2,
    axes: Axes = None,
    _keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> View:
    """The norm of order 2, 1 or infinity: the square root of the sum of squares, the sum of magnitudes, or
    the largest magnitude.
    """
    b = lowering.builder
    rows = rows_of(lowering, require_f32(x), axes).elements(b)
    if order == 2:
        return reshaped(lowering, node, b.sqrt(lowering.call(sums.sum_rows, b.mul(rows, rows))))
    if order == 1:
        return reshaped(lowering, node, lowering.call(sums.sum_rows, b.abs(rows)))
    if order == math.inf:
        return reshaped(lowering, node, largest_of_rows(lowering.builder, b.abs(rows)))
    raise Unsupported(f"of order {order}")  # all others are expanded


@lowers(aten.logsumexp.default)
def log_sum_exp(lowering: Lowering, node: torch.fx.Node, x: View, axes: Axes, _keepdim: bool = False) -> View:
    """log(sum(exp(x - m))) + m, where m is the maximum, or 0 if the maximum is infinite."""
    b = lowering.builder
    rows = rows_of(lowering, require_f32(x), axes).elements(b)
    largest = largest_of_rows(lowering.builder, rows)
    infinite = b.eq(b.abs(largest), f32(lowering, math.inf))
    shift = b.select(infinite, f32(lowering, 0.0), largest)
    total = sum_last(b, elementary.exp.call(b, b.sub(rows, shift)))
    return reshaped(lowering, node, b.add(elementary.log.call(b, total), shift))


@lowers(aten.any.default, aten.any.dim, aten.any.dims)
def any_(lowering: Lowering, node: torch.fx.Node, x: View, axes: Axes = None, _keepdim: bool = False) -> View:
    """Whether any element is not zero. With an empty list of axes, every element is tested separately."""
    if _is_empty(axes):
        return _as_bool(lowering, x)
    count = _count(lowering, _as_bool(lowering, x), axes)
    return reshaped(lowering, node, lowering.builder.cast(count, DType.BOOL))


@lowers(aten.all.default, aten.all.dim, aten.all.dims)
def all_(lowering: Lowering, node: torch.fx.Node, x: View, axes: Axes = None, _keepdim: bool = False) -> View:
    """Whether no element is zero. With an empty list of axes, every element is tested separately."""
    if _is_empty(axes):
        return _as_bool(lowering, x)
    b = lowering.builder
    terms = math.prod(x.shape[axis] for axis in axes_of(x, axes))
    return reshaped(lowering, node, b.eq(_count(lowering, _as_bool(lowering, x), axes), b.i32(terms)))


@lowers(aten.cumsum.default)
def cumulative_sum(
    lowering: Lowering,
    _: torch.fx.Node,
    x: View,
    axis: int,
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> View:
    """Running sums. Each sum of floats is an exact fixed-point sum, with one exponent per row, and is rounded
    once; a sum of integers is exact.
    """
    b = lowering.builder
    if not x.shape:
        return x
    last = x.apply(b, aten.transpose.int, axis, -1)
    if x.dtype is DType.F32:
        result = lowering.call(sums.cumulative_sum, last.elements(b))
    else:
        wide = b.pad_rows(b.cast(last.elements(b), DType.I64), 0)
        result = b.slice(b.cast(b.prefix_sum(wide), DType.I32), -1, 0, last.shape[-1])
    return View.of(result).apply(b, aten.transpose.int, axis, -1)


def _sum(lowering: Lowering, x: View, axes: Axes) -> Value:
    """The f32 sum for each kept element. If the reduced axes are the leading ones, but not all axes, each sum
    is over a column of a table. Otherwise each sum is over a row.
    """
    b = lowering.builder
    chosen = axes_of(x, axes)
    if 0 < len(chosen) < len(x.shape) and chosen == list(range(len(chosen))):
        columns = math.prod(x.shape[len(chosen) :])
        table = x.apply(b, aten.view.default, (-1, columns))
        return lowering.call(sums.sum_columns, table.elements(b))
    return lowering.call(sums.sum_rows, rows_of(lowering, x, axes).elements(b))


def _count(lowering: Lowering, x: View, axes: Axes) -> Value:
    """i32 [kept elements, 1]: the exact sum of integers or bools, modulo 2^32."""
    b = lowering.builder
    if x.dtype is DType.F32:
        raise Unsupported("from float32 to an integer", "sum first, then convert")
    rows = b.cast(rows_of(lowering, x, axes).elements(b), DType.I64)
    return b.cast(b.sum(b.pad_rows(rows, 0)), DType.I32)


def _moments(lowering: Lowering, x: View, axes: Axes, correction: Scalar | None) -> tuple[Value, Value]:
    """Variance and mean, both [kept elements, 1]; the default correction is 1, as in torch."""
    b = lowering.builder
    rows = rows_of(lowering, require_f32(x), axes).elements(b)
    mean_ = mean_last(b, rows)
    centred = b.sub(rows, mean_)
    terms = max(0.0, float(rows.shape[-1]) - float(1 if correction is None else correction))
    return b.div(sum_last(b, b.mul(centred, centred)), f32(lowering, terms)), mean_


def _as_f32(lowering: Lowering, x: View) -> View:
    return x if x.dtype is DType.F32 else View.of(lowering.elements(x, DType.F32))


def _is_empty(axes: Axes) -> bool:
    """Whether an empty list of axes is given."""
    return axes is not None and not isinstance(axes, int) and not axes


def _as_bool(lowering: Lowering, x: View) -> View:
    return View.of(lowering.elements(x, DType.BOOL))
