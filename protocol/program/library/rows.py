"""Instructions that the bodies of several library functions share: sums and means along rows of any length,
the first elements of rows, and counting.

Rows are padded for reductions as encoding.md section 3 ("Rows") requires.
"""

from __future__ import annotations

from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value


def cut_rows(b: Builder, x: Value, length: int) -> Value:
    """The first `length` elements of every row of [..., K]."""
    return x if x.shape[-1] == length else b.slice(x, -1, 0, length)


def sum_last(b: Builder, x: Value) -> Value:
    """The sum of each row of an f32 [..., K], computed as in arithmetic.md section 5. K may be any length.
    The result is [..., 1].
    """
    rows = b.pad_rows(x, 0.0)
    e = b.exponent(rows)
    return b.round_scaled(b.sum(b.to_fixed(rows, e)), e, p=30)


def mean_last(b: Builder, x: Value) -> Value:
    """The mean of each row of an f32 [..., K]: the rounded sum is divided by K and rounded again. The result
    is [..., 1].
    """
    return b.div(sum_last(b, x), b.constant(DType.F32, (), float(x.shape[-1])))


def count_up(b: Builder, length: int) -> Value:
    """i32 [length]: 0, 1, 2, …, built by doubling, because no primitive counts."""
    value = b.constant(DType.I32, (1,), 0)
    while value.shape[0] < length:
        value = b.concat([value, b.add(value, b.i32(value.shape[0]))], 0)
    return cut_rows(b, value, length)
