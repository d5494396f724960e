"""The self-test of a product kernel: arithmetic.md section 8, last bullet.

Every kernel multiplies what is hardest for it before anything depends on it: all terms at the limit and of one sign,
alternating signs, slices at their edges, odd sizes, rows side by side and terms side by side, special rows. What is
right comes from plain i64 multiplication and addition. One wrong bit and the kernel has failed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.elementwise import add
from protocol.numerics.kernels.base import ProductKernel
from protocol.numerics.rows import SENTINEL, round_scaled
from protocol.numerics.types import canonical

SHAPES = ((1, 1, 1), (3, 2, 8200), (14, 35, 130), (5, 33, 1029))
"""(M, N, K): the least; 20 x 20 bits beyond 2^13 terms, where float64 must cut; more than a panel of 12 and of 32 rows;
more terms than i32 holds at the limit whatever the chunk."""


def failure(kernel: ProductKernel, device: torch.device, px: int, py: int) -> str | None:
    """What the kernel gets wrong in products of px by py bits, or None if every bit is right."""
    for m, n, k in SHAPES:
        x, y = _integers(m, k, px).to(device), _integers(n, k, py).flip(0).to(device)
        exact = (x.to(torch.int64)[:, None, :] * y.to(torch.int64)[None, :, :]).sum(dim=-1)
        where = f"[{m}, {k}] x [{n}, {k}] of {px} x {py} bits"
        if not torch.equal(kernel.dot(x, y, px, py), exact):
            return f"an integer of {where} is wrong"
        values_x, values_y = _values(x, px), _values(y, py)
        ex, ey = (torch.full((rows, 1), p, device=device) for rows, p in ((m, px), (n, py)))
        if (
            m > 1
        ):  # a row with an infinity is NaN and leaves the others alone; rows far apart in size share nothing
            values_x[0, k // 2], ex[0, 0] = torch.inf, SENTINEL
            values_x[1] *= 2.0**-100
            ex[1, 0] = px - 100
        expected = _bits(round_scaled(exact, (ex, ey.mT), px + py))
        for left in (values_x, values_x.mT.contiguous().mT):
            for right in (values_y, values_y.mT.contiguous().mT):
                if not torch.equal(_bits(kernel.contract(left, right, px, py)), expected):
                    return f"a rounded result of {where} is wrong"
        bias = values_y[:, 0].contiguous()
        biased = _bits(add(expected.view(torch.float32), bias))
        if not torch.equal(kernel.contract(values_x, values_y, px, py, bias=bias).view(torch.int32), biased):
            return f"a result of {where} with a bias is wrong"
    return None


def _integers(rows: int, terms: int, p: int) -> Tensor:
    """i32 [rows, terms] with |m| <= 2^p; the first term of every row is 2^p, so that a row's exponent is p."""
    top = 1 << p
    k = torch.arange(terms, dtype=torch.int64)
    sign = 1 - 2 * (k & 1)
    mixed = (k * 2654435761 + 12345) % (
        2 * top + 1
    ) - top  # Knuth's multiplicative hash: spread over the range
    hard = (
        torch.full_like(k, top),
        sign * top,
        torch.full_like(k, -top),
        torch.where(sign > 0, top - 1, -top),
        sign * (top - 64),  # a low slice of 64, the only one that is not a remainder of its own
        (k * 128 + 63) % top,
        mixed,
        mixed >> 6,
    )
    found = torch.stack([hard[row % len(hard)] for row in range(rows)]).to(torch.int32)
    found[:, 0] = top
    return found


def _values(m: Tensor, p: int) -> Tensor:
    """f32 that quantise to `m` under the exponent p: |x| < 2^p, and 2^p - 2^(p-24) rounds to 2^p."""
    below = float((1 << 24) - 1) * 2.0 ** (p - 24)
    return m.to(torch.float32).clamp(-below, below)


def _bits(x: Tensor) -> Tensor:
    return canonical(x).contiguous().view(torch.int32)
