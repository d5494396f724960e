"""Exact products of int8 slices: arithmetic.md sections 3, 4 and 8.

Each integer is cut into base-128 digits (slices) in [-64, 64]: two for 13 bits, three for 20. Tensor cores
multiply every slice of one operand by every slice of the other. Products of equal weight share an i32
accumulator. The sums are combined and rounded once, in registers.

`plane` is the distance between two slices, in bytes. Triton passes it in 32 bits if it fits, so the kernels
widen it before they multiply it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from protocol.numerics.cuda.device.scalar import (
    canonical,
    exponent_of,
    factor_of,
    magnitude,
    round_scaled,
    whole,
)


@triton.jit
def _tile(
    x,
    m,
    k,
    inner,
    outer_stride,
    inner_stride,
    row_stride,
    term_stride,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """This program's tile: its values (zero outside the matrix), then the index of its matrix in the batch,
    the indices of its rows, and the indices of its terms.
    """
    along = tl.cdiv(k, BLOCK)
    tiles = tl.cdiv(m, ROWS) * along
    tile = tl.program_id(0) % tiles
    row = (tile // along) * ROWS + tl.arange(0, ROWS)
    term = (tile % along) * BLOCK + tl.arange(0, BLOCK)
    batch = (tl.program_id(0) // tiles).to(tl.int64)
    there = (row[:, None] < m) & (term[None, :] < k)
    at = (batch // inner) * outer_stride + (batch % inner) * inner_stride
    at = at + row[:, None].to(tl.int64) * row_stride + term[None, :].to(tl.int64) * term_stride
    return tl.load(x + at, mask=there, other=0), batch, row, term


@triton.jit
def largest_of_rows(
    x, largest, m, k, inner, outer_stride, inner_stride, row_stride, term_stride,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Set largest[batch, row] to the bits of the row's largest magnitude; `largest` must start as zero."""
    value, batch, row, _ = _tile(
        x, m, k, inner, outer_stride, inner_stride, row_stride, term_stride, ROWS, BLOCK
    )
    at = batch * m + row
    tl.atomic_max(largest + at, tl.max(magnitude(value), axis=1), mask=row < m, sem="relaxed")


