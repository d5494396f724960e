"""Row exponents, fixed point, contractions and reductions of sequences: arithmetic.md sections 3 to 5.

A row is a sequence of f32 patterns, or of ints for `dot`, `sum_i64`, `prefix_sum` and `scatter_sum_i64`. One
call computes one element, but `prefix_sum` and `scatter_sum` compute a list.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.numerics.reference import floats
from protocol.numerics.reference.integers import nearest, wrap
from protocol.numerics.types import DType

SENTINEL = 32767
MIN_EXPONENT = -95


def exponent(row: Sequence[int]) -> int:
    """Smallest e >= -95 with max|x| < 2^e; the sentinel 32767 if the row holds a NaN or an infinity."""
    field = max(x & floats.MAGNITUDE for x in row) >> 23
    return SENTINEL if field == 255 else max(MIN_EXPONENT, field - 126)


def quantise(x: int, e: int, p: int) -> int:
    """i32 m_p(x): rint(x * 2^(p-e)), saturating; 0 if `e` is the sentinel or x is NaN."""
    return 0 if e == SENTINEL else nearest(floats.scale(x, p - e), DType.I32)


def to_fixed(x: int, e: int, p: int) -> int:
    """i64 m_p(x): rint(x * 2^(p-e)), saturating; 0 if `e` is the sentinel or x is NaN."""
    return 0 if e == SENTINEL else nearest(floats.scale(x, p - e), DType.I64)


def round_scaled(acc: int, exponents: Sequence[int], p: int) -> int:
    """f32 round(acc * 2^(s - p)), where s is the sum of `exponents`; NaN if an exponent is the sentinel, +0
    for acc = 0.
    """
    if SENTINEL in exponents:
        return floats.NAN
    k = max(-1000, min(1000, sum(exponents) - p))  # |acc| <= 2^63: larger |k| give only 0 and infinity
    return floats.round_f32(int(acc < 0), abs(acc), k) if acc else 0


def dot(x: Sequence[int], y: Sequence[int]) -> int:
    """i64 sum of products, wrapping."""
    return wrap(sum(a * b for a, b in zip(x, y, strict=True)), DType.I64)


def sum_i64(row: Sequence[int]) -> int:
    """i64 sum, wrapping."""
    return wrap(sum(row), DType.I64)


def prefix_sum(row: Sequence[int]) -> list[int]:
    """All inclusive prefix sums of a row, wrapping."""
    return [sum_i64(row[: end + 1]) for end in range(len(row))]


def contract(x: Sequence[int], y: Sequence[int], px: int, py: int) -> int:
    """Product of two f32 rows, as f32. The fixed-point product is exact and is rounded once (section 4)."""
    ex, ey = exponent(x), exponent(y)
    acc = dot([quantise(v, ex, px) for v in x], [quantise(v, ey, py) for v in y])
    return round_scaled(acc, (ex, ey), px + py)


def sum_f32(row: Sequence[int]) -> int:
    """Sum of an f32 row, as f32. The sum in 30-bit fixed point is exact and is rounded once (section 5)."""
    e = exponent(row)
    return round_scaled(sum_i64([to_fixed(x, e, 30) for x in row]), (e,), 30)


def max_f32(row: Sequence[int]) -> int:
    """f32 maximum of a row, with +0.0 added; NaN if any element is NaN."""
    largest = floats.add(row[0], 0)
    for x in row[1:]:
        largest = floats.maximum(largest, x)
    return largest


def argmax(row: Sequence[int]) -> int:
    """Index of the first NaN. If there is no NaN, the lowest index of the maximum; +0 and -0 count as equal."""
    for index, x in enumerate(row):
        if floats.is_nan(x):
            return index
    largest = max_f32(row)
    return next(index for index, x in enumerate(row) if floats.eq(x, largest))


def scatter_sum_i64(index: Sequence[int], row: Sequence[int], place: int) -> int:
    """i64 sum of the elements whose index is `place`, wrapping."""
    return sum_i64([x for i, x in zip(index, row, strict=True) if i == place])


def scatter_sum(index: Sequence[int], column: Sequence[int], rows: int) -> list[int]:
    """For each of `rows` target rows, the f32 sum of those elements of `column` whose index is the row's
    number. The whole column has one exponent.

    Elements with an index outside the target rows are dropped.
    """
    e = exponent(column)
    fixed = [to_fixed(x, e, 30) for x in column]
    return [round_scaled(scatter_sum_i64(index, fixed, row), (e,), 30) for row in range(rows)]
