"""Order-free reductions in torch only: arithmetic.md section 5. `sums` uses a compiled sum where possible.

Sums of f32 go through 30-bit fixed point and are exact in float64 or i64, so any order and any split gives
the same bits. Results keep the reduced axis with size 1, except that `prefix_sum` keeps its size.
Contractions are in `contract`, index-driven sums in `indexing`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.rows import exponent, round_exact, round_scaled, row_scale, whole_in_row
from protocol.numerics.types import canonical

SUM_BITS = 30
FLOAT64_TERMS = 1 << (53 - SUM_BITS)
"""The number of terms that a float64 accumulator adds exactly in any order, if every term m has |m| <= 2^30."""


def sum_f32(x: Tensor, axis: int = -1) -> Tensor:
    """f32 sum along `axis`: round((sum m_30(x)) * 2^(e-30)), with a single rounding. arithmetic.md defines
    m_30 and e, the row's exponent. NaN if the row holds NaN or an infinity.
    """
    e = exponent(x, axis)
    whole = whole_in_row(x, e, SUM_BITS)
    if x.shape[axis] <= FLOAT64_TERMS:
        return round_exact(
            torch.sum(whole, dim=axis, keepdim=True, dtype=torch.float64), row_scale(e, SUM_BITS)
        )
    return round_scaled(sum_i64(whole.to(torch.int64), axis), e, SUM_BITS)


def sum_i64(x: Tensor, axis: int = -1) -> Tensor:
    """i64 sum along `axis`, wrapping."""
    return torch.sum(x, dim=axis, keepdim=True)


def max_f32(x: Tensor, axis: int = -1) -> Tensor:
    """f32 maximum along `axis`; NaN if any element is NaN. +0.0 is added, so a zero result is +0."""
    return canonical(torch.amax(x, dim=axis, keepdim=True) + 0.0)


def argmax(x: Tensor, axis: int = -1) -> Tensor:
    """i32 index along `axis`: the first NaN, otherwise the lowest index of the maximum; -0 and +0 are equal.

    Implemented explicitly because torch does not define the choice among equal elements.
    """
    nan = x != x
    largest = torch.amax(x, dim=axis, keepdim=True)  # NaN if any element is
    hit = torch.where(largest != largest, nan, x == largest)
    shape = [1] * x.dim()
    shape[axis] = x.shape[axis]
    position = torch.arange(x.shape[axis], dtype=torch.int32, device=x.device).reshape(shape)
    return torch.amin(torch.where(hit, position, x.shape[axis]), dim=axis, keepdim=True).to(torch.int32)


def prefix_sum(x: Tensor, axis: int = -1) -> Tensor:
    """i64 cumulative sum along `axis`, inclusive, wrapping: p[j] = p[j-1] + x[j]."""
    return torch.cumsum(x, dim=axis)
