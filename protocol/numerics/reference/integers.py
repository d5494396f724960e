"""Wrapping integers, shifts, bits and casts: arithmetic.md section 2, encoding.md section 3 ("Casts").

Values of every type, bools included, are plain ints; an f32 is its bit pattern. `wrap` and `saturate` bring
an integer into its type's range.
"""

from __future__ import annotations

from protocol.numerics.reference import floats
from protocol.numerics.types import DType

SIGNED = (DType.I32, DType.I64)


def wrap(value: int, dtype: DType) -> int:
    """`value` modulo 2^width, within the type's range."""
    low = value & ((1 << dtype.width) - 1)
    return low - (1 << dtype.width) if dtype in SIGNED and low >> (dtype.width - 1) else low


def saturate(value: int, dtype: DType) -> int:
    """`value` clamped to a signed type's range."""
    limit = 1 << (dtype.width - 1)
    return max(-limit, min(limit - 1, value))


def add(x: int, y: int, dtype: DType) -> int:
    """x + y, wrapping."""
    return wrap(x + y, dtype)


def sub(x: int, y: int, dtype: DType) -> int:
    """x - y, wrapping."""
    return wrap(x - y, dtype)


def mul(x: int, y: int, dtype: DType) -> int:
    """x * y, wrapping."""
    return wrap(x * y, dtype)


def shl(x: int, y: int, dtype: DType) -> int:
    """x << (y mod width)."""
    return wrap(x << (y % dtype.width), dtype)


def shr(x: int, y: int, dtype: DType) -> int:
    """x >> (y mod width); arithmetic for signed types, logical for others."""
    return x >> (y % dtype.width)


def mulhi(x: int, y: int) -> int:
    """High word of the product of two u32."""
    return x * y >> 32


def cast(x: int, source: DType, target: DType) -> int:
    """Convert one element. From f32 there are only casts to i32 and bool; others raise ValueError."""
    if source is DType.F32:
        return _cast_f32(x, target)
    if target is DType.BOOL:
        return int(x != 0)
    if target is DType.F32:
        return floats.round_f32(int(x < 0), abs(x), 0)
    return wrap(int(x), target)


def _cast_f32(x: int, target: DType) -> int:
    if target is DType.BOOL:
        return int(not floats.is_zero(x))
    if target is not DType.I32:
        raise ValueError(f"expected a cast from F32 to I32 or BOOL, got {target.name}")
    return nearest(x, DType.I32)


def nearest(x: int, target: DType) -> int:
    """f32 to the nearest integer, ties to even, saturated to a signed type; NaN gives 0."""
    if floats.is_nan(x):
        return 0
    if floats.is_infinite(x):
        return saturate(-(1 << 64) if x & floats.SIGN else 1 << 64, target)
    return saturate(floats.nearest_of(*floats.exact(x)), target)
