"""Helpers for rules that reduce axes. They arrange the elements of a tensor in rows, so that each row is
reduced to one element, and find each row's largest and smallest element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value

aten = torch.ops.aten
Axes = Sequence[int] | int | None


def rows_of(lowering: Lowering, x: View, axes: Axes) -> View:
    """The elements of `x` as a matrix. The first axis of the matrix combines the axes of `x` that are kept.
    The second axis combines the axes that are reduced (`axes`).
    """
    chosen = axes_of(x, axes)
    kept = [axis for axis in range(len(x.shape)) if axis not in chosen]
    length = math.prod(x.shape[axis] for axis in chosen)
    permuted = x.apply(lowering.builder, aten.permute.default, kept + chosen)
    return permuted.apply(lowering.builder, aten.view.default, (-1, length))


def axes_of(x: View, axes: Axes) -> list[int]:
    """The axes, sorted and counted from the front; None or an empty list means all of them."""
    rank = len(x.shape)
    given = [axes] if isinstance(axes, int) else axes
    return sorted(axis % rank for axis in given) if given and rank else list(range(rank))


def largest_of_rows(b: Builder, rows: Value) -> Value:
    """Row maxima of f32 [M, K], as [M, 1]; NaN if any element is NaN."""
    return b.max(b.pad_rows(rows, -math.inf))


def smallest_of_rows(b: Builder, rows: Value) -> Value:
    """Row minima of f32 [M, K], as [M, 1]; NaN if any element is NaN; zero is always +0."""
    return b.add(b.neg(largest_of_rows(b, b.neg(rows))), b.constant(DType.F32, (), 0.0))
