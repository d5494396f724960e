"""Exact contractions: arithmetic.md section 4, with float64 products (section 8) as the one kernel.

`dot` is the primitive (integers in, integers out); `contract` is the whole fused contraction with the same bits as
`exponent`, `quantise`, `dot`, `round_scaled` in a row. Which (px, py) a contraction takes is its caller's business.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.rows import exponent, round_exact, round_scaled, row_scale, whole_in_row
from protocol.numerics.types import NumericsError

FLOAT64_BITS = 53
"""A float64 product is exact while px + py + log2 K <= 53 (arithmetic.md section 8)."""
HALF_BITS = 32
"""Bits of a product of two 16-bit halves: |h| <= 2^15, 0 <= l < 2^16."""


def dot(x: Tensor, y: Tensor, bits: int | None = None) -> Tensor:
    """i64 sum_k x[..., m, k] * y[..., n, k], shape [..., M, N], wrapping; batch axes broadcast.

    `x`, `y` are i32 of shape [..., M, K] and [..., N, K]. `bits` promises |x| * |y| <= 2^bits for all pairs (px + py
    for quantised rows); without it the data are measured.
    """
    _require_pair(x, y, torch.int32)
    if bits is None:
        bits = _magnitude_bits(x) + _magnitude_bits(y)
    if bits <= FLOAT64_BITS - 7:  # blocks of at least 128 terms are worth it
        return _blocked(x.to(torch.float64), y.to(torch.float64), bits)
    x_high, x_low = _halves(x)
    y_high, y_low = _halves(y)
    crossed = _blocked(x_high, y_low, HALF_BITS) + _blocked(x_low, y_high, HALF_BITS)
    return (_blocked(x_high, y_high, HALF_BITS) << 32) + (crossed << 16) + _blocked(x_low, y_low, HALF_BITS)


def contract(
    x: Tensor, y: Tensor, px: int, py: int, ex: Tensor | None = None, ey: Tensor | None = None
) -> Tensor:
    """f32 round((sum_k m_px(x) m_py(y)) * 2^(ex + ey - px - py)), shape [..., M, N], one rounding.

    `x`, `y` are f32 of shape [..., M, K] and [..., N, K]; px, py are 13 or 20. `ex`, `ey` are the rows' exponents,
    shape [..., M, 1] and [..., N, 1] (or of a larger group holding the row, broadcast); None takes `exponent`.
    """
    _require_pair(x, y, torch.float32)
    if px not in (13, 20) or py not in (13, 20):
        raise NumericsError(
            f"expected 13 or 20 bits, got ({px}, {py}); see the table in arithmetic.md section 4"
        )
    ex = exponent(x) if ex is None else ex
    ey = exponent(y) if ey is None else ey
    whole_x = whole_in_row(x, ex, px).to(torch.float64)
    whole_y = whole_in_row(y, ey, py).to(torch.float64)
    if x.shape[-1] <= _block_length(px + py):
        acc = torch.matmul(whole_x, whole_y.mT)
        return round_exact(acc, row_scale(ex, px), row_scale(ey, py).mT)
    return round_scaled(_blocked(whole_x, whole_y, px + py), (ex, ey.mT), px + py)


def _blocked(x: Tensor, y: Tensor, bits: int) -> Tensor:
    """Product of integral float64 rows in blocks along K short enough to be exact, added up in wrapping i64."""
    length = _block_length(bits)
    acc = torch.matmul(x[..., :length], y[..., :length].mT).to(torch.int64)
    for start in range(length, x.shape[-1], length):
        stop = start + length
        acc = acc + torch.matmul(x[..., start:stop], y[..., start:stop].mT).to(torch.int64)
    return acc


def _block_length(bits: int) -> int:
    return 1 << (FLOAT64_BITS - bits)


def _magnitude_bits(x: Tensor) -> int:
    """Smallest b with |x| <= 2^b everywhere (i64 arithmetic, so that |-2^31| is right)."""
    low, high = torch.aminmax(x)
    largest = max(-int(low), int(high), 1)
    return (largest - 1).bit_length()


def _halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """x = high * 2^16 + low with 0 <= low < 2^16, both float64."""
    return (x >> 16).to(torch.float64), (x & 0xFFFF).to(torch.float64)


def _require_pair(x: Tensor, y: Tensor, dtype: torch.dtype) -> None:
    fits = x.dtype == y.dtype == dtype and min(x.dim(), y.dim()) >= 2 and x.shape[-1] == y.shape[-1]
    if not fits or x.numel() == 0 or y.numel() == 0:
        raise NumericsError(
            f"expected two non-empty {dtype} tensors [..., M, K] and [..., N, K], got {x.dtype} {tuple(x.shape)} and "
            f"{y.dtype} {tuple(y.shape)}; make the contracted axis the last of both"
        )
