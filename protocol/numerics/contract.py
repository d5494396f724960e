"""Exact contractions: arithmetic.md section 4, by the kernels of section 8.

`dot` is the primitive, from integers to integers. `contract` is the whole contraction in one call, with the
same bits as `exponent`, `quantise`, `dot`, `round_scaled` in sequence. The caller of `contract` chooses to
how many bits its two operands are quantised: `px` and `py`, each 13 or 20.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from protocol.numerics.kernels.dispatch import kernel_for
from protocol.numerics.kernels.float64 import FLOAT64_BITS, blocked
from protocol.numerics.kernels.shape_classes import call_of
from protocol.numerics.shapes import broadcast
from protocol.numerics.types import NumericsError

HALF_BITS = 32
"""The most bits that a product of two 16-bit halves, high or low, can need: |high| <= 2^15, 0 <= low < 2^16."""


def dot(x: Tensor, y: Tensor) -> Tensor:
    """i64 sum_k x[..., m, k] * y[..., n, k], shape [..., M, N], wrapping; batch axes broadcast.

    `x`, `y` are i32 of shape [..., M, K] and [..., N, K]. Any values are allowed; if both operands have at
    most 20 bits, the fast kernels are used.
    """
    _require_pair(x, y, torch.int32)
    px, py = _magnitude_bits(x), _magnitude_bits(y)
    if max(px, py) <= 20:
        px, py = (13 if p <= 13 else 20 for p in (px, py))
        shape = _shape(x, y)
        x, y = _folded(x, y)
        return kernel_for(x.device, px, py, call_of(x, y)).dot(x, y, px, py).reshape(shape)
    if px + py <= FLOAT64_BITS - 7:  # blocks of at least 128 terms are worth it
        return blocked(x.to(torch.float64), y.to(torch.float64), px + py)
    x_high, x_low = _halves(x)
    y_high, y_low = _halves(y)
    crossed = blocked(x_high, y_low, HALF_BITS) + blocked(x_low, y_high, HALF_BITS)
    return (blocked(x_high, y_high, HALF_BITS) << 32) + (crossed << 16) + blocked(x_low, y_low, HALF_BITS)


def contract(
    x: Tensor,
    y: Tensor,
    px: int,
    py: int,
    ex: Tensor | None = None,
    ey: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """f32 round((sum_k m_px(x) m_py(y)) * 2^(ex + ey - px - py)), shape [..., M, N], rounded once. m_p
    quantises to p bits (arithmetic.md section 3).

    `x`, `y` are f32 of shape [..., M, K] and [..., N, K]; px, py are 13 or 20. `ex`, `ey` are the rows'
    exponents, of shape [..., M, 1] and [..., N, 1], or exponents of larger groups, which broadcast to the
    rows. If `ex` or `ey` is None, `exponent` computes it from x or y. A `bias`, f32 [N], is added to the
    rounded result by the f32 `add` of section 2.
    """
    _require_pair(x, y, torch.float32)
    if px not in (13, 20) or py not in (13, 20):
        raise NumericsError(
            f"expected 13 or 20 bits, got ({px}, {py}); see the table in arithmetic.md section 4"
        )
    if bias is not None and (bias.dtype != torch.float32 or tuple(bias.shape) != (y.shape[-2],)):
        raise NumericsError(
            f"expected a bias f32 [{y.shape[-2]}], got {bias.dtype} {tuple(bias.shape)}; pass one number per row of y"
        )
    shape = _shape(x, y)
    if ex is None and (ey is None or math.prod(ey.shape[:-2]) == 1):
        x, y = _folded(x, y)
        ey = None if ey is None else ey.reshape(ey.shape[-2:])
    call = call_of(x, y, (ex is not None, ey is not None), bias is not None)
    return kernel_for(x.device, px, py, call).contract(x, y, px, py, ex, ey, bias).reshape(shape)


def _shape(x: Tensor, y: Tensor) -> tuple[int, ...]:
    """The shape of the product."""
    return (*broadcast(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-2])


def _folded(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """If one matrix y serves a whole batch of x, merge the batch into the rows of a single matrix x.

    The kernel is tested and run on this form. Other operands are returned unchanged.
    """
    if x.dim() > 2 and math.prod(y.shape[:-2]) == 1:
        return x.reshape(-1, x.shape[-1]), y.reshape(y.shape[-2:])
    return x, y


def _magnitude_bits(x: Tensor) -> int:
    """The smallest b with |x| <= 2^b everywhere, computed in Python integers, so that |-2^31| is right."""
    low, high = torch.aminmax(x)
    largest = max(-int(low), int(high), 1)
    return (largest - 1).bit_length()


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """`high` and `low`, both float64: x = high * 2^16 + low with 0 <= low < 2^16."""
    return (x >> 16).to(torch.float64), (x & 0xFFFF).to(torch.float64)


def _require_pair(x: Tensor, y: Tensor, dtype: torch.dtype) -> None:
    fits = x.dtype == y.dtype == dtype and min(x.dim(), y.dim()) >= 2 and x.shape[-1] == y.shape[-1]
    if not fits or x.numel() == 0 or y.numel() == 0:
        raise NumericsError(
            f"expected two non-empty {dtype} tensors [..., M, K] and [..., N, K], got {x.dtype} {tuple(x.shape)} and "
            f"{y.dtype} {tuple(y.shape)}; make the contracted axis the last of both"
        )
