"""Products of int8 slices (base-128 digits) by `torch._int_mm`: two slices for 13 bits, three for 20.

Each slice is in [-64, 64], because on a CPU without AVX512-VNNI `_int_mm` adds pairs of products in 16 bits
and saturates silently. With larger slices, such a pair may not fit. The self-test decides whether a machine
may use this kernel.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.elementwise import add
from protocol.numerics.kernels.shape_classes import Tiling
from protocol.numerics.rows import exponent, round_scaled, whole_in_row
from protocol.numerics.shapes import broadcast

SLICES = {13: 2, 20: 3}
"""Number of slices by bits: |m| <= 2^13 = 64 * 128 needs two, |m| <= 2^20 = 64 * 128^2 three."""
BLOCK = 1 << 17
"""Limit on the terms of one `_int_mm`: 2^17 * 64 * 64 = 2^29 fits i32."""
ALIGNED, ROWS = 8, 17
"""CUDA's kernel needs N and K to be multiples of ALIGNED, and M to be at least ROWS."""


class Int8:
    """Sliced products; a batch is multiplied matrix by matrix."""

    name = "int8"

    def available(self, device: torch.device) -> bool:
        """Whether torch has `_int_mm` on `device`."""
        return device.type in ("cpu", "cuda")

    def tiling(self, _px: int, _py: int, /) -> Tiling:
        """The sizes at which the kernel takes another path. They are the sizes that padding depends on; 64,
        because torch's library usually works in blocks of 64; and 2^17 + 1 terms, because one `_int_mm` takes
        at most 2^17 (`BLOCK`), so longer products are computed in parts.
        """
        return Tiling((ROWS - 1, 64), (ALIGNED, 64), (ALIGNED, 64), (BLOCK + 1,))

    def contract(
        self,
        x: Tensor,
        y: Tensor,
        px: int,
        py: int,
        ex: Tensor | None = None,
        ey: Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Tensor:
        """See `ProductKernel`."""
        ex = exponent(x) if ex is None else ex
        ey = exponent(y) if ey is None else ey
        acc = self.dot(_quantised(x, ex, px), _quantised(y, ey, py), px, py)
        product = round_scaled(acc, (ex, ey.mT), px + py)
        return product if bias is None else add(product, bias)

    def dot(self, x: Tensor, y: Tensor, px: int, py: int) -> Tensor:
        """See `ProductKernel`."""
        batch = broadcast(x.shape[:-2], y.shape[:-2])
        left, right = (t.expand(*batch, *t.shape[-2:]).flatten(0, -3) if batch else t[None] for t in (x, y))
        products = [_product(a, b, SLICES[px], SLICES[py]) for a, b in zip(left, right, strict=True)]
        return torch.stack(products).reshape(*batch, x.shape[-2], y.shape[-2])


def _quantised(x: Tensor, e: Tensor, p: int) -> Tensor:
    """The quantised rows, i32. Where the exponent is the sentinel, they are arbitrary, because the results
    there are NaN.
    """
    return torch.nan_to_num(whole_in_row(x, e, p), nan=0.0, posinf=0.0, neginf=0.0).to(torch.int32)


def _product(x: Tensor, y: Tensor, slices_x: int, slices_y: int) -> Tensor:
    """The product i64 [M, N] of i32 [M, K] and [N, K]: every slice of one times every slice of the other."""
    m, n = x.shape[0], y.shape[0]
    left = _slices(_padded(x, ROWS), slices_x)
    right = _slices(_padded(y, ALIGNED), slices_y)
    total = torch.zeros(left[0].shape[0], right[0].shape[0], dtype=torch.int64, device=x.device)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            for start in range(0, a.shape[1], BLOCK):
                part = torch._int_mm(a[:, start : start + BLOCK], b[:, start : start + BLOCK].T)
                total += part.to(torch.int64) << (7 * (i + j))
    return total[:m, :n]


def _slices(x: Tensor, count: int) -> list[Tensor]:
    """The slices of x, lowest first: x is the sum of slice_i * 128^i, and every slice is in [-64, 64]."""
    found = []
    for _ in range(count - 1):
        high = (x + 64) >> 7
        found.append((x - (high << 7)).to(torch.int8))
        x = high
    return [*found, x.to(torch.int8)]


def _padded(x: Tensor, rows: int) -> Tensor:
    """`x` padded with zeros to multiples of 8 terms and of 8 rows, and to at least `rows` rows."""
    count = max(x.shape[0], rows)
    return torch.nn.functional.pad(x, (0, -x.shape[1] % ALIGNED, 0, count - x.shape[0] + -count % ALIGNED))