@triton.jit
def slice_rows(
    x, exponents, slices, m, k, padded, plane, inner, outer_stride, inner_stride, row_stride, term_stride, p,
    COUNT: tl.constexpr, INTEGERS: tl.constexpr, GIVEN: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write slices[i, batch, row, term], the lowest digit first, with zeros for terms from k to `padded`.

    If GIVEN, `exponents` [batch, row] holds exponents. Otherwise it holds the rows' largest magnitudes. With
    WHOLE, a BLOCK holds whole rows, and this kernel computes these magnitudes and stores them there. Without
    WHOLE, `largest_of_rows` must have written them. With INTEGERS, `x` is quantised already.
    """
    value, batch, row, term = _tile(
        x, m, k, inner, outer_stride, inner_stride, row_stride, term_stride, ROWS, BLOCK
    )
    if INTEGERS:
        rest = value
    else:
        if WHOLE:
            e = tl.max(magnitude(value), axis=1)
            tl.store(exponents + batch * m + row, e, mask=row < m)
        else:
            e = tl.load(exponents + batch * m + row, mask=row < m, other=0)
        if not GIVEN:
            e = exponent_of(e)
        rest = whole(value, factor_of(e, p)[:, None])
        rest = tl.where((e == 32767)[:, None], 0, rest)
    at = (batch * m + row[:, None]) * padded + term[None, :]
    there = (row[:, None] < m) & (term[None, :] < padded)
    for i in tl.static_range(COUNT - 1):
        high = (rest + 64) >> 7
        tl.store(slices + i * plane.to(tl.int64) + at, (rest - (high << 7)).to(tl.int8), mask=there)
        rest = high
    tl.store(slices + (COUNT - 1) * plane.to(tl.int64) + at, rest.to(tl.int8), mask=there)


@triton.jit
def _row_slices(x, plane, row, size, padded, term, i: tl.constexpr):
    at = row[:, None].to(tl.int64) * padded + term[None, :]
    return tl.load(x + i * plane.to(tl.int64) + at, mask=row[:, None] < size, other=0)


@triton.jit
def _column_slices(y, plane, column, size, padded, term, i: tl.constexpr):
    at = column[None, :].to(tl.int64) * padded + term[:, None]
    return tl.load(y + i * plane.to(tl.int64) + at, mask=column[None, :] < size, other=0)


@triton.jit
def _section(
    x, y, x_plane, y_plane, row, column, m, n, padded, begin, end,
    X: tl.constexpr, Y: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """i64 [BM, BN]: the sums of products over terms begin … end - 1.

    For each term, an accumulator adds at most three products, each of magnitude at most 2^12.
    """
    a0 = tl.zeros((BM, BN), tl.int32)
    a1 = tl.zeros((BM, BN), tl.int32)
    a2 = tl.zeros((BM, BN), tl.int32)
    a3 = tl.zeros((BM, BN), tl.int32)
    a4 = tl.zeros((BM, BN), tl.int32)
    for start in range(begin, end, BK):
        term = start + tl.arange(0, BK)
        x0 = _row_slices(x, x_plane, row, m, padded, term, 0)
        x1 = _row_slices(x, x_plane, row, m, padded, term, 1)
        y0 = _column_slices(y, y_plane, column, n, padded, term, 0)
        y1 = _column_slices(y, y_plane, column, n, padded, term, 1)
        a0 = tl.dot(x0, y0, acc=a0, out_dtype=tl.int32)
        a1 = tl.dot(x0, y1, acc=a1, out_dtype=tl.int32)
        a1 = tl.dot(x1, y0, acc=a1, out_dtype=tl.int32)
        a2 = tl.dot(x1, y1, acc=a2, out_dtype=tl.int32)
        if X == 3:
            x2 = _row_slices(x, x_plane, row, m, padded, term, 2)
            a2 = tl.dot(x2, y0, acc=a2, out_dtype=tl.int32)
            a3 = tl.dot(x2, y1, acc=a3, out_dtype=tl.int32)
        if Y == 3:
            y2 = _column_slices(y, y_plane, column, n, padded, term, 2)
            a2 = tl.dot(x0, y2, acc=a2, out_dtype=tl.int32)
            a3 = tl.dot(x1, y2, acc=a3, out_dtype=tl.int32)
        if X + Y == 6:
            a4 = tl.dot(x2, y2, acc=a4, out_dtype=tl.int32)
    total = a0.to(tl.int64) + (a1.to(tl.int64) << 7) + (a2.to(tl.int64) << 14)
    if X + Y > 4:
        total += a3.to(tl.int64) << 21
    if X + Y == 6:
        total += a4.to(tl.int64) << 28
    return total


@triton.jit
def product(
    x, y, ex, ey, bias, out, m, n, padded, x_plane, y_plane, x_batch, y_batch, bits,
    X: tl.constexpr, Y: tl.constexpr, INTEGERS: tl.constexpr, BIAS: tl.constexpr, GIVEN_X: tl.constexpr,
    GIVEN_Y: tl.constexpr, SECTION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Multiply slices [X, batch, m, padded] by [Y, batch, n, padded] into out[batch, m, n].

    `out` is f32, or i64 with INTEGERS.

    `x_batch` and `y_batch` are 1, or 0 if one matrix serves the whole batch. SECTION is 0 if the accumulators
    can add all `padded` terms. Otherwise it is the number of terms that they can add. With GIVEN_X, `ex`
    holds exponents, otherwise the rows' largest magnitudes, like `exponents` in `slice_rows`. `ey` and
    GIVEN_Y are the same for y.
    """
    down, across = tl.cdiv(m, BM), tl.cdiv(n, BN)
    # Eight rows of tiles at a time, so that their shared operands stay in the L2 cache.
    tile = tl.program_id(0) % (down * across)
    group = tile // (8 * across)
    height = min(down - group * 8, 8)
    row = (group * 8 + tile % (8 * across) % height) * BM + tl.arange(0, BM)
    column = (tile % (8 * across) // height) * BN + tl.arange(0, BN)
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    x += batch * x_batch * m * padded
    y += batch * y_batch * n * padded
    if SECTION == 0:
        total = _section(x, y, x_plane, y_plane, row, column, m, n, padded, 0, padded, X, Y, BM, BN, BK)
    else:
        total = tl.zeros((BM, BN), tl.int64)
        for begin in range(0, padded, SECTION):
            end = min(begin + SECTION, padded)
            total += _section(x, y, x_plane, y_plane, row, column, m, n, padded, begin, end, X, Y, BM, BN, BK)
    at = (batch * m + row[:, None]) * n + column[None, :]
    there = (row[:, None] < m) & (column[None, :] < n)
    if INTEGERS:
        tl.store(out + at, total, mask=there)
    else:
        e_x = tl.load(ex + batch * x_batch * m + row, mask=row < m, other=0)
        e_y = tl.load(ey + batch * y_batch * n + column, mask=column < n, other=0)
        if not GIVEN_X:
            e_x = exponent_of(e_x)
        if not GIVEN_Y:
            e_y = exponent_of(e_y)
        bad = (e_x == 32767)[:, None] | (e_y == 32767)[None, :]
        e = tl.where(bad, 0, e_x[:, None] + e_y[None, :] - bits)
        value = tl.where(bad, float("nan"), round_scaled(total, e))
        if BIAS:
            value = value + tl.load(bias + column, mask=column < n, other=0.0)[None, :]
        tl.store(out + at, canonical(value), mask=there)
