"""What kind of product a call is: the shape classes of arithmetic.md section 8, last bullet.

Which way a kernel's code goes depends on more than the widths: on what is left over beside its tiles, on how many terms
an accumulator holds, on where the operands lie in memory, on a batch. A `Call` says all of that of one product; its
`Case`s are the smallest products that take the same ways, and so the class and what is tried for it in one. Two calls
of the same cases differ only in how often the kernel does the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

MOST_TERMS = 1 << 20
"""Terms of the longest product tried. 13 x 13 bits go on to other code at 2^25, to that of 20 x 20 from 2^11 on."""


class Order(IntEnum):
    """How a matrix lies in memory."""

    TERMS = 0
    """The terms of a row are side by side."""
    ROWS = 1
    """The rows of a term are side by side."""
    APART = 2
    """Neither are."""


class Layout(NamedTuple):
    """How an operand lies in memory."""

    order: Order
    dense: bool
    """Nothing lies between its rows (or, of `Order.ROWS`, its terms)."""
    batched: bool
    """It has more than one matrix."""


class Cuts(NamedTuple):
    """Sizes at which a kernel takes another path. Tiles from the smallest on."""

    rows: tuple[int, ...]
    """Tiles along M, as (12, 120): panels of 12, ten of which are packed together."""
    columns: tuple[int, ...]
    """Tiles along N."""
    terms: tuple[int, ...]
    """Tiles along K."""
    long: tuple[int, ...]
    """Terms from which sums leave the fast path, one way or another."""


class Call(NamedTuple):
    """One product as it is asked for: x [..., M, K] with y [..., N, K]."""

    m: int
    n: int
    k: int
    batch: int
    x: Layout
    y: Layout
    integers: bool
    """`dot`; otherwise `contract`."""
    given: tuple[bool, bool]
    """Whether the exponents of x and of y come with the call."""
    bias: bool
    threads: int


class Case(NamedTuple):
    """A least product that takes paths of a call, and all that was tried when it has passed."""

    call: Call
    px: int
    py: int


def call_of(x: Tensor, y: Tensor, given: tuple[bool, bool] = (False, False), bias: bool = False) -> Call:
    """The call that a product of `x` and `y` is; every size counts, nothing is read from memory."""
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
) -> Call:
    batch = math.prod(torch.broadcast_shapes(x_shape[:-2], y_shape[:-2]))
    sizes = (x_shape[-2], y_shape[-2], x_shape[-1], batch)
    layouts = (_layout(x_shape, x_stride), _layout(y_shape, y_stride))
    return Call(*sizes, *layouts, integers, given, bias, threads)


def _layout(shape: Sequence[int], stride: Sequence[int]) -> Layout:
    rows, terms = shape[-2:]
    batched = math.prod(shape[:-2]) > 1
    if stride[-1] == 1 or terms == 1:
        return Layout(Order.TERMS, stride[-2] == terms or rows == 1, batched)
    if stride[-2] == 1 or rows == 1:
        return Layout(Order.ROWS, stride[-1] == rows, batched)
    return Layout(Order.APART, False, batched)


@lru_cache(maxsize=4096)
def cases_of(call: Call, cuts: Cuts, px: int, py: int) -> tuple[Case, ...]:
    """The cases of a call for a kernel with these cuts: tiles of few terms, and few rows of as many as sums take to
    leave each fast path."""
    # A batch is divided among the threads, or the threads work inside; either way more of it is more of the same.
    share = 2 * call.threads
    batch = 1 if call.batch == 1 else 2 if call.batch < share else max(share, 2)
    tiles = alike(call.m, cuts.rows), alike(call.n, cuts.columns), _terms(call.k, cuts.terms)
    few = min(call.m, 2), min(call.n, 2)
    sizes = [tiles, *((*few, _odd(min(k, MOST_TERMS - 2), call.k)) for k in cuts.long if call.k >= k)]
    return tuple(Case(call._replace(m=m, n=n, k=k, batch=batch), px, py) for m, n, k in sizes)


def _odd(size: int, asked: int) -> int:
    """The size or the next, whichever is odd or even as what was asked for."""
    return size + ((size ^ asked) & 1)


def alike(size: int, tiles: Sequence[int]) -> int:
    """The least size that these tiles cut alike: none, one or several of each, and something left over or nothing."""
    if not tiles:
        return min(size, 5)  # one, two, three, four, or a few
    tile = tiles[-1]
    rest = size % tile
    whole = min(size // tile, 2) * tile
    return whole + (alike(rest, tiles[:-1]) if rest else 0)


def _terms(size: int, tiles: Sequence[int]) -> int:
    """As `alike`, but odd sizes stay odd, and of several longest tiles there are six: room for runs of any length."""
    found, longest = alike(size, tiles), tiles[-1]
    if size >= 2 * longest:
        found += 4 * longest
    return _odd(found, size)
