"""Edge operands for the numerics vectors: bit patterns where wrong arithmetic shows first."""

from __future__ import annotations

from protocol.numerics.types import DType

F32 = (
    *(0x00000000, 0x80000000, 0x00000001, 0x80000001),  # zeros, smallest subnormals
    *(0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000),  # largest subnormals, smallest normals
    *(0x3F800000, 0xBF800000, 0x3F800001, 0x3F7FFFFF),  # +-1 and the neighbours of 1
    *(0x3F000000, 0xBF000000, 0x3FC00000, 0x40200000, 0xC0200000),  # halves: 0.5, -0.5, 1.5, 2.5, -2.5
    *(0x33800000, 0x4B7FFFFF, 0x4B000001),  # 2^-24, 2^24 - 1, 2^23 + 1
    *(0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x5F000000),  # around 2^31, 2^63
    *(0x7F7FFFFF, 0xFF7FFFFF),  # largest finite
    *(0x7F800000, 0xFF800000),  # infinities
    *(0x7FC00000, 0x7F800001, 0xFFC12345),  # canonical, signalling and negative NaN with payload
)
EXP = (
    *(0x42B17217, 0x42B17218, 0x42B20000),  # last finite result, first infinite one, the clamp at 89
    *(
        0xC2AEAC4F,
        0xC2AEAC50,
        0xC2CFF1B4,
        0xC2CFF1B5,
        0xC2D00000,
        0xC2D00001,
    ),  # subnormal results, last non-zero
    *(0x3F3504F2, 0x3F3504F3, 0x3F3504F4, 0x3FB504F2, 0x3FB504F3, 0x3FB504F4),  # log's mantissa interval
)
ELEMENTARY = (
    *(0x411055A0, 0xC11055A0, 0x41180000, 0x41180001),  # tanh: near the last below 1, the clamp at 9.5
    *(
        0xC2CFF1B4,
        0xC2CFF1B5,
        0x418AA123,
        0x41A00000,
        0x41A00001,
    ),  # sigmoid: last non-zero, near the last below 1
    *(
        0x3F7FFFFF,
        0x3F800000,
        0xBF800000,
        0x407AD444,
        0x407B0000,
        0x407B0001,
    ),  # erf: both sides of 1, the clamp
    *(
        0x3F490FDA,
        0x3F490FDB,
        0x3F490FDC,
        0x3FC90FDB,
        0xC0490FDB,
        0x437CE5F1,
    ),  # pi/4, pi/2, pi; 161 pi/2, the nearest
    *(0x46FFFFFF, 0x47000000, 0x47000001, 0xC7000000, 0xC7000001),  # sin and cos: around 2^15
    *(0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x80000000),
)
"""Inputs for the elementary functions other than exp and log: inputs around which a function changes branch,
and the extremes.
"""
I32 = (
    *(0, 1, -1, 2, 31, 32, 33, -31),
    *(2**31 - 1, -(2**31), -(2**31) + 1, 2**16, 2**24 + 1, -(2**24) - 1, 0x55555555, -0x55555556),
)
U32 = tuple(x % 2**32 for x in I32)
I64 = (
    *(0, 1, -1, 2, 63, 64, 65, -63),
    *(2**63 - 1, -(2**63), 2**32 - 1, -(2**32), 2**53, 2**53 + 1, -(2**53) - 1, 0x5555555555555555),
)
OF = {
    DType.F32: F32,
    DType.U8: (0, 1, 2, 127, 128, 255),
    DType.I32: I32,
    DType.U32: U32,
    DType.I64: I64,
    DType.BOOL: (0, 1),
}

ROUNDING_TRAPS = tuple(
    sign * (((2**24 + odd) << shift) + nudge)
    for shift in (1, 2, 3, 5, 8, 13, 21, 28, 29, 30, 31, 32, 37, 38)
    for odd in (1, 3)
    for nudge in (
        -(1 << shift - 1),
        1 - (1 << shift - 1),
        (1 << shift - 1),
        (1 << shift - 1) - 1,
        (1 << shift - 1) + 1,
    )
    for sign in (1, -1)
)
"""Integers at and next to the halfway points of f32: rounding twice (through f64, say) goes wrong here."""

JAMMED = range(54, 64)
"""Bit lengths of integers. Float64 cannot hold every integer of these lengths exactly, so `jam` is applied to
them (arithmetic.md section 8).
"""


