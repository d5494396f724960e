"""f32 arithmetic on bit patterns, with integers only: arithmetic.md section 2.

Every operation that rounds computes an exact integer (or an integer with a sticky bit) times a power of two.
It then calls `round_f32`, the only place that rounds to an f32 and handles subnormals and overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

NAN = 0x7FC00000
INFINITY = 0x7F800000
SIGN = 0x80000000
MAGNITUDE = 0x7FFFFFFF
FRACTION = 0x007FFFFF
HIDDEN = 0x00800000
MIN_POWER = -149  # exponent of the smallest subnormal


def is_nan(x: int) -> bool:
    """Whether x is a NaN."""
    return x & MAGNITUDE > INFINITY


def is_infinite(x: int) -> bool:
    """Whether x is an infinity."""
    return x & MAGNITUDE == INFINITY


def is_zero(x: int) -> bool:
    """Whether x is a zero of either sign."""
    return x & MAGNITUDE == 0


def canonical(x: int) -> int:
    """x, with every NaN replaced by 0x7fc00000."""
    return NAN if is_nan(x) else x


def exact(x: int) -> tuple[int, int]:
    """The value of a finite pattern as (signed integer m, exponent q): m * 2^q."""
    field = (x & MAGNITUDE) >> 23
    fraction = x & FRACTION
    m, q = (fraction | HIDDEN, field - 150) if field else (fraction, MIN_POWER)
    return (-m if x & SIGN else m), q


def round_f32(sign: int, m: int, q: int) -> int:
    """The bits of m * 2^q, for m >= 0, or of its negative if `sign` is not 0, rounded to nearest even.
    Underflow is gradual; overflow gives infinity.
    """
    if m == 0:
        return SIGN if sign else 0
    top = m.bit_length() + q
    target = max(top - 24, MIN_POWER)
    shift = target - q
    if shift > 0:
        kept, rest, half = m >> shift, m & ((1 << shift) - 1), 1 << (shift - 1)
        kept += rest > half or (rest == half and kept & 1)
    else:
        kept = m << -shift
    # The hidden bit of a normal number adds one to the exponent field; a carry of the fraction, another.
    pattern = kept + ((target - MIN_POWER) << 23)
    return (SIGN if sign else 0) | min(pattern, INFINITY)


def add(x: int, y: int) -> int:
    """x + y."""
    if is_nan(x) or is_nan(y):
        return NAN
    if is_infinite(x) or is_infinite(y):
        if is_infinite(x) and is_infinite(y) and x != y:
            return NAN
        return x if is_infinite(x) else y
    (mx, qx), (my, qy) = exact(x), exact(y)
    q = min(qx, qy)
    m = (mx << (qx - q)) + (my << (qy - q))
    if m == 0:
        return x & y & SIGN  # an exact zero is +0 unless both operands are negative zeros
    return round_f32(int(m < 0), abs(m), q)


def sub(x: int, y: int) -> int:
    """x - y."""
    return NAN if is_nan(y) else add(x, y ^ SIGN)


def mul(x: int, y: int) -> int:
    """x * y."""
    sign = (x ^ y) & SIGN
    if is_nan(x) or is_nan(y):
        return NAN
    if is_infinite(x) or is_infinite(y):
        return NAN if is_zero(x) or is_zero(y) else sign | INFINITY
    (mx, qx), (my, qy) = exact(x), exact(y)
    return round_f32(sign, abs(mx * my), qx + qy)


def div(x: int, y: int) -> int:
    """x / y. At least 32 bits of the quotient and a sticky bit decide every rounding."""
    sign = (x ^ y) & SIGN
    if is_nan(x) or is_nan(y) or (is_infinite(x) and is_infinite(y)) or (is_zero(x) and is_zero(y)):
        return NAN
    if is_infinite(x) or is_zero(y):
        return sign | INFINITY
    if is_infinite(y) or is_zero(x):
        return sign
    (mx, qx), (my, qy) = exact(x), exact(y)
    extra = 32 + 24  # at least 32 significant quotient bits even for a subnormal over a normal
    quotient, rest = divmod(abs(mx) << extra, abs(my))
    return round_f32(sign, quotient << 1 | (rest != 0), qx - qy - extra - 1)


def sqrt(x: int) -> int:
    """Square root; a zero gives the same zero, and a negative number NaN."""
    if is_nan(x) or (x & SIGN and not is_zero(x)):
        return NAN
    if is_zero(x) or is_infinite(x):
        return x
    m, q = exact(x)
    extra = 64 + (q & 1)  # makes the power even
    wide = m << extra
    root = isqrt(wide)
    return round_f32(0, root << 1 | (root * root != wide), (q - extra) // 2 - 1)


def neg(x: int) -> int:
    """Flip the sign."""
    return canonical(x ^ SIGN)


def abs_(x: int) -> int:
    """Clear the sign."""
    return canonical(x & MAGNITUDE)


def lt(x: int, y: int) -> bool:
    """x < y, false on NaN."""
    return not (is_nan(x) or is_nan(y)) and _order(x) < _order(y)


def le(x: int, y: int) -> bool:
    """x <= y, false on NaN."""
    return not (is_nan(x) or is_nan(y)) and _order(x) <= _order(y)


def eq(x: int, y: int) -> bool:
    """x == y, false on NaN; the zeros are equal."""
    return not (is_nan(x) or is_nan(y)) and _order(x) == _order(y)


def minimum(x: int, y: int) -> int:
    """The smaller of x and y, plus +0.0, which turns -0 into +0; NaN if either is NaN."""
    return NAN if is_nan(x) or is_nan(y) else add(x if lt(x, y) else y, 0)


def maximum(x: int, y: int) -> int:
    """The larger of x and y, plus +0.0, which turns -0 into +0; NaN if either is NaN."""
    return NAN if is_nan(x) or is_nan(y) else add(y if lt(x, y) else x, 0)


def floor(x: int) -> int:
    """Largest integral value not above x."""
    return _integral(x, floor_of)


def rint(x: int) -> int:
    """Nearest integral value, ties to even."""
    return _integral(x, nearest_of)


def scale(x: int, k: int) -> int:
    """x * 2^k for any integer k, one rounding."""
    if is_nan(x) or is_infinite(x) or is_zero(x):
        return canonical(x)
    m, q = exact(x)
    k = max(-1000, min(1000, k))  # beyond this the result is a zero or an infinity anyway
    return round_f32(x & SIGN, abs(m), q + k)


def floor_of(m: int, q: int) -> int:
    """floor(m * 2^q)."""
    return m << q if q >= 0 else m >> -q


def nearest_of(m: int, q: int) -> int:
    """m * 2^q rounded to the nearest integer, ties to even."""
    if q >= 0:
        return m << q
    whole, rest, half = m >> -q, m & ((1 << -q) - 1), 1 << (-q - 1)
    return whole + (rest > half or (rest == half and whole & 1))


def _integral(x: int, whole_of: Callable[[int, int], int]) -> int:
    if is_nan(x) or is_infinite(x):
        return canonical(x)
    whole = whole_of(*exact(x))
    return round_f32(int(whole < 0), abs(whole), 0) if whole else x & SIGN


def _order(x: int) -> int:
    """An integer that sorts as the value of x does; both zeros give 0."""
    return -(x & MAGNITUDE) if x & SIGN else x
