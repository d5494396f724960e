"""Layer norm of rows and its gradients; sums by arithmetic.md section 5, the rest by section 2.

Each row is normalised by its own mean and variance (of N terms, not N - 1). The gradients follow torch's
formulas, with the sums of section 5. The gradients of gain and bias are sums over all rows.
"""

from __future__ import annotations

from torch import Tensor

from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.blocks import by_rows
from protocol.program.library.function import define, define_by_body
from protocol.program.library.rows import mean_last, sum_last
from protocol.program.library.sums import column_sums


def _layer_norm(
    x: Tensor, gain: Tensor | None = None, bias: Tensor | None = None, *, eps: float
) -> tuple[Tensor, ...] | None:
    fused = fused_for(x)
    return None if fused is None else fused.layer_norm(x, gain, bias, eps)


@define_by_body("layer_norm", compiled=_layer_norm, rows=1)
def layer_norm(
    b: Builder, x: Value, gain: Value | None = None, bias: Value | None = None, *, eps: float
) -> tuple[Value, Value, Value]:
    """Layer norm of f32 x [M, N] with gain and bias [N]: y [M, N], mean [M, 1], rstd [M, 1].

    mean = sum(x) / N; rstd = 1 / sqrt(sum((x - mean)^2) / N + eps); y = ((x - mean) rstd) gain + bias.
    """
    mean = mean_last(b, x)
    centred = b.sub(x, mean)
    variance = mean_last(b, b.mul(centred, centred))
    rstd = b.div(b.constant(DType.F32, (), 1.0), b.sqrt(b.add(variance, b.constant(DType.F32, (), eps))))
    y = b.mul(centred, rstd)
    y = y if gain is None else b.mul(y, gain)
    return (y if bias is None else b.add(y, bias)), mean, rstd


def _layer_norm_grad(
    g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gain: Tensor | None = None
) -> Tensor | None:
    fused = fused_for(x)
    return None if fused is None else fused.layer_norm_grad(g, x, mean, rstd, gain)


@define_by_body("layer_norm_grad", compiled=_layer_norm_grad, rows=4)
def layer_norm_grad(
    b: Builder, g: Value, x: Value, mean: Value, rstd: Value, gain: Value | None = None
) -> Value:
    """The gradient of x, for f32 g and x [M, N], mean and rstd [M, 1], and gain [N].

    With n = (x - mean) rstd and h = g gain, the gradient is rstd ((h - mean(h)) - n mean(h n)), with means
    along rows.
    """
    normal = b.mul(b.sub(x, mean), rstd)
    scaled = g if gain is None else b.mul(g, gain)
    along = mean_last(b, b.mul(scaled, normal))
    return b.mul(rstd, b.sub(b.sub(scaled, mean_last(b, scaled)), b.mul(normal, along)))


def _layer_norm_grad_gain(g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> Tensor:
    fused = fused_for(x)
    if fused is not None:
        return fused.layer_norm_grad_gain(g, x, mean, rstd)

    def rows(g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, ...]:
        return ((x - mean).mul_(rstd).mul_(g),)

    return column_sums(by_rows(rows, g, x, mean, rstd)[0])


@define("layer_norm_grad_gain", kernel=_layer_norm_grad_gain)
def layer_norm_grad_gain(b: Builder, g: Value, x: Value, mean: Value, rstd: Value) -> Value:
    """The gradient of the gain [N]: the sums of g (x - mean) rstd over all rows, for g and x [M, N], mean and
    rstd [M, 1].
    """
    terms = b.mul(g, b.mul(b.sub(x, mean), rstd))
    return b.reshape(sum_last(b, b.transpose(terms, 0, 1)), x.shape[1:])
