"""Product kernels for CUDA: int8 slices on tensor cores, multiplied by Triton, or by `torch._int_mm` if
Triton is missing.

| name | products | other launches |
|---|---|---|
| `int8-triton` | device/product.py, rounded in registers | maxima of long rows, slicing of each operand |
| `int8-mm` | `kernels.int8`: 4 to 9 calls of `torch._int_mm` for each matrix and each 2^17 terms | torch's operations |

They are tried in this order, then float64 (docs/performance.md, "cuda"). On an H100, which has many float64
units, float64 is faster than `int8-mm` at all measured sizes; most GPUs have few such units.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from protocol.numerics.cuda import launch
from protocol.numerics.kernels.base import UnifiedKernel
from protocol.numerics.kernels.int8 import SLICES, Int8
from protocol.numerics.kernels.shape_classes import Tiling
from protocol.numerics.shapes import broadcast

TERMS = 64
"""Number of terms per step. Rows are padded to a multiple of it.

An int8 tensor core instruction takes 32 bytes of each row, so a step's terms fill two instructions.
"""
SECTION = 1 << 17
"""Terms that an i32 accumulator can add, at three products of 2^12 per term: 3 * 2^12 * 2^17 < 2^31."""
SMALL, WIDE = 64, 128
"""A tile has SMALL columns and WIDE rows.

