"""Each elementary function is a fixed list of operations (arithmetic.md section 6). This module has the
operations, constants and helpers that these lists use.

`Operations` is a namespace of single-element operations (section 2) on some kind of value. For example,
`torch_operations` evaluates them on tensors, `reference.operations` on plain integers, and a program's
builder records them as instructions.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

V = TypeVar("V")


class Operations(Protocol[V]):
    """The operations that the lists use, most of them named after primitives of encoding.md.

    Operands broadcast.
    """

    def f32(self, bits: int) -> V:
        """The f32 constant with this bit pattern."""

    def i32(self, value: int) -> V:
        """An i32 constant."""

    def u32(self, value: int) -> V:
        """A u32 constant."""

    def add(self, x: V, y: V) -> V:
        """f32 sum."""

    def sub(self, x: V, y: V) -> V:
        """f32 difference."""

    def mul(self, x: V, y: V) -> V:
        """f32 product."""

    def div(self, x: V, y: V) -> V:
        """f32 quotient."""

    def sqrt(self, x: V) -> V:
        """f32 square root."""

    def neg(self, x: V) -> V:
        """f32 with the sign flipped."""

    def abs(self, x: V) -> V:
        """f32 with the sign cleared."""

    def minimum(self, x: V, y: V) -> V:
        """f32 minimum; NaN if either operand is NaN."""

    def maximum(self, x: V, y: V) -> V:
        """f32 maximum; NaN if either operand is NaN."""

    def rint(self, x: V) -> V:
        """f32 rounded to an integral f32, ties to even."""

    def scale(self, x: V, k: V) -> V:
        """f32 x * 2^k for i32 k, one rounding."""

    def power_of_two(self, k: V) -> V:
        """f32 2^k for i32 k from -126 to 127: `scale` of 1."""

    def lt(self, x: V, y: V) -> V:
        """Whether x < y for f32, as bool."""

    def eq(self, x: V, y: V) -> V:
        """Whether x == y for f32, as bool."""

    def select(self, condition: V, x: V, y: V) -> V:
        """f32 x where the bool `condition` holds, else y."""

    def add_i32(self, x: V, y: V) -> V:
        """`add` on i32, wrapping."""

    def sub_i32(self, x: V, y: V) -> V:
        """`sub` on i32, wrapping."""

    def and_i32(self, x: V, y: V) -> V:
        """`and` on i32."""

    def shr_i32(self, x: V, y: V) -> V:
        """`shr` on i32, arithmetic."""

    def eq_i32(self, x: V, y: V) -> V:
        """Whether x == y for i32, as bool."""

    def select_i32(self, condition: V, x: V, y: V) -> V:
        """`select` between i32 values."""

    def bits_i32(self, x: V) -> V:
        """The bits of an f32 as i32: `bits` to u32, then `cast` to i32."""

    def from_bits_i32(self, x: V) -> V:
        """The f32 of an i32 bit pattern: `cast` to u32, then `bits`."""

    def bits_u32(self, x: V) -> V:
        """`bits` from f32 to u32."""

    def from_bits_u32(self, x: V) -> V:
        """The f32 with this u32 bit pattern: the primitive `bits`."""

    def and_u32(self, x: V, y: V) -> V:
        """`and` on u32."""

    def or_u32(self, x: V, y: V) -> V:
        """`or` on u32."""

    def f32_to_i32(self, x: V) -> V:
        """`cast` from f32 to i32."""

    def i32_to_f32(self, x: V) -> V:
        """`cast` from i32 to f32."""


SIGN = 0x80000000
ONE = 0x3F800000
TWO = 0x40000000
MINUS_TWO = 0xC0000000
HALF = 0x3F000000
ZERO = 0x00000000
INFINITY = 0x7F800000
MINUS_INFINITY = 0xFF800000
NAN = 0x7FC00000
LOG2_E = 0x3FB8AA3B  # 1.44269502
LN2 = 0x3F317218  # 0.693147182
MINUS_LOG2_E = 0xBFB8AA3B
LN2_HIGH = 0x3F317200  # floor(ln 2 * 2^15) / 2^15: 15 bits, so n * LN2_HIGH is exact for |n| < 2^9
MINUS_LN2_HIGH = 0xBF317200
LN2_LOW = 0x35BFBE8E  # ln 2 - LN2_HIGH = 1.42860682e-6


def polynomial(o: Operations[V], coefficients: tuple[int, ...], x: V) -> V:
    """The polynomial's value at x by Horner's rule: one mul and one add for each power, the highest first.

    `coefficients` are bits of f32, lowest power first.
    """
    value = o.f32(coefficients[-1])
    for bits in reversed(coefficients[:-1]):
        value = o.add(o.mul(value, x), o.f32(bits))
    return value


def copysign(o: Operations[V], x: V, y: V) -> V:
    """x with the sign bit of y; the sign bit of x must be clear."""
    sign = o.and_u32(o.bits_u32(y), o.u32(SIGN))
    return o.from_bits_u32(o.or_u32(o.bits_u32(x), sign))
