"""Shape classes of products: arithmetic.md section 8, "Self-tests".

The path through a kernel depends on more than the widths. It also depends on the remainders after the
kernel's tiles, on the number of terms that an accumulator can add, on the operands' layout in memory, and on
whether there is a batch. A `ProductCall` describes one product. Its `ShapeClass`es are the smallest products
that together take the same paths; the self-test computes these products. If two calls have the same classes,
they differ only in how often the kernel repeats its loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from protocol.numerics.shapes import broadcast

MOST_TERMS = 1 << 20
"""Limit on the terms of a tested product.

Sums that may reach 2^51 are rounded by separate code. With 13 x 13 bits, such sums need 2^25 terms, which is
above the limit, so this code is not tested with 13 x 13 bits. It is tested with 20 x 20 bits, where such sums
need 2^11 terms.
"""


class Order(IntEnum):
    """Which elements of a matrix are adjacent in memory."""

    TERMS = 0
    """The terms of a row are adjacent."""
    ROWS = 1
    """The elements of a term, one from each row, are adjacent."""
    APART = 2
    """Neither terms nor rows are adjacent."""


class Layout(NamedTuple):
    """An operand's layout in memory."""

    order: Order
    dense: bool
    """Whether the rows follow each other without gaps; with `Order.ROWS`, whether the terms do."""
    batched: bool
    """Whether the operand has more than one matrix."""


class Tiling(NamedTuple):
    """The sizes at which a kernel takes another path. The tiles along an axis are in ascending order."""

    rows: tuple[int, ...]
    """Tiles along M. For example, (12, 120) means panels of 12 rows, with ten panels packed together."""
    columns: tuple[int, ...]
    """Tiles along N."""
    terms: tuple[int, ...]
    """Tiles along K."""
    long: tuple[int, ...]
    """Counts of terms. A sum of that many terms or more leaves the fast path."""


class ProductCall(NamedTuple):
    """One product: x [..., M, K] with y [..., N, K]."""

    m: int
    n: int
    k: int
    batch: int
    x: Layout
    y: Layout
    integers: bool
    """Whether the call is a `dot`; otherwise it is a `contract`."""
    given: tuple[bool, bool]
    """Whether the caller passes the exponents of x and of y."""
    bias: bool
    threads: int


class ShapeClass(NamedTuple):
    """The smallest product that takes some of a call's paths; the self-test computes it."""

    call: ProductCall
    px: int
    py: int


def call_of(
    x: Tensor, y: Tensor, given: tuple[bool, bool] = (False, False), bias: bool = False
) -> ProductCall:
    """Describe the product of `x` and `y`, without reading their elements."""
    return _call(
        x.shape, x.stride(), y.shape, y.stride(), x.dtype == torch.int32, given, bias, torch.get_num_threads()
    )


@lru_cache(maxsize=4096)
def _call(
    x_shape: Sequence[int],
    x_stride: Sequence[int],
    y_shape: Sequence[int],
    y_stride: Sequence[int],
    integers: bool,
    given: tuple[bool, bool],
    bias: bool,
    threads: int,
) -> ProductCall:
    batch = math.prod(broadcast(x_shape[:-2], y_shape[:-2]))
    sizes = (x_shape[-2], y_shape[-2], x_shape[-1], batch)
    layouts = (_layout(x_shape, x_stride), _layout(y_shape, y_stride))
    return ProductCall(*sizes, *layouts, integers, given, bias, threads)


def _layout(shape: Sequence[int], stride: Sequence[int]) -> Layout:
    rows, terms = shape[-2:]
    batched = math.prod(shape[:-2]) > 1
    if stride[-1] == 1 or terms == 1:
        return Layout(Order.TERMS, stride[-2] == terms or rows == 1, batched)
    if stride[-2] == 1 or rows == 1:
        return Layout(Order.ROWS, stride[-1] == rows, batched)
    return Layout(Order.APART, False, batched)


@lru_cache(maxsize=4096)
def shape_classes_of(call: ProductCall, tiling: Tiling, px: int, py: int) -> tuple[ShapeClass, ...]:
    """The shape classes of a call for a kernel with this tiling.

    One class has all kinds of tiles but few terms. Each other class has at most two rows and two columns, but
    enough terms for a sum to leave a fast path (`Tiling.long`). If that takes about `MOST_TERMS` terms or
    more, it has one or two terms fewer than `MOST_TERMS`.
    """
    # Either each thread takes whole batch elements or all share one; larger batches only repeat this.
    share = 2 * call.threads
    batch = 1 if call.batch == 1 else 2 if call.batch < share else max(share, 2)
    tiles = (
        least_size(call.m, tiling.rows),
        least_size(call.n, tiling.columns),
        _terms(call.k, tiling.terms),
    )
    few = min(call.m, 2), min(call.n, 2)
    sizes = [
        tiles,
        *((*few, _same_parity(min(k, MOST_TERMS - 2), call.k)) for k in tiling.long if call.k >= k),
    ]
    return tuple(ShapeClass(call._replace(m=m, n=n, k=k, batch=batch), px, py) for m, n, k in sizes)


def _same_parity(size: int, other: int) -> int:
    """`size` or `size` + 1, whichever has the parity of `other`."""
    return size + ((size ^ other) & 1)


def least_size(size: int, tiles: Sequence[int]) -> int:
    """The smallest size that a kernel cuts into tiles in the same way as `size`.

    The longest tile is applied first, and each shorter tile to what the longer ones leave. Two sizes are cut
    in the same way if three conditions hold. For each tile, the number of whole tiles is zero in both sizes,
    one in both, or several in both. For each tile, a remainder is left in both sizes or in neither. The
    shortest tile leaves the same remainder in both sizes, or at least 5 in both.
    """
    if not tiles:
        return min(size, 5)  # one, two, three, four, or a few
    tile = tiles[-1]
    rest = size % tile
    whole = min(size // tile, 2) * tile
    return whole + (least_size(rest, tiles[:-1]) if rest else 0)


def _terms(size: int, tiles: Sequence[int]) -> int:
    """Like `least_size`, but the result has the parity of `size`. If `size` contains the longest tile two or
    more times, the result contains it six times, so that runs are long.
    """
    found, longest = least_size(size, tiles), tiles[-1]
    if size >= 2 * longest:
        found += 4 * longest
    return _same_parity(found, size)
