"""Batch norm, by channel over samples and positions; sums by arithmetic.md section 5, the rest by section 2.

x is [N, C, S]: samples, channels, positions. These functions do not update running statistics; the rule in
`capture` does that with a few operations on [C].
"""

from __future__ import annotations

from torch import Tensor

from protocol.numerics.kernels.channels_dispatch import channels_for
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define_by_body
from protocol.program.library.rows import sum_last


def _batch_statistics(x: Tensor, *, eps: float) -> tuple[Tensor, ...] | None:
    compiled = channels_for(x)
    return None if compiled is None else compiled.statistics(x, eps)


@define_by_body("batch_statistics", compiled=_batch_statistics)
def batch_statistics(b: Builder, x: Value, *, eps: float) -> tuple[Value, Value, Value]:
    """Three statistics of x [N, C, S], each [C]: the mean; the value 1 / sqrt(variance + eps); and the
    variance for running statistics.

    With d = x - mean, the variance in the square root is sum(d d) / (N S). The variance for running
    statistics is sum(d d) / (N S - 1), where 0 / 0 is NaN.
    """
    rows = _channels(b, x)
    channels, count = rows.shape
    mean = b.div(sum_last(b, rows), _constant(b, count))
    centred = b.sub(rows, mean)
    squares = sum_last(b, b.mul(centred, centred))
    rstd = b.div(_constant(b, 1), b.sqrt(b.add(b.div(squares, _constant(b, count)), _constant(b, eps))))
    following = b.div(squares, _constant(b, count - 1))
    return b.reshape(mean, (channels,)), b.reshape(rstd, (channels,)), b.reshape(following, (channels,))


def _batch_normalise(
    x: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor | None = None, bias: Tensor | None = None
) -> Tensor | None:
    compiled = channels_for(x)
    return None if compiled is None else compiled.normalise(x, mean, rstd, gain, bias)


@define_by_body("batch_normalise", compiled=_batch_normalise)
def batch_normalise(
    b: Builder, x: Value, mean: Value, rstd: Value, gain: Value | None = None, bias: Value | None = None
) -> Value:
    """((x - mean) rstd) gain + bias for f32 x [N, C, S]; the other operands are f32 [C]."""
    y = b.mul(b.sub(x, _column(b, mean)), _column(b, rstd))
    y = y if gain is None else b.mul(y, _column(b, gain))
    return y if bias is None else b.add(y, _column(b, bias))


def _batch_norm_sums(g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, ...] | None:
    compiled = channels_for(x)
    return None if compiled is None else compiled.sums(g, x, mean, rstd)


@define_by_body("batch_norm_sums", compiled=_batch_norm_sums)
def batch_norm_sums(b: Builder, g: Value, x: Value, mean: Value, rstd: Value) -> tuple[Value, Value]:
    """The gradient of the bias, which is the sum of g, and the gradient of the gain, which is the sum of g (x
    - mean) rstd. Both are [C]; g and x are f32 [N, C, S].
    """
    normal = b.mul(b.sub(x, _column(b, mean)), _column(b, rstd))
    sums = (sum_last(b, _channels(b, each)) for each in (g, b.mul(g, normal)))
    first, second = (b.reshape(each, mean.shape) for each in sums)
    return first, second


def _batch_norm_grad(
    g: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    total: Tensor,
    along: Tensor,
    gain: Tensor | None = None,
) -> Tensor | None:
    compiled = channels_for(x)
    return None if compiled is None else compiled.grad(g, x, (mean, rstd), (total, along), gain)


@define_by_body("batch_norm_grad", compiled=_batch_norm_grad)
def batch_norm_grad(
    b: Builder,
    g: Value,
    x: Value,
    mean: Value,
    rstd: Value,
    total: Value,
    along: Value,
    gain: Value | None = None,
) -> Value:
    """The gradient of x [N, C, S] if the statistics are those of the batch.

    With n = (x - mean) rstd and M = N S, the gradient is ((g - total / M) - n (along / M)) (rstd gain).
    `total` and `along` are the results of `batch_norm_sums`.
    """
    count = _constant(b, x.shape[0] * x.shape[2])
    mean_total, mean_along = b.div(total, count), b.div(along, count)
    normal = b.mul(b.sub(x, _column(b, mean)), _column(b, rstd))
    inner = b.sub(b.sub(g, _column(b, mean_total)), b.mul(normal, _column(b, mean_along)))
    return b.mul(inner, _column(b, rstd if gain is None else b.mul(rstd, gain)))


def _channels(b: Builder, x: Value) -> Value:
    """Rearrange [N, C, S] to [C, N S]."""
    n, channels, positions = x.shape
    return b.reshape(b.transpose(x, 0, 1), (channels, n * positions))


def _column(b: Builder, x: Value) -> Value:
    return b.reshape(x, (*x.shape, 1))


def _constant(b: Builder, value: float) -> Value:
    return b.constant(DType.F32, (), float(value))
