"""Products in the compiled library: quantising, multiplying and rounding in one call.

The library takes operands whose terms, or whose rows, are adjacent in memory. Other operands are copied
first.
"""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache

import torch
from torch import Tensor

from protocol.numerics.kernels.base import UnifiedKernel
from protocol.numerics.kernels.native import (
    Operand,
    Problem,
    address,
    empty,
    library,
    require_elements,
    variants,
)
from protocol.numerics.kernels.shape_classes import Tiling
from protocol.numerics.shapes import broadcast
from protocol.numerics.types import NumericsError

LONGEST = 1 << 17
"""SLICE_LONGEST of native/slices.h: up to this many terms, sums of products of int8 digits fit i32."""
WIDE_BITS = 51
"""Sums that may reach 2^51 are rounded by different code (native/places.h)."""


class Compiled(UnifiedKernel):
    """The library's product with one of its instruction sets.

    Args:
        name: The kernel's name in ASSAY_KERNELS.
        variant: The name of the instruction set in `native.variants`.
        others: The instruction set that native/sets.h pairs with `variant` for everything but products; often
        `variant` itself.
        tiles: `rows`, `columns` and `terms` of the kernel's `Tiling`.
        runs: Counts of terms. A sum of more terms than such a count is split into several sums.
    """

    def __init__(
        self,
        name: str,
        variant: str,
        others: str,
        tiles: tuple[tuple[int, ...], ...],
        runs: tuple[int, ...] = (),
    ) -> None:
        self.name, self.variant, self.others = name, variant, others
        self._tiles, self._runs = tiles, runs

    def available(self, device: torch.device) -> bool:
        """Whether the library is built, and `device` is a CPU that has the instructions."""
        return device.type == "cpu" and self.variant in variants()

    def tiling(self, px: int, py: int, /) -> Tiling:
        """See `ProductKernel`."""
        rows, columns, terms = self._tiles
        return Tiling(
            rows, columns, terms, (*(run + 1 for run in self._runs), 1 << max(WIDE_BITS - px - py, 0))
        )

    def _run(
        self,
        x: Tensor,
        y: Tensor,
        px: int,
        py: int,
        ex: Tensor | None,
        ey: Tensor | None,
        bias: Tensor | None,
        dtype: torch.dtype,
    ) -> Tensor:
        batch = broadcast(x.shape[:-2], y.shape[:-2])
        if x.shape[-1] != y.shape[-1]:
            raise NumericsError(f"expected rows of one length, got {tuple(x.shape)} and {tuple(y.shape)}")
        kind = torch.float32 if dtype == torch.float32 else torch.int32
        left, right = _Side(x, px, ex, batch, kind), _Side(y, py, ey, batch, kind)
        bias = None if bias is None else bias.detach().contiguous()
        out = empty(*batch, x.shape[-2], y.shape[-2], dtype=dtype)
        problem = Problem(
            left.operand,
            right.operand,
            math.prod(batch),
            x.shape[-1],
            out.data_ptr(),
            address(bias, y.shape[-2]),
            variants()[self.variant],
            torch.get_num_threads(),
        )
        native = library()
        if native is None or native.assay_product(ctypes.byref(problem)) != 0:
            raise MemoryError("no memory for the packed operands of a product; make the batch smaller")
        return out


class _Side:
    """An `Operand` for the library, and the memory that it points to."""

    def __init__(self, x: Tensor, bits: int, e: Tensor | None, batch: torch.Size, dtype: torch.dtype) -> None:
        require_elements(x, dtype)
        if x.stride(-1) != 1 and x.stride(-2) != 1:
            x = x.contiguous()
        self._kept = x = x.expand(*batch, *x.shape[-2:])
        self._offsets = offsets_of(tuple(batch), x.stride()[:-2])
        self._exponents = None if e is None else _spread(e, (*batch, x.shape[-2], 1))
        self.operand = Operand(
            x.data_ptr(),
            ctypes.addressof(self._offsets),
            x.shape[-2],
            x.stride(-2),
            1 if x.shape[-1] == 1 else x.stride(-1),
            address(self._exponents, dtype=torch.int32),
            bits,
            x.dtype == torch.int32,
        )


def _spread(e: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Exponents expanded to one per row. `e` may have extra leading axes of size 1."""
    spare = max(e.dim() - len(shape), 0)
    return e.reshape(e.shape[spare:]).expand(shape).to(torch.int32).contiguous()


@lru_cache(maxsize=1024)
def offsets_of(sizes: tuple[int, ...], strides: tuple[int, ...]) -> ctypes.Array[ctypes.c_int64]:
    """The offset of each matrix of a batch, in elements."""
    found = [0]
    for size, stride in zip(sizes, strides, strict=True):
        found = [start + k * stride for start in found for k in range(size)]
    return (ctypes.c_int64 * len(found))(*found)


def int16(variant: str) -> Compiled:
    """A kernel that multiplies pairs of int16 (native/product.cpp).

    It needs one product of pairs for 13 x 13 bits, two for 20 x 13, three for 20 x 20.

    The tiles' sizes are those of native/variant.h: along rows and columns, a panel and a strip of panels;
    along the terms, the number of terms whose sum always fits into i32, and a chunk.
    """
    return Compiled(f"int16-{variant}", variant, variant, ((12, 120), (32, 128), (30, 64)))


def int8_amx() -> Compiled:
    """A kernel that multiplies whole tiles of int8 digits (native/slices.cpp).

    It needs four products of tiles for 13 x 13 bits, six for 20 x 13, nine for 20 x 20.

    The tiles' sizes are those of native/slices.h: along rows, a panel and a strip of panels; along columns,
    half a panel, a panel and a strip of panels; along the terms, a quad and a chunk.
    """
    return Compiled("int8-amx", "amx", "avx512vnni", ((16, 128), (16, 32, 128), (4, 64)), (LONGEST,))