def ties(length: int) -> tuple[int, ...]:
    """Integers (i64) of `length` bits at and near two halfway points between f32 values, with both signs.

    The integers near a halfway point differ from it by 2^k, for every k below `length` - 25. The f32 just
    below one halfway point has an even last bit; the f32 just below the other has an odd one. Any single bit
    may decide whether an integer is rounded up, so an operation that loses any bit goes wrong here.
    """
    half = 1 << length - 25
    below = (1 << 23, (1 << 23) + 1)
    beside = (0, *(sign << k for k in range(length - 25) for sign in (1, -1)))
    return tuple(sign * (2 * half * f + half + more) for f in below for more in beside for sign in (1, -1))


SHIFTS = (
    *(0, 1, -1, 22, 23, 24, -23, -24, -25, -125, -126, -127, -148, -149, -150, -151),
    *(126, 127, 128, 253, 254, 255, 276, 277, 278, -253, -276, -277, -278, -279, 2**31 - 1, -(2**31)),
)
"""Powers for `scale`: up to and beyond the limits of normals, of subnormals and of all f32."""

EXPONENTS = (-95, -94, 0, 1, 13, 24, 31, 33, 127, 128, 32766, 32767, 2**31 - 1, -(2**31), -150, -127)
"""Row exponents: the extremes that `exponent` can give, the sentinel, and values that it never gives."""

SMALL_ROWS = (
    (0x00000000,) * 8,
    (0x80000000,) * 8,
    (0xBF800000, 0x80000000, 0x00000000, 0x80000000, 0xC0000000, 0x80000000, 0x00000000, 0x80000001),
    (0x80000000, 0x00000000) * 4,
    (0xBF800000, 0xFF7FFFFF, 0x80000001, 0x807FFFFF, 0xFF800000, 0xC0000000, 0x80800000, 0xBF000000),
    (0x3EFFFFFF, 0xBEFFFFFF, 0x3E800000, 0x3E000001, 0x00000001, 0x80000000, 0x3C23D70A, 0xBEAAAAAB),
    (0x0FC00000, 0x8FC00000, 0x0F800000, 0x0F800001, 0x0F7FFFFF, 0x00000001, 0x80000001, 0x00000000),
    (0x0FFFFFFF, 0x8F800000, 0x0F000000, 0x00800000, 0x80000001, 0x0E800000, 0x8F7FFFFF, 0x00000000),
    (0x0F7FFFFF, 0x8F7FFFFF, 0x0F000000, 0x00800000, 0x80000001, 0x0E800000, 0x0E7FFFFF, 0x00000000),
    (0x0F000000, 0x8F000000, 0x0E800001, 0x00800000, 0x80000001, 0x0E7FFFFF, 0x8DFFFFFF, 0x00000000),
    (0x00800000, 0x80800000, 0x007FFFFF, 0x00000001, 0x80000001, 0x00400000, 0x80400001, 0x00000000),
    (0x007FFFFF, 0x807FFFFE, 0x00000001, 0x80000001, 0x00000002, 0x00400000, 0x80000000, 0x00000000),
    (0x80000001,) + (0x80000000,) * 7,
)
"""Rows of 8 values. The largest value of each row (by value, not by magnitude) is zero, subnormal, the
smallest normal, between 2^-97 and 2^-95, or just below 1/2. No row has an exponent below -95.
"""

MIXED_ROWS = (
    (0x3F800000, 0xBF800000, 0x3F000000, 0x3F800001, 0x40200000, 0xC0200000, 0x00000001, 0x80000000),
    (0xBF800000,) * 8,
    (0x9E000000,) * 8,
    (0x1E000000, 0x80000000, 0x9D800000, 0x1D7FFFFF, 0x00000001, 0x80000001, 0x1C000000, 0x9E7FFFFF),
    (0x3F800000,) * 7 + (0x7F800000,),
    (0xFF800000,) + (0x00000000,) * 7,
    (0x00000000,) * 7 + (0xFFC00001,),
    (0x7F7FFFFF, 0xFF7FFFFF, 0x7F000000, 0x3F800000, 0x00000000, 0x7F7FFFFF, 0x7F7FFFFF, 0x80000000),
)
"""Rows to contract with `SMALL_ROWS`. Some of the products underflow: they are nonzero, but smaller in
magnitude than the smallest subnormal f32. Others are NaN although only one of the two rows contains an
infinity or NaN.
"""

TWICE_ROUNDED = tuple(
    sign | field << 23 | fraction
    for sign in (0, 1 << 31)
    for field in (107, 117, 126, 127, 140)
    for fraction in (0x000000, 0x000001, 0x400001, 0x3FFFFF, 0x5FFFFF, 0x7FFFFF, 0x2AAAAB)
)
"""Operands of `scale` that would be rounded twice if they were multiplied first by 2^-126 and then by a
second factor.
"""

CASTS = tuple(
    (source, target)
    for source in DType
    for target in DType
    if source is not target and not (source is DType.F32 and target in (DType.U8, DType.U32, DType.I64))
)
