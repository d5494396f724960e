"""Sums, means and arg-max along axes: arithmetic.md section 5."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from protocol.numerics.types import DType
from protocol.program.capture.lowering import Lowering, Unsupported, lowers
from protocol.program.capture.views import View
from protocol.program.library import sums

aten = torch.ops.aten


@lowers(aten.sum.default, aten.sum.dim_IntList)
def sum_(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    axes: Sequence[int] | None = None,
    keepdim: bool = False,  # noqa: ARG001 - the node's shape says it
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001 - so does its type
) -> View:
    """One rounding from the exact fixed-point sum."""
    return _shaped(lowering, node, _sum(lowering, x, axes))


@lowers(aten.mean.default, aten.mean.dim)
def mean(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    axes: Sequence[int] | None = None,
    keepdim: bool = False,  # noqa: ARG001
    *,
    dtype: torch.dtype | None = None,  # noqa: ARG001
) -> View:
    """The sum, rounded, divided by the number of terms, rounded."""
    b = lowering.builder
    count = math.prod(x.shape[axis] for axis in _axes(x, axes))
    total = _sum(lowering, x, axes)
    return _shaped(lowering, node, View.of(b.div(total.elements(b), b.constant(DType.F32, (), float(count)))))


@lowers(aten.argmax.default)
def argmax(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    axis: int | None = None,
    keepdim: bool = False,  # noqa: ARG001
) -> View:
    """The first NaN, else the lowest index of the maximum."""
    rows = _rows(lowering, x, None if axis is None else [axis])
    return _shaped(lowering, node, View.of(lowering.call(sums.argmax_rows, rows.elements(lowering.builder))))


def _sum(lowering: Lowering, x: View, axes: Sequence[int] | None) -> View:
    """f32 [kept elements]; the leading axes of a tensor are summed as columns, all others as rows."""
    b = lowering.builder
    chosen = _axes(x, axes)
    if 0 < len(chosen) < len(x.shape) and chosen == list(range(len(chosen))):
        columns = math.prod(x.shape[len(chosen) :])
        table = x.apply(b, aten.view.default, (-1, columns))
        return View.of(lowering.call(sums.sum_columns, _f32(table).elements(b)))
    return View.of(lowering.call(sums.sum_rows, _f32(_rows(lowering, x, axes)).elements(b)))


def _rows(lowering: Lowering, x: View, axes: Sequence[int] | None) -> View:
    """[kept elements, reduced elements]."""
    chosen = _axes(x, axes)
    kept = [axis for axis in range(len(x.shape)) if axis not in chosen]
    length = math.prod(x.shape[axis] for axis in chosen)
    turned = x.apply(lowering.builder, aten.permute.default, kept + chosen)
    return turned.apply(lowering.builder, aten.view.default, (-1, length))


def _axes(x: View, axes: Sequence[int] | None) -> list[int]:
    """Sorted and counted from the front; none or an empty list is all of them."""
    rank = len(x.shape)
    return sorted(axis % rank for axis in axes) if axes and rank else list(range(rank))


def _f32(x: View) -> View:
    if x.dtype is not DType.F32:
        raise Unsupported(f"on {x.dtype.name.lower()}", "convert with .float() first")
    return x


def _shaped(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    return x.apply(lowering.builder, aten.view.default, tuple(node.meta["val"].shape))
