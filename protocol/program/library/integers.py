"""Division of integers by a constant, as a product and a shift: there is no primitive for it."""

from __future__ import annotations

from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value


def quotient(b: Builder, x: Value, divisor: int) -> Value:
    """floor(x / divisor) for i32 x and a positive divisor.

    Let 2^(s-1) < divisor <= 2^s and 0 <= x < 2^31. x is multiplied by m = floor(2^(31+s) / divisor) + 1, and
    the product is shifted right by 31 + s bits. The number 2^(31+s) / divisor is below 2^32, and m exceeds it
    by at most 1. So x m / 2^(31+s) exceeds x / divisor by less than 2^-s, which is at most 1 / divisor: too
    little to reach the next integer. A negative x is computed from its complement, -1 - x. For divisors from
    2^31 on, only the sign matters.
    """
    if divisor == 1:
        return x
    below = b.shr(x, b.i32(31))
    if divisor >= 2**31:
        return below
    s = (divisor - 1).bit_length()
    factor = b.constant(DType.U32, (), (1 << (31 + s)) // divisor + 1)
    high = b.mulhi(b.cast(b.xor(x, below), DType.U32), factor)
    return b.xor(b.cast(b.shr(high, b.constant(DType.U32, (), s - 1)), DType.I32), below)
