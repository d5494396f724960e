"""`exp` and `log` as fixed lists of section-2 operations: arithmetic.md section 6.

Each function is written once against `Operations`, a namespace of single-element operations on some kind of value.
`elementary_torch` evaluates it on tensors, `reference.operations` on plain integers; a program builder passes a
namespace that records the same operations as instructions, so fast and traced bits agree by construction. No platform
exp, log, frexp, ldexp or pow is involved.

Coefficients are minimax polynomials (Remez exchange in 40 digits), then rounded to f32; the measured worst errors over
all 2^32 inputs are asserted in `tests/unit/numerics/test_elementary.py`.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

V = TypeVar("V")


class Operations(Protocol[V]):
    """The operations the lists below use, by their names in encoding.md. Operands broadcast."""

    def f32(self, bits: int) -> V:
        """The f32 constant with this bit pattern."""

    def i32(self, value: int) -> V:
        """An i32 constant."""

    def add(self, x: V, y: V) -> V:
        """f32 sum."""

    def sub(self, x: V, y: V) -> V:
        """f32 difference."""

    def mul(self, x: V, y: V) -> V:
        """f32 product."""

    def div(self, x: V, y: V) -> V:
        """f32 quotient."""

    def minimum(self, x: V, y: V) -> V:
        """f32 minimum, NaN if either is."""

    def maximum(self, x: V, y: V) -> V:
        """f32 maximum, NaN if either is."""

    def rint(self, x: V) -> V:
        """f32 rounded to an integral f32, ties to even."""

    def scale(self, x: V, k: V) -> V:
        """f32 x * 2^k for i32 k, one rounding."""

    def lt(self, x: V, y: V) -> V:
        """f32 order as bool."""

    def eq(self, x: V, y: V) -> V:
        """f32 equality as bool."""

    def select(self, condition: V, x: V, y: V) -> V:
        """f32 x where the bool holds, else y."""

    def add_i32(self, x: V, y: V) -> V:
        """`add` on i32, wrapping."""

    def sub_i32(self, x: V, y: V) -> V:
        """`sub` on i32, wrapping."""

    def and_i32(self, x: V, y: V) -> V:
        """`and` on i32."""

    def shr_i32(self, x: V, y: V) -> V:
        """`shr` on i32, arithmetic."""

    def select_i32(self, condition: V, x: V, y: V) -> V:
        """`select` between i32 values."""

    def bits_i32(self, x: V) -> V:
        """The bits of an f32 as i32: `bits` to u32, then `cast` to i32."""

    def from_bits_i32(self, x: V) -> V:
        """The f32 of an i32 bit pattern: `cast` to u32, then `bits`."""

    def f32_to_i32(self, x: V) -> V:
        """`cast` from f32 to i32."""

    def i32_to_f32(self, x: V) -> V:
        """`cast` from i32 to f32."""


ONE = 0x3F800000
TWO = 0x40000000
HALF = 0x3F000000
ZERO = 0x00000000
INFINITY = 0x7F800000
MINUS_INFINITY = 0xFF800000
NAN = 0x7FC00000
LOG2_E = 0x3FB8AA3B  # 1.44269502
LN2_HIGH = 0x3F317200  # floor(ln 2 * 2^15) / 2^15: 15 bits, so n * LN2_HIGH is exact for |n| < 2^9
LN2_LOW = 0x35BFBE8E  # ln 2 - LN2_HIGH = 1.42860682e-6

EXP_FIRST = 0xC2D00000  # -104: e^-104 = 2^-150.04 rounds to 0, and below all results are 0
EXP_LAST = 0x42B20000  # 89: e^89 = 2^128.4 overflows, and above all results are infinite
EXP_POLYNOMIAL = (0x3EFFFFFE, 0x3E2AAA45, 0x3D2AAC8B, 0x3C091FE3, 0x3AB50D39)
"""(e^r - 1 - r) / r^2 on |r| <= 1.01 ln(2)/2, lowest power first; relative error of e^r 2^-28.2."""

MIN_NORMAL = 0x00800000  # 2^-126
SQRT_HALF = 0x3F3504F3  # f32 nearest to sqrt(1/2): mantissas run from here to twice here
LOG_POLYNOMIAL = (0x3F2AAABD, 0x3ECCAF58, 0x3E98F1FF)
"""(log((1+s)/(1-s)) / s - 2) / s^2 as a polynomial in s^2 on |s| <= 0.1716, lowest first; error 2^-29.2."""


def exp(o: Operations[V], x: V) -> V:
    """e^x for f32: +0 from -inf on, overflow to +inf, gradual underflow, NaN to NaN. At most 2 ulp.

    x = n ln 2 + r, |r| <= ln(2)/2; e^x = (1 + (r + r^2 P(r))) * 2^n.
    """
    bounded = o.minimum(o.maximum(x, o.f32(EXP_FIRST)), o.f32(EXP_LAST))
    n = o.rint(o.mul(bounded, o.f32(LOG2_E)))
    r = o.sub(o.sub(bounded, o.mul(n, o.f32(LN2_HIGH))), o.mul(n, o.f32(LN2_LOW)))
    tail = o.mul(o.mul(r, r), _polynomial(o, EXP_POLYNOMIAL, r))
    return o.scale(o.add(o.f32(ONE), o.add(r, tail)), o.f32_to_i32(n))


def log(o: Operations[V], x: V) -> V:
    """Natural logarithm for f32: -inf at both zeros, NaN below, +inf at +inf, NaN to NaN. At most 2 ulp.

    x = 2^k m, sqrt(1/2) <= m < sqrt(2), f = m - 1, s = f / (2 + f); log m = f - (f^2/2 - s (f^2/2 + s^2 P(s^2))), the
    form in which nothing cancels. Subnormals are first multiplied by 2^24.
    """
    small = o.lt(x, o.f32(MIN_NORMAL))
    normal = o.select(small, o.scale(x, o.i32(24)), x)
    offset = o.sub_i32(o.bits_i32(normal), o.i32(SQRT_HALF))
    k = o.sub_i32(o.shr_i32(offset, o.i32(23)), o.select_i32(small, o.i32(24), o.i32(0)))
    m = o.from_bits_i32(o.add_i32(o.and_i32(offset, o.i32(0x7FFFFF)), o.i32(SQRT_HALF)))

    f = o.sub(m, o.f32(ONE))
    half_square = o.mul(o.f32(HALF), o.mul(f, f))
    s = o.div(f, o.add(o.f32(TWO), f))
    z = o.mul(s, s)
    kf = o.i32_to_f32(k)
    bracket = o.add(half_square, o.mul(z, _polynomial(o, LOG_POLYNOMIAL, z)))
    low = o.add(o.mul(s, bracket), o.mul(kf, o.f32(LN2_LOW)))
    finite = o.add(o.mul(kf, o.f32(LN2_HIGH)), o.sub(f, o.sub(half_square, low)))

    above = o.select(o.eq(x, o.f32(INFINITY)), x, finite)
    other = o.select(o.eq(x, o.f32(ZERO)), o.f32(MINUS_INFINITY), o.f32(NAN))
    return o.select(o.lt(o.f32(ZERO), x), above, other)


def _polynomial(o: Operations[V], coefficients: tuple[int, ...], x: V) -> V:
    """Horner's rule from the highest power down; every step is one mul and one add."""
    value = o.f32(coefficients[-1])
    for bits in reversed(coefficients[:-1]):
        value = o.add(o.mul(value, x), o.f32(bits))
    return value
