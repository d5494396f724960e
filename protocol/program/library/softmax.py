"""`softmax` and `log_softmax` along the last axis, and their gradients: arithmetic.md sections 5 and 6."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from protocol.numerics.elementary_torch import exp_f32, log_f32
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.reductions import FLOAT64_TERMS, max_f32
from protocol.numerics.sums import sum_f32
from protocol.numerics.types import DType, canonical
from protocol.program.builder import Builder, Value
from protocol.program.library.blocks import by_rows
from protocol.program.library.elementary import exp, log
from protocol.program.library.function import define
from protocol.program.library.rows import cut_rows, sum_last

POWER_BITS = 29
"""Powers of a row have exponent 1, as the greatest is exactly 1: arithmetic.md section 3 at 30 bits."""


def _rows(kernel: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """A kernel of rows on f32 [… N], in blocks. NaN becomes canonical at the end: nothing before can tell two apart."""
    shape = operands[0].shape
    tables = [x.reshape(-1, shape[-1]) for x in operands]
    return by_rows(lambda *block: (canonical(kernel(*block)),), *tables)[0].reshape(shape)


def _power_sum(powers: Tensor) -> Tensor:
    """`sum_f32` of exp(x - max), whose exponent is known. A row that holds a NaN is NaN in all: its sum is too."""
    if powers.shape[-1] > FLOAT64_TERMS:
        return sum_f32(powers)
    whole = (powers * 2.0**POWER_BITS).round_()
    return (torch.sum(whole, dim=-1, keepdim=True, dtype=torch.float64) * 2.0**-POWER_BITS).to(torch.float32)


def _softmax(x: Tensor, *, safe: bool) -> Tensor:
    fused = fused_for(x)
    if fused is not None:
        return fused.softmax(x, safe)

    def rows(x: Tensor) -> Tensor:
        largest = max_f32(x)
        powers = exp_f32(x - largest)
        result = powers.div_(_power_sum(powers))
        return result.masked_fill_(largest == -math.inf, 0.0) if safe else result

    return _rows(rows, x)


@define("softmax", kernel=_softmax)
def softmax(b: Builder, x: Value, *, safe: bool) -> Value:
    """exp(x - max) / sum(exp(x - max)) for every row of f32 [… N]; NaN where the maximum is infinite.

    With `safe`, a row of -inf alone is zero, as in torch's `_safe_softmax`.
    """
    largest = b.max(b.pad_rows(x, -math.inf))
    powers = exp.call(b, b.sub(x, largest))
    result = b.div(powers, sum_last(b, powers))
    if not safe:
        return result
    nothing = b.eq(largest, b.constant(DType.F32, (), -math.inf))
    return b.select(nothing, b.constant(DType.F32, (), 0.0), result)


def _softmax_grad(g: Tensor, y: Tensor) -> Tensor:
    fused = fused_for(g)
    if fused is not None:
        return fused.softmax_grad(g, y)
    return _rows(lambda g, y: (g - sum_f32(g * y)).mul_(y), g, y)


@define("softmax_grad", kernel=_softmax_grad)
def softmax_grad(b: Builder, g: Value, y: Value) -> Value:
    """y (g - sum(g y)) for every row; `y` is what `softmax` gave, both f32 [… N]."""
    return b.mul(y, b.sub(g, sum_last(b, b.mul(g, y))))


def _log_softmax(x: Tensor) -> Tensor:
    fused = fused_for(x)
    if fused is not None:
        return fused.log_softmax(x)

    def rows(x: Tensor) -> Tensor:
        shifted = x - max_f32(x)
        return shifted.sub_(log_f32(_power_sum(exp_f32(shifted))))

    return _rows(rows, x)


@define("log_softmax", kernel=_log_softmax)
def log_softmax(b: Builder, x: Value) -> Value:
    """x - max - log(sum(exp(x - max))) for every row of f32 [… N]; NaN where the maximum is infinite."""
    shifted = b.sub(x, b.max(b.pad_rows(x, -math.inf)))
    result = b.sub(shifted, log.call(b, sum_last(b, exp.call(b, shifted))))
    return cut_rows(b, result, x.shape[-1])


def _log_softmax_grad(g: Tensor, y: Tensor) -> Tensor:
    fused = fused_for(g)
    if fused is not None:
        return fused.log_softmax_grad(g, y)
    return _rows(lambda g, y: g - exp_f32(y) * sum_f32(g), g, y)


@define("log_softmax_grad", kernel=_log_softmax_grad)
def log_softmax_grad(b: Builder, g: Value, y: Value) -> Value:
    """g - exp(y) * sum(g) for every row; `y` is what `log_softmax` gave, both f32 [… N]."""
    return b.sub(g, b.mul(exp.call(b, y), sum_last(b, g)))
