"""Row exponents and fixed point: arithmetic.md sections 3 and 4, encoding.md section 3 ("Total functions").

A row is a group of f32 values along one axis. The values of a row share a power-of-two scale. `exponent`,
`quantise`, `to_fixed` and `round_scaled` are the primitives of these names, and are total; the other
functions are faster replacements that are not total. Products of rows are in `contract`, sums in `sums`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.elementwise import I32_MAX, I32_MIN, jam, power_of_two
from protocol.numerics.types import NumericsError, canonical

SENTINEL = 32767
"""Exponent of a row that holds a NaN or an infinity."""
MIN_EXPONENT = -95
"""Least exponent: 2^(30 + 95) is still a normal f32, so every scale is a normal f32."""
I64_MAX = 2**63 - 1


def exponent(x: Tensor, axis: int = -1) -> Tensor:
    """The exponent of each row along `axis`, i32; the axis is kept with size 1. It is the smallest e >= -95
    with max|x| < 2^e, or 32767 if the row holds a NaN or an infinity.

    Computed from the bits of the smallest and the largest element, which are NaN if any element is.
    """
    _require_f32(x)
    low, high = torch.amin(x, dim=axis, keepdim=True), torch.amax(x, dim=axis, keepdim=True)
    magnitude = torch.maximum(torch.abs(low), torch.abs(high)).view(torch.int32) & I32_MAX
    largest = magnitude >> 23
    e = (largest - 126).clamp(min=MIN_EXPONENT)
    return torch.where(largest == 255, SENTINEL, e)


def quantise(x: Tensor, e: Tensor, p: int) -> Tensor:
    """i32 m_p(x) = rint(x * 2^(p-e)), saturating; 0 where `e` is 32767 or x is NaN. `x` is f32 and `e` is
    i32; they broadcast.
    """
    return _whole(x, e, p).clamp(float(I32_MIN), float(I32_MAX)).to(torch.int32)


def to_fixed(x: Tensor, e: Tensor, p: int = 30) -> Tensor:
    """i64 m_p(x) = rint(x * 2^(p-e)), saturating; 0 where `e` is 32767 or x is NaN. `x` is f32 and `e` is
    i32; they broadcast.
    """
    whole = _whole(x, e, p)
    inside = whole.clamp(-(2.0**63), 2.0**63 - 1024.0).to(
        torch.int64
    )  # 2^63 - 1024: largest float64 below 2^63
    return torch.where(whole >= 2.0**63, I64_MAX, inside)


def round_scaled(acc: Tensor, exponents: Tensor | tuple[Tensor, Tensor], p: int) -> Tensor:
    """f32 round(acc * 2^(sum of exponents - p)): one rounding from the exact i64 `acc`.

    `exponents` is one or two i32 tensors that broadcast with `acc`; their sum does not wrap. The result is
    NaN where an exponent is 32767, +0 for acc = 0, a zero of acc's sign on underflow, and an infinity on
    overflow.
    """
    parts = exponents if isinstance(exponents, tuple) else (exponents,)
    total = torch.full((), -p, dtype=torch.int64, device=acc.device)
    bad = torch.zeros((), dtype=torch.bool, device=acc.device)
    for e in parts:
        total = total + e.to(torch.int64)
        bad = bad | (e == SENTINEL)
    factor = power_of_two(total)
    del total  # where exponents broadcast, it is twice as large as the result; so is `factor`
    product = jam(acc).to(torch.float64) * factor
    del factor
    return torch.where(bad, torch.nan, product.to(torch.float32))


def whole_in_row(x: Tensor, e: Tensor, p: int) -> Tensor:
    """rint(x * 2^(p-e)) as integral f32, by one product; `e` is the `exponent` of a group that contains x.

    Unspecified where `e` is the sentinel; the caller multiplies by `row_scale`, which is NaN there.
    """
    k = torch.where(e == SENTINEL, 0, p - e)
    factor = torch.bitwise_left_shift(k + 127, 23).view(torch.float32)
    return (x * factor).round_()


def row_scale(e: Tensor, p: int) -> Tensor:
    """2^(e-p) as float64, NaN where `e` is the sentinel."""
    return torch.where(e == SENTINEL, torch.nan, power_of_two(e.to(torch.int64) - p))


def round_exact(acc: Tensor, *scales: Tensor) -> Tensor:
    """f32 of an integral float64 `acc` (|acc| <= 2^53) times its `row_scale`s; a zero `acc` counts as +0."""
    value = acc + 0.0
    for factor in scales:
        value = value * factor
    return canonical(value.to(torch.float32))


def _whole(x: Tensor, e: Tensor, p: int) -> Tensor:
    """rint(x * 2^(p-e)) as float64 for any x and e; 0 where `e` is the sentinel and for NaN."""
    _require_f32(x)
    _require_bits(p)
    scaled = torch.round(x.to(torch.float64) * power_of_two(p - e.to(torch.int64)))
    return torch.where((e == SENTINEL) | (scaled != scaled), 0.0, scaled)


def _require_f32(x: Tensor) -> None:
    if x.dtype != torch.float32 or x.dim() == 0 or x.numel() == 0:
        raise NumericsError(
            f"expected a non-empty f32 tensor of rank 1 or more, got {x.dtype} of shape {tuple(x.shape)}; "
            "cast or reshape it first"
        )


def _require_bits(p: int) -> None:
    if p not in (13, 20, 30):
        raise NumericsError(f"expected p of 13, 20 or 30 bits, got {p}; see arithmetic.md section 3")
