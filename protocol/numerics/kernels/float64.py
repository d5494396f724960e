"""Products in float64 with any BLAS on any device. Blocks with px + py + log2 K <= 53 are exact."""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics.elementwise import add
from protocol.numerics.kernels.shape_classes import Tiling
from protocol.numerics.rows import exponent, round_exact, round_scaled, row_scale, whole_in_row

FLOAT64_BITS = 53
"""A float64 product is exact while px + py + log2 K <= 53 (arithmetic.md section 8)."""


class Float64:
    """The kernel that runs on every device with float64, and the baseline of measurements."""

    name = "float64"

    def available(self, device: torch.device) -> bool:
        """Whether torch has float64 on `device`."""
        return device.type != "mps"

    def tiling(self, px: int, py: int, /) -> Tiling:
        """The sizes that the tiles of a BLAS are assumed to have: 8 and 32 for the rows, 8 and 32 for the
        columns, and 8 and 64 for the terms. Each is a usual size, but a BLAS may use any.

        A product with more than `block_length` terms also takes another path: it is computed as a sum of
        products of blocks.
        """
        return Tiling((8, 32), (8, 32), (8, 64), (block_length(px + py) + 1,))

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
        whole_x = whole_in_row(x, ex, px).to(torch.float64)
        whole_y = whole_in_row(y, ey, py).to(torch.float64)
        if x.shape[-1] <= block_length(px + py):
            acc = torch.matmul(whole_x, whole_y.mT)
            product = round_exact(acc, row_scale(ex, px), row_scale(ey, py).mT)
        else:
            product = round_scaled(blocked(whole_x, whole_y, px + py), (ex, ey.mT), px + py)
        return product if bias is None else add(product, bias)

    def dot(self, x: Tensor, y: Tensor, px: int, py: int) -> Tensor:
        """See `ProductKernel`."""
        return blocked(x.to(torch.float64), y.to(torch.float64), px + py)


def blocked(x: Tensor, y: Tensor, bits: int) -> Tensor:
    """The product of rows of integers that are held in float64. The rows are cut along K into blocks whose
    products are exact. The blocks' products are added up in i64, which wraps.
    """
    length = block_length(bits)
    acc = torch.matmul(x[..., :length], y[..., :length].mT).to(torch.int64)
    for start in range(length, x.shape[-1], length):
        stop = start + length
        acc = acc + torch.matmul(x[..., start:stop], y[..., start:stop].mT).to(torch.int64)
    return acc


def block_length(bits: int) -> int:
    """The number of products, each of magnitude at most 2^bits, that float64 can add up exactly."""
    return 1 << (FLOAT64_BITS - bits)
