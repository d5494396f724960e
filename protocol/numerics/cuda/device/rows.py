"""Functions of rows: softmax, layer norm, their gradients, row and column sums (arithmetic.md section 5).

A Triton program handles ROWS rows, block by block, and recomputes intermediate values in every pass. Sums are
of integers, so their order does not matter.
"""

from __future__ import annotations

import triton
import triton.language as tl

from protocol.numerics.cuda.device.lists import list_exp, list_log
from protocol.numerics.cuda.device.scalar import (
    bits_of,
    canonical,
    exponent_of,
    factor_of,
    from_bits,
    magnitude,
    round_scaled,
    round_sum,
    whole,
)

MINUS_INFINITY = tl.constexpr(float("-inf"))


@triton.jit
def _places(rows, columns, start, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """For one block of this program's rows: the offsets of the elements, and which of these elements exist."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = start + tl.arange(0, BLOCK)[None, :]
    return row * columns + column, (row < rows) & (column < columns)


@triton.jit
def _row_places(rows, ROWS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    return row, row < rows


@triton.jit
def _terms(x, factor, there):
    return tl.sum(tl.where(there, whole(x, factor), 0).to(tl.int64), axis=1, keep_dims=True)


@triton.jit
def _largest(found, x, there):
    return tl.maximum(found, tl.max(tl.where(there, magnitude(x), 0), axis=1, keep_dims=True))


@triton.jit
def _key(x):
    """Map an f32 to an i32 so that the integers sort as the numbers do."""
    b = bits_of(x)
    return b ^ ((b >> 31) & 0x7FFFFFFF)


@triton.jit
def _max(x, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The maximum of every row, plus +0.0, which turns -0 into +0; NaN if any element is NaN."""
    top = tl.full((ROWS, 1), -0x80000000, tl.int32)
    largest = tl.zeros((ROWS, 1), tl.int32)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        value = tl.load(x + at, mask=there, other=MINUS_INFINITY)
        top = tl.maximum(top, tl.max(_key(value), axis=1, keep_dims=True))
        largest = _largest(largest, value, there)
    return tl.where(largest > 0x7F800000, float("nan"), from_bits(top ^ ((top >> 31) & 0x7FFFFFFF)) + 0.0)


@triton.jit
def _power_sum(x, most, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of exp(x - most) over every row; NaN if `most` is not finite.

    The largest term is exactly 1, so the row's exponent is 1.
    """
    total = tl.zeros((ROWS, 1), tl.int64)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        power = list_exp(tl.load(x + at, mask=there, other=MINUS_INFINITY) - most)
        total += _terms(power, 536870912.0, there)  # 2^29
    finite = magnitude(most) < 0x7F800000  # infinity - infinity is NaN
    return tl.where(finite, round_scaled(total, tl.where(finite, -29, 0)), float("nan"))


@triton.jit
def softmax(x, y, rows, columns, SAFE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """For every row, exp(x - max) divided by the row's sum of exp(x - max). With SAFE, a row of only -inf
    gives zeros.
    """
    most = _max(x, rows, columns, ROWS, BLOCK)
    total = _power_sum(x, most, rows, columns, ROWS, BLOCK)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        power = list_exp(tl.load(x + at, mask=there, other=MINUS_INFINITY) - most)
        value = canonical(tl.div_rn(power, total + tl.zeros_like(power)))
        if SAFE:
            value = tl.where(most == MINUS_INFINITY, 0.0, value)
        tl.store(y + at, value, mask=there)


@triton.jit
def log_softmax(x, y, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """(x - max) - log(sum of exp(x - max)) of every row."""
    most = _max(x, rows, columns, ROWS, BLOCK)
    logarithm = list_log(_power_sum(x, most, rows, columns, ROWS, BLOCK))
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        shifted = tl.load(x + at, mask=there, other=0.0) - most
        tl.store(y + at, canonical(shifted - logarithm), mask=there)


@triton.jit
def _sum_along(g, y, rows, columns, PRODUCT: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of every row of g, or of g y."""
    largest = tl.zeros((ROWS, 1), tl.int32)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        value = tl.load(g + at, mask=there, other=0.0)
        if PRODUCT:
            value = value * tl.load(y + at, mask=there, other=0.0)
        largest = _largest(largest, value, there)
    e = exponent_of(largest)
    factor = factor_of(e, 30)
    total = tl.zeros((ROWS, 1), tl.int64)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        value = tl.load(g + at, mask=there, other=0.0)
        if PRODUCT:
            value = value * tl.load(y + at, mask=there, other=0.0)
        total += _terms(value, factor, there)
    return round_sum(total, e)


@triton.jit
def softmax_grad(g, y, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """y (g - sum(g y)) of every row."""
    total = _sum_along(g, y, rows, columns, True, ROWS, BLOCK)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        value = tl.load(y + at, mask=there, other=0.0)
        value = value * (tl.load(g + at, mask=there, other=0.0) - total)
        tl.store(out + at, canonical(value), mask=there)


@triton.jit
def log_softmax_grad(g, y, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """g - exp(y) sum(g) of every row."""
    total = _sum_along(g, y, rows, columns, False, ROWS, BLOCK)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        power = list_exp(tl.load(y + at, mask=there, other=0.0))
        value = tl.load(g + at, mask=there, other=0.0) - power * total
        tl.store(out + at, canonical(value), mask=there)


@triton.jit
def sum_rows(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of every row."""
    total = _sum_along(x, x, rows, columns, False, ROWS, BLOCK)
    row, there = _row_places(rows, ROWS)
    tl.store(out + row, canonical(total), mask=there)


@triton.jit
def _square(x, at, there, mean):
    centred = tl.load(x + at, mask=there, other=0.0) - mean
    return centred * centred


@triton.jit
def _mean_of_squares(x, mean, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    largest = tl.zeros((ROWS, 1), tl.int32)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        largest = _largest(largest, _square(x, at, there, mean), there)
    e = exponent_of(largest)
    factor = factor_of(e, 30)
    total = tl.zeros((ROWS, 1), tl.int64)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        total += _terms(_square(x, at, there, mean), factor, there)
    return _over(round_sum(total, e), columns)


@triton.jit
def _over(total, columns):
    return tl.div_rn(
        total, tl.zeros_like(total) + columns
    )  # Triton passes the argument 1 as an untyped constant


@triton.jit
def layer_norm(
    x, gain, bias, y, means, rstds, eps, rows, columns,
    GAIN: tl.constexpr, BIAS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y, mean and 1 / sqrt(variance + eps) of every row; see `library.layer_norm`."""
    mean = _over(_sum_along(x, x, rows, columns, False, ROWS, BLOCK), columns)
    variance = _mean_of_squares(x, mean, rows, columns, ROWS, BLOCK)
    rstd = tl.div_rn(tl.full((ROWS, 1), 1.0, tl.float32), tl.sqrt_rn(variance + eps))
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        value = (tl.load(x + at, mask=there, other=0.0) - mean) * rstd
        column = start + tl.arange(0, BLOCK)[None, :]
        if GAIN:
            value = value * tl.load(gain + column, mask=column < columns, other=0.0)
        if BIAS:
            value = value + tl.load(bias + column, mask=column < columns, other=0.0)
        tl.store(y + at, canonical(value), mask=there)
    row, there = _row_places(rows, ROWS)
    tl.store(means + row, canonical(mean), mask=there)
    tl.store(rstds + row, canonical(rstd), mask=there)


@triton.jit
def _normal(x, at, there, mean, rstd):
    return (tl.load(x + at, mask=there, other=0.0) - mean) * rstd


@triton.jit
def _scaled(g, gain, at, there, columns, start, GAIN: tl.constexpr, BLOCK: tl.constexpr):
    value = tl.load(g + at, mask=there, other=0.0)
    if GAIN:
        column = start + tl.arange(0, BLOCK)[None, :]
        value = value * tl.load(gain + column, mask=column < columns, other=0.0)
    return value


@triton.jit
def layer_norm_grad(
    g, x, means, rstds, gain, out, rows, columns, GAIN: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """rstd ((h - mean(h)) - n mean(h n)) of every row, with n = (x - mean) rstd and h = g gain."""
    row, row_there = _row_places(rows, ROWS)
    mean = tl.load(means + row, mask=row_there, other=0.0)
    rstd = tl.load(rstds + row, mask=row_there, other=0.0)
    most, most_along = tl.zeros((ROWS, 1), tl.int32), tl.zeros((ROWS, 1), tl.int32)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        h = _scaled(g, gain, at, there, columns, start, GAIN, BLOCK)
        most = _largest(most, h, there)
        most_along = _largest(most_along, h * _normal(x, at, there, mean, rstd), there)
    e, e_along = exponent_of(most), exponent_of(most_along)
    factor, factor_along = factor_of(e, 30), factor_of(e_along, 30)
    total, total_along = tl.zeros((ROWS, 1), tl.int64), tl.zeros((ROWS, 1), tl.int64)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        h = _scaled(g, gain, at, there, columns, start, GAIN, BLOCK)
        total += _terms(h, factor, there)
        total_along += _terms(h * _normal(x, at, there, mean, rstd), factor_along, there)
    average, along = _over(round_sum(total, e), columns), _over(round_sum(total_along, e_along), columns)
    for start in range(0, columns, BLOCK):
        at, there = _places(rows, columns, start, ROWS, BLOCK)
        h = _scaled(g, gain, at, there, columns, start, GAIN, BLOCK)
        value = rstd * ((h - average) - _normal(x, at, there, mean, rstd) * along)
        tl.store(out + at, canonical(value), mask=there)


# --- columns: many programs add to one column, by integer atomics ------------------------------------------


@triton.jit
def _columns_of_block(rows, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """The columns of this program's block; blocks are counted down the rows, then across the columns."""
    return (tl.program_id(0) // tl.cdiv(rows, ROWS)).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)


@triton.jit
def _column_terms(
    g, x, means, rstds, rows, columns, NORMAL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """A block of terms: g, or g (x - mean) rstd if NORMAL. Terms outside the matrix are zero."""
    down = tl.program_id(0) % tl.cdiv(rows, ROWS)
    row = down.to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = _columns_of_block(rows, ROWS, BLOCK)[None, :]
    there = (row < rows) & (column < columns)
    at = row * columns + column
    value = tl.load(g + at, mask=there, other=0.0)
    if NORMAL:
        mean = tl.load(means + row, mask=row < rows, other=0.0)
        rstd = tl.load(rstds + row, mask=row < rows, other=0.0)
        value = value * ((tl.load(x + at, mask=there, other=0.0) - mean) * rstd)
    return tl.where(there, value, 0.0)


@triton.jit
def largest_of_columns(
    g, x, means, rstds, largest, rows, columns, NORMAL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Set largest[column] to the bits of the column's largest magnitude; `largest` must start as zero."""
    value = _column_terms(g, x, means, rstds, rows, columns, NORMAL, ROWS, BLOCK)
    column = _columns_of_block(rows, ROWS, BLOCK)
    tl.atomic_max(largest + column, tl.max(magnitude(value), axis=0), mask=column < columns, sem="relaxed")


@triton.jit
def add_columns(
    g, x, means, rstds, largest, totals, rows, columns,
    NORMAL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """For each column, add this block's fixed-point integers to totals[column], which must start as zero."""
    value = _column_terms(g, x, means, rstds, rows, columns, NORMAL, ROWS, BLOCK)
    column = _columns_of_block(rows, ROWS, BLOCK)
    e = exponent_of(tl.load(largest + column, mask=column < columns, other=0))
    m = whole(value, factor_of(e, 30)[None, :])
    tl.atomic_add(totals + column, tl.sum(m.to(tl.int64), axis=0), mask=column < columns, sem="relaxed")


@triton.jit
def round_scaled_columns(largest, totals, out, columns, BLOCK: tl.constexpr):
    """Write the rounded sum of every column."""
    column = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = column < columns
    e = exponent_of(tl.load(largest + column, mask=there, other=0))
    total = tl.load(totals + column, mask=there, other=0)
    tl.store(out + column, canonical(round_sum(total, e)), mask=there)