With 128 rows, each group of four warps has 64 rows, the size of a Hopper instruction. With more columns, the
accumulators spill; with fewer rows, a product of 20 x 13 bits takes four times as long (H100).
"""
QUANTISED_ROWS, QUANTISED_TERMS = 32, 64
"""Rows and terms of a tile in the kernels that read the operands. A tile has 8 KiB. The same size serves
every memory order of an operand.
"""
WHOLE = 4096
"""Number of elements in a tile that consists of whole rows: 32 for each of 128 threads. If a kernel uses such
tiles, the maxima of the rows need not be computed in advance.
"""
LEAST_ROWS, LEAST_APART = 2, 16
"""The fewest rows in a tile of whole rows: LEAST_ROWS if a row's terms are contiguous, LEAST_APART if they
are not (16 f32 are 64 bytes).
"""
WIDTHS = (64, 128, 256, 512, 1024, WHOLE // LEAST_ROWS)
"""The widths, in numbers of terms, to which whole rows are padded."""


Tile = Callable[[int, int], tuple[int, int]]
"""Maps (px, py) to the rows and columns of a tile of the product."""


def tile_of(_px: int, _py: int) -> tuple[int, int]:
    """The default tile, which is the same for all numbers of bits."""
    return WIDE, SMALL


class TritonInt8(UnifiedKernel):
    """Slices, products and rounding in Triton. Tests in which Triton interprets the kernels use small tiles
    and short sections.
    """

    name = "int8-triton"

    def __init__(self, tile: Tile = tile_of, section: int = SECTION) -> None:
        self._tile = tile
        self._section = section

    def available(self, device: torch.device) -> bool:
        """Whether Triton is installed and the CUDA device has int8 tensor cores (capability >= 7.5)."""
        return (
            device.type == "cuda" and launch.present() and torch.cuda.get_device_capability(device) >= (7, 5)
        )

    def tiling(self, px: int, py: int) -> Tiling:
        """See `ProductKernel`. Rows of tiles are processed in groups of eight."""
        height, width = self._tile(px, py)
        # Each width has its own slicing kernel.
        long = sorted({*(width + 1 for width in WIDTHS), self._section + 1})
        return Tiling((height, 8 * height), (width,), (TERMS,), tuple(long))

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
        left, right = _Slices(x, px, ex, batch), _Slices(y, py, ey, batch)
        out = torch.empty(*batch, x.shape[-2], y.shape[-2], dtype=dtype, device=x.device)
        height, width = self._tile(px, py)
        grid = (math.prod(batch) * -(-left.rows // height) * -(-right.rows // width),)
        launch.start(
            "product",
            "product",
            grid,
            *(left.data, right.data, left.exponents, right.exponents),
            *(left.exponents if bias is None else bias.detach().contiguous(), out),
            *(left.rows, right.rows, left.padded, left.plane, right.plane, left.batch, right.batch, px + py),
            warps=8,
            X=left.count,
            Y=right.count,
            INTEGERS=dtype == torch.int64,
            BIAS=bias is not None,
            GIVEN_X=left.given,
            GIVEN_Y=right.given,
            SECTION=self._section if left.padded > self._section else 0,
            BM=height,
            BN=width,
            BK=TERMS,
        )
        return out


class CudaIntMM(Int8):
    """`kernels.int8` for CUDA only. It is a separate kernel because the order of preference differs: on CUDA
    it comes before float64, whereas on a CPU `kernels.int8` comes after float64.
    """

    name = "int8-mm"

    def available(self, device: torch.device) -> bool:
        """Whether `device` is a CUDA device."""
        return device.type == "cuda"


class _Slices:
    """An operand [… R, K], cut into slices on its device.

    `data` holds the slices, i8 [count, batch, R, padded]. `count` is the number of slices of an element, and
    `padded` is K rounded up to a multiple of TERMS; the added terms are zeros. `exponents` has one i32 per
    row: the row's exponent if exponents were given, otherwise the bits of the row's largest magnitude. It is
    not used if the operand consists of integers.
    """

    def __init__(self, x: Tensor, p: int, e: Tensor | None, batch: torch.Size) -> None:
        x = x.detach()
        shared = math.prod(x.shape[:-2]) == 1 and (e is None or math.prod(e.shape[:-2]) == 1)
        batch = torch.Size(()) if shared else batch
        x = x.reshape(x.shape[-2:]) if shared else x.expand(*batch, *x.shape[-2:])
        outer, inner = batch if len(batch) == 2 else (1, math.prod(batch))
        rows, terms = x.shape[-2:]
        if len(batch) != 2:  # a view if a single stride covers the batch, otherwise a copy
            x = x.reshape(1, inner, rows, terms)
        count = outer * inner
        self.count, self.rows, self.given = SLICES[p], rows, e is not None
        self.batch = 0 if shared else 1
        self.padded = -(-terms // TERMS) * TERMS
        self.data = torch.empty(self.count, count, rows, self.padded, dtype=torch.int8, device=x.device)
        self.plane = count * rows * self.padded
        strides = (inner, *x.stride())
        integers = x.dtype == torch.int32
        searched = not integers and e is None
        height, width = _whole_rows(x) if searched else (0, 0)
        whole = height > 0
        if not whole:
            height, width = QUANTISED_ROWS, QUANTISED_TERMS
        tile = {"ROWS": height, "BLOCK": width}
        grid = (count * -(-rows // height) * -(-terms // width),)
        if e is not None:
            self.exponents = _spread(e, (*batch, rows, 1))
        elif whole or integers:
            self.exponents = torch.empty(1 if integers else count * rows, dtype=torch.int32, device=x.device)
        else:
            self.exponents = torch.zeros(count * rows, dtype=torch.int32, device=x.device)
            launch.start("product", "largest_of_rows", grid, x, self.exponents, rows, terms, *strides, **tile)
        sizes = (rows, terms, self.padded, self.plane, *strides, p)
        kind = {"COUNT": self.count, "INTEGERS": integers, "GIVEN": self.given, "WHOLE": whole}
        launch.start("product", "slice_rows", grid, x, self.exponents, self.data, *sizes, **kind, **tile)


def _whole_rows(x: Tensor) -> tuple[int, int]:
    """Rows and terms of a tile of whole rows; 0 rows if the rows are too long."""
    width = max(QUANTISED_TERMS, 1 << (x.shape[-1] - 1).bit_length())
    rows = WHOLE // width
    return (rows if rows >= (LEAST_ROWS if x.stride(-1) == 1 else LEAST_APART) else 0), width


def _spread(e: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Exponents expanded to one per row. `e` may have extra leading axes of size 1."""
    spare = max(e.dim() - len(shape), 0)
    return e.reshape(e.shape[spare:]).expand(shape).to(torch.int32).contiguous()
