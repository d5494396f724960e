"""`elementary.Operations` on plain integers. It needs no float hardware and is an oracle for the elementary
functions.
"""

from __future__ import annotations

from protocol.numerics.reference import floats, integers
from protocol.numerics.types import DType


class IntegerOperations:
    """`elementary.Operations` whose values are ints: f32 patterns, u32, signed i32, bools."""

    add = staticmethod(floats.add)
    sub = staticmethod(floats.sub)
    mul = staticmethod(floats.mul)
    div = staticmethod(floats.div)
    sqrt = staticmethod(floats.sqrt)
    neg = staticmethod(floats.neg)
    abs = staticmethod(floats.abs_)
    minimum = staticmethod(floats.minimum)
    maximum = staticmethod(floats.maximum)
    rint = staticmethod(floats.rint)
    scale = staticmethod(floats.scale)
    lt = staticmethod(floats.lt)
    eq = staticmethod(floats.eq)

    def f32(self, bits: int) -> int:
        return bits

    def i32(self, value: int) -> int:
        return value

    def u32(self, value: int) -> int:
        return value

    def power_of_two(self, k: int) -> int:
        return floats.scale(0x3F800000, k)

    def select(self, condition: int, x: int, y: int) -> int:
        return floats.canonical(x if condition else y)

    def eq_i32(self, x: int, y: int) -> bool:
        return x == y

    def select_i32(self, condition: int, x: int, y: int) -> int:
        return x if condition else y

    def add_i32(self, x: int, y: int) -> int:
        return integers.add(x, y, DType.I32)

    def sub_i32(self, x: int, y: int) -> int:
        return integers.sub(x, y, DType.I32)

    def and_i32(self, x: int, y: int) -> int:
        return x & y

    def shr_i32(self, x: int, y: int) -> int:
        return integers.shr(x, y, DType.I32)

    def bits_i32(self, x: int) -> int:
        return integers.wrap(floats.canonical(x), DType.I32)

    def from_bits_i32(self, x: int) -> int:
        return floats.canonical(integers.wrap(x, DType.U32))

    def bits_u32(self, x: int) -> int:
        return floats.canonical(x)

    def from_bits_u32(self, x: int) -> int:
        return floats.canonical(x)

    def and_u32(self, x: int, y: int) -> int:
        return x & y

    def or_u32(self, x: int, y: int) -> int:
        return x | y

    def f32_to_i32(self, x: int) -> int:
        return integers.cast(x, DType.F32, DType.I32)

    def i32_to_f32(self, x: int) -> int:
        return integers.cast(x, DType.I32, DType.F32)
