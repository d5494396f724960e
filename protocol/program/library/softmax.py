"""`softmax` and `log_softmax` along the last axis, and their gradients: arithmetic.md sections 5 and 6."""

from __future__ import annotations

import math

from torch import Tensor

from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.elementary import exp, log
from protocol.program.library.function import define_by_body
from protocol.program.library.rows import cut_rows, sum_last


def _softmax(x: Tensor, *, safe: bool) -> Tensor | None:
    fused = fused_for(x)
    return None if fused is None else fused.softmax(x, safe)


@define_by_body("softmax", compiled=_softmax, rows=1)
def softmax(b: Builder, x: Value, *, safe: bool) -> Value:
    """exp(x - max) / sum(exp(x - max)) for every row of f32 [… N]. If the maximum is infinite, the row is
    NaN.

    With `safe`, a row whose elements are all -inf gives zeros, as in torch's `_safe_softmax`.
    """
    largest = b.max(b.pad_rows(x, -math.inf))
    powers = exp.call(b, b.sub(x, largest))
    result = b.div(powers, sum_last(b, powers))
    if not safe:
        return result
    nothing = b.eq(largest, b.constant(DType.F32, (), -math.inf))
    return b.select(nothing, b.constant(DType.F32, (), 0.0), result)


def _softmax_grad(g: Tensor, y: Tensor) -> Tensor | None:
    fused = fused_for(g)
    return None if fused is None else fused.softmax_grad(g, y)


@define_by_body("softmax_grad", compiled=_softmax_grad, rows=2)
def softmax_grad(b: Builder, g: Value, y: Value) -> Value:
    """y (g - sum(g y)) for every row. `y` is the result of `softmax`, and `g` is its gradient. `g` and `y`
    are f32 [… N].
    """
    return b.mul(y, b.sub(g, sum_last(b, b.mul(g, y))))


def _log_softmax(x: Tensor) -> Tensor | None:
    fused = fused_for(x)
    return None if fused is None else fused.log_softmax(x)


@define_by_body("log_softmax", compiled=_log_softmax, rows=1)
def log_softmax(b: Builder, x: Value) -> Value:
    """x - max - log(sum(exp(x - max))) for every row of f32 [… N]. If the maximum is infinite, the row is NaN."""
    shifted = b.sub(x, b.max(b.pad_rows(x, -math.inf)))
    result = b.sub(shifted, log.call(b, sum_last(b, exp.call(b, shifted))))
    return cut_rows(b, result, x.shape[-1])


def _log_softmax_grad(g: Tensor, y: Tensor) -> Tensor | None:
    fused = fused_for(g)
    return None if fused is None else fused.log_softmax_grad(g, y)


@define_by_body("log_softmax_grad", compiled=_log_softmax_grad, rows=2)
def log_softmax_grad(b: Builder, g: Value, y: Value) -> Value:
    """g - exp(y) * sum(g) for every row. `y` is the result of `log_softmax`, and `g` is its gradient. `g` and
    `y` are f32 [… N].
    """
    return b.sub(g, b.mul(exp.call(b, y), sum_last(b, g)))
