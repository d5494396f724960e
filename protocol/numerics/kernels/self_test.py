"""The self-test of a product kernel: arithmetic.md section 8, "Self-tests".

Before a kernel is used, it multiplies the hardest operands: all terms at the limit and of one sign,
alternating signs, slices at their edges, runs of chunks that just fit into an accumulator, special rows,
subnormal results. `failure_of_widths` tests sizes and layouts of all kinds, `failure_of_class` one shape
class. The expected products, and their rounding, use only integers: no floating-point mode can make a wrong
product look right.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from protocol.numerics.elementwise import add
from protocol.numerics.kernels.base import ProductKernel
from protocol.numerics.kernels.shape_classes import Layout, Order, ProductCall, ShapeClass
from protocol.numerics.rows import SENTINEL

KINDS_X, KINDS_Y = 13, 11
"""How many different rows x and y have.

No tile is a multiple of either number, so rows that are a tile apart always differ.
"""
CHUNK = 64
ONE_CHUNK, TWO_CHUNKS, TOO_MUCH = 5788, 4093, 5795
"""Magnitudes of the terms of a chunk. They test where sums stop fitting into i32.

A kernel adds chunks in i32 as long as a bound on the sum is below sqrt(4.6e18), which is a little less than
2^31. If x and y both have terms of one of these magnitudes, the bound is the sum of the terms' squares. For
one chunk of ONE_CHUNK it is just below the limit, and so it is for two chunks of TWO_CHUNKS together. For one
chunk of TOO_MUCH it is 64 * 5795^2, just beyond 2^31.
"""
ALL_LARGE = {13: -(63 * 128 + 64), 20: -((63 * 128 + 64) * 128 + 64)}
"""Integers whose base-128 digits are all large and of the same sign, so that none of their products cancel."""
SCALES_X, SCALES_Y = (0, -85, 100), (0, -70, 60, -97)
"""Exponents of two by which rows are scaled, so that results overflow, underflow and are subnormal."""
BAD_X, BAD_Y = 5, 7
"""The row of x that holds an infinity, and the row of y that holds a NaN."""

_ROWS, _COLUMNS = Layout(Order.TERMS, True, False), Layout(Order.ROWS, True, False)
SHAPES = ((1, 1, 1), (3, 2, 8200), (14, 35, 130), (5, 33, 1029))
"""Four shapes (M, N, K): the smallest; one with over 2^13 terms, where float64 must split products of 20 x 20
bits; one where x has more rows than a panel of 12, and y more than a panel of 32; and one with over 16 chunks
of terms, where a sum of products does not fit into i32 if all terms have one sign and are as large as their
bits allow.
"""


def failure_of_widths(kernel: ProductKernel, device: torch.device, px: int, py: int) -> str | None:
    """A message about a wrong product of px by py bits, or None if every bit is right."""
    for m, n, k in SHAPES:
        integers = ProductCall(m, n, k, 1, _ROWS, _ROWS, True, (False, False), False, 1)
        calls = [integers, integers._replace(integers=False, bias=True)]
        for x in (_ROWS, _COLUMNS):
            calls += [integers._replace(integers=False, x=x, y=y) for y in (_ROWS, _COLUMNS)]
        for call in calls:
            if wrong := failure_of_class(kernel, device, ShapeClass(call, px, py)):
                return wrong
    return None


def failure_of_class(kernel: ProductKernel, device: torch.device, shape_class: ShapeClass) -> str | None:
    """A message about a wrong product in one shape class, or None if every bit is right."""
    call, px, py = shape_class
    for at_limit in (True, False) if call.k > CHUNK else (True,):
        table = _table(call.k, px, py, at_limit)
        order_x, order_y = (_kinds(call, side, len(t)) for side, t in ((0, table.x), (1, table.y)))
        exact = table.exact[order_x[:, :, None], order_y[:, None, :]]
        if call.integers:
            x, y = _placed(table.x[order_x], call.x, device), _placed(table.y[order_y], call.y, device)
            found = kernel.dot(x, y, px, py).cpu()
            right = exact
        else:
            found, right = _contracted(kernel, device, shape_class, table, order_x, order_y, exact)
        if not torch.equal(found.reshape(right.shape), right):
            return f"{'an integer' if call.integers else 'a rounded result'} {_description(shape_class)} is wrong"
    return None


def _description(shape_class: ShapeClass) -> str:
    call, px, py = shape_class
    batch = "" if call.batch == 1 else f"{call.batch} times "
    return f"of {batch}[{call.m}, {call.k}] x [{call.n}, {call.k}] of {px} x {py} bits"


def _contracted(
    kernel: ProductKernel,
    device: torch.device,
    shape_class: ShapeClass,
    table: _Table,
    order_x: Tensor,
    order_y: Tensor,
    exact: Tensor,
) -> tuple[Tensor, Tensor]:
    """The bits of the kernel's result for the shape class, and the right bits."""
    call, px, py = shape_class
    bits = round_scaled_bits(exact, table.scales_x[order_x][:, :, None] + table.scales_y[order_y][:, None, :])
    bad = (order_x == BAD_X)[:, :, None] | (order_y == BAD_Y)[:, None, :]
    bits = torch.where(bad, 0x7FC00000, bits)
    x = _placed(table.values_x[order_x], call.x, device)
    y = _placed(table.values_y[order_y], call.y, device)
    ex = ey = bias = None
    if call.given[0]:
        e = torch.where(order_x == BAD_X, SENTINEL, px + table.scales_x[order_x])
        ex = (e if call.x.batched else e[0]).unsqueeze(-1).to(device, torch.int32)
    if call.given[1]:
        e = torch.where(order_y == BAD_Y, SENTINEL, py + table.scales_y[order_y])
        ey = (e if call.y.batched else e[0]).unsqueeze(-1).to(device, torch.int32)
    if call.bias:  # of ordinary size, so that no sum is subnormal, because torch adds it here
        bias = torch.tensor([(-1.5) ** (1 + n % 7) for n in range(call.n)], dtype=torch.float32, device="cpu")
        bits = add(bits.view(torch.float32), bias).view(torch.int32)
        bias = bias.to(device)
    found = kernel.contract(x, y, px, py, ex, ey, bias)
    return found.cpu().contiguous().view(torch.int32), bits


