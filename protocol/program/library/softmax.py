"""`log_softmax` along the last axis of [M, N], and its gradient: arithmetic.md sections 5 and 6."""

from __future__ import annotations

import math

from torch import Tensor

from protocol.numerics.elementary_torch import exp_f32, log_f32
from protocol.numerics.elementwise import mul, sub
from protocol.numerics.sums import max_f32, sum_f32
from protocol.program.builder import Builder, Value
from protocol.program.library.elementary import exp, log
from protocol.program.library.function import define
from protocol.program.library.rows import cut_rows, sum_last


def _log_softmax(x: Tensor) -> Tensor:
    shifted = sub(x, max_f32(x))
    return sub(shifted, log_f32(sum_f32(exp_f32(shifted))))


@define("log_softmax", kernel=_log_softmax)
def log_softmax(b: Builder, x: Value) -> Value:
    """x - max - log(sum(exp(x - max))) for every row of f32 [M, N]; NaN where the maximum is infinite."""
    shifted = b.sub(x, b.max(b.pad_rows(x, -math.inf)))
    result = b.sub(shifted, log.call(b, sum_last(b, exp.call(b, shifted))))
    return cut_rows(b, result, x.shape[-1])


def _log_softmax_grad(g: Tensor, y: Tensor) -> Tensor:
    return sub(g, mul(exp_f32(y), sum_f32(g)))


@define("log_softmax_grad", kernel=_log_softmax_grad)
def log_softmax_grad(b: Builder, g: Value, y: Value) -> Value:
    """g - exp(y) * sum(g) for every row; `y` is what `log_softmax` gave, both f32 [M, N]."""
    return b.sub(g, b.mul(exp.call(b, y), sum_last(b, g)))