class _Table:
    """The different rows that operands consist of, and all their products."""

    def __init__(self, terms: int, px: int, py: int, at_limit: bool) -> None:
        kinds_x, kinds_y = (KINDS_X, KINDS_Y) if terms < 1 << 12 else (3, 2)
        make = _limits if at_limit else _runs
        self.x, self.y = make(kinds_x, terms, px), make(kinds_y, terms, py).flip(0)
        self.exact = (self.x.to(torch.int64)[:, None, :] * self.y.to(torch.int64)[None, :, :]).sum(dim=-1)
        self.scales_x = torch.tensor([SCALES_X[r % len(SCALES_X)] for r in range(kinds_x)], device="cpu")
        self.scales_y = torch.tensor([SCALES_Y[r % len(SCALES_Y)] for r in range(kinds_y)], device="cpu")
        self.values_x, self.values_y = _values(self.x, px, self.scales_x), _values(self.y, py, self.scales_y)
        if kinds_x > BAD_X:
            self.values_x[BAD_X, terms // 2], self.values_y[BAD_Y, terms // 2] = torch.inf, torch.nan


@lru_cache(maxsize=16)
def _table(terms: int, px: int, py: int, at_limit: bool) -> _Table:
    return _Table(terms, px, py, at_limit)


def _kinds(call: ProductCall, side: int, kinds: int) -> Tensor:
    """i64 [batch, rows]: each row's index in the table.

    Each matrix of a batch starts further on in the table than the matrix before it: one row further for x,
    two rows further for y.
    """
    rows, layout = ((call.m, call.x), (call.n, call.y))[side]
    start = torch.arange(call.batch, device="cpu")[:, None] * (1 + side if layout.batched else 0)
    return (torch.arange(rows, device="cpu")[None, :] + start) % kinds


def _placed(rows: Tensor, layout: Layout, device: torch.device) -> Tensor:
    """The rows [batch, M, K] in the given layout.

    Memory between the rows is filled with NaN, or with the largest integer if the rows are integers.
    """
    rows = rows if layout.batched else rows[0]
    if layout.order is Order.APART:
        spread = torch.stack((rows, torch.full_like(rows, _between(rows))), dim=-1)
        return spread.to(device)[..., 0]
    matrix = rows.mT if layout.order is Order.ROWS else rows
    if layout.dense:
        matrix = matrix.contiguous().to(device)
    else:
        height, width = matrix.shape[-2:]
        around = torch.full(
            (*matrix.shape[:-2], height + 1, width + 3), _between(rows), dtype=rows.dtype, device="cpu"
        )
        around[..., :height, 1 : width + 1] = matrix
        matrix = around.to(device)[..., :height, 1 : width + 1]
    return matrix.mT if layout.order is Order.ROWS else matrix


def _between(rows: Tensor) -> float | int:
    return torch.nan if rows.dtype.is_floating_point else 2**31 - 1


def _limits(rows: int, terms: int, p: int) -> Tensor:
    """i32 [rows, terms] with |m| <= 2^p; the first term of every row is 2^p, so that a row's exponent is p."""
    top = 1 << p
    k = torch.arange(terms, dtype=torch.int64, device="cpu")
    sign = 1 - 2 * (k & 1)
    # Knuth's multiplicative hash, spread over the range
    mixed = (k * 2654435761 + 12345) % (2 * top + 1) - top
    hard = (
        torch.full_like(k, top),
        torch.full_like(k, ALL_LARGE[p]),
        sign * top,
        torch.full_like(k, -top),
        torch.where(sign > 0, top - 1, -top),
        sign * (top - 64),  # the low slice is -64, the largest magnitude of a remainder
        (k * 128 + 63) % top,
        mixed,
        mixed >> 6,
    )
    chosen = [hard[row % len(hard)] * (1 if row < len(hard) else -1) for row in range(rows)]
    return _headed(torch.stack(chosen), top)


def _runs(rows: int, terms: int, p: int) -> Tensor:
    """i32 [rows, terms], in chunks of 64 terms that test where sums stop fitting into i32.

    The chunks repeat in this order: a chunk of zeros, a chunk that fits alone, two chunks that fit together,
    a chunk of zeros, a chunk that does not fit. The first term of every row is 2^p.
    """
    k = torch.arange(terms, dtype=torch.int64, device="cpu")
    sizes = torch.tensor([0, ONE_CHUNK, TWO_CHUNKS, TWO_CHUNKS, 0, TOO_MUCH], device="cpu")
    size = sizes[(k // CHUNK) % 6] << (p - 13)
    signs = (torch.ones_like(k), 1 - 2 * (k & 1), -torch.ones_like(k), 1 - 2 * ((k * k >> 3) & 1))
    chosen = [signs[row % len(signs)] * (size - row % 3 * (size > 0)) for row in range(rows)]
    return _headed(torch.stack(chosen), 1 << p)


def _headed(rows: Tensor, top: int) -> Tensor:
    found = rows.to(torch.int32)
    found[:, 0] = top
    return found


def _values(m: Tensor, p: int, scales: Tensor) -> Tensor:
    """f32 values that quantise to `m` with the exponent p + scale.

    Their magnitudes must be below 2^(p + scale). So where |m| is 2^p, it is replaced by 2^p - 2^(p-24) before
    scaling; quantising rounds this to 2^p.
    """
    below = float((1 << 24) - 1) * 2.0 ** (p - 24)
    factors = torch.tensor([[2.0**scale] for scale in scales.tolist()], dtype=torch.float32, device="cpu")
    return m.to(torch.float32).clamp(-below, below) * factors


def round_scaled_bits(acc: Tensor, e: Tensor) -> Tensor:
    """The bits, as i32, of the f32 nearest to acc * 2^e, ties to even, computed with integers only.

    `acc` is i64 above -2^63, `e` is i64.
    """
    magnitude = acc.abs()
    length, rest = torch.zeros_like(magnitude), magnitude
    for step in (32, 16, 8, 4, 2, 1):
        high = rest >= 1 << step
        length, rest = length + step * high, torch.where(high, rest >> step, rest)
    lead = length + e  # magnitude * 2^e lies in [2^lead, 2^(lead + 1))
    drop = torch.clamp(lead - 23, min=-149) - e  # bits below the last one that f32 keeps
    left = magnitude << torch.clamp(-drop, 0, 23)
    cut = torch.clamp(drop, 1, 63)
    kept = left >> cut
    over = left - (kept << cut)
    half = torch.bitwise_left_shift(torch.ones_like(cut), cut - 1)
    kept = kept + ((over > half) | ((over == half) & (kept & 1 == 1)))
    mantissa = torch.where(drop > 63, 0, torch.where(drop > 0, kept, left))
    bits = mantissa + (torch.clamp(lead + 126, min=0) << 23)  # a carry correctly increments the exponent
    bits = torch.where(mantissa == 0, 0, torch.clamp(bits, max=0x7F800000))
    return torch.where(acc < 0, bits - (1 << 31), bits).to(torch.int32)
