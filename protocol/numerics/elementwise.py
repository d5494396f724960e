"""Single-element operations without compiled code, in torch and numpy: arithmetic.md section 2.

`operations` has compiled versions where possible.

The operations are total and leave NaN canonical. Operands broadcast as in numpy and are stored as
`DType.storage` says. Where u32 and i32 mean different things (order, right shift, casts) the function takes a
`DType`; elsewhere the bits agree. Transcendental functions are not here: they are lists of these operations
(`elementary`).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from protocol.numerics.types import DType, NumericsError, canonical

I32_MAX = 2**31 - 1
I32_MIN = -(2**31)
LARGEST_F32_BELOW_2_31 = 2147483520.0
"""2^31 - 128. Above it, torch's cast from f32 to i32 differs between CPU and CUDA."""
SCALE_LIMIT = 400
"""`power_of_two` clamps k to this magnitude. For an f32 or i64 x, a larger |k| would not change x * 2^k once
it is rounded to f32: f32 spans 2^-149..2^128, i64 reaches 2^63, and 149 + 128 + 63 < 400.
"""


def add(x: Tensor, y: Tensor) -> Tensor:
    """x + y; f32 rounds to nearest even, integers wrap."""
    return canonical(torch.add(x, y))


def sub(x: Tensor, y: Tensor) -> Tensor:
    """x - y; f32 rounds to nearest even, integers wrap."""
    return canonical(torch.sub(x, y))


def mul(x: Tensor, y: Tensor) -> Tensor:
    """x * y; f32 rounds to nearest even, integers wrap."""
    return canonical(torch.mul(x, y))


def div(x: Tensor, y: Tensor) -> Tensor:
    """x / y on f32, round to nearest even; 0/0 and inf/inf are NaN."""
    return canonical(torch.div(x, y))


def sqrt(x: Tensor) -> Tensor:
    """Square root on f32, round to nearest even; sqrt(-0) = -0, and NaN below zero.

    On the CPU torch hands f32 square roots to MKL's vector library, which misses the nearest f32 for 17 % of all
    inputs (365,368,316 of 2^31 - 2^23; sqrt(0x3f7fffff) gives 1.0), so numpy's IEEE instruction is used there.
    """
    if x.device.type != "cpu":
        return canonical(torch.sqrt(x))
    source = x.detach().contiguous().numpy()
    root = np.empty_like(source)
    with np.errstate(invalid="ignore"):
        np.sqrt(source, out=root)
    return canonical(torch.from_numpy(root))


def neg(x: Tensor) -> Tensor:
    """Flip the sign of an f32."""
    return canonical(torch.neg(x))


def abs_(x: Tensor) -> Tensor:
    """Clear the sign of an f32."""
    return canonical(torch.abs(x))


def minimum(x: Tensor, y: Tensor) -> Tensor:
    """Smaller of two f32; NaN if either is NaN. +0.0 is added, so a zero result is +0."""
    return canonical(torch.minimum(x, y).add_(0.0))


def maximum(x: Tensor, y: Tensor) -> Tensor:
    """Larger of two f32; NaN if either is NaN. +0.0 is added, so a zero result is +0."""
    return canonical(torch.maximum(x, y).add_(0.0))


def floor(x: Tensor) -> Tensor:
    """Largest integral f32 not above x; keeps the sign of zero."""
    return canonical(torch.floor(x))


def rint(x: Tensor) -> Tensor:
    """Nearest integral f32, ties to even; keeps the sign of zero."""
    return canonical(torch.round(x))


def lt(x: Tensor, y: Tensor, dtype: DType) -> Tensor:
    """x < y as bool; false if either is NaN. `dtype` tells u32 from i32."""
    return torch.lt(_ordered(x, dtype), _ordered(y, dtype))


def le(x: Tensor, y: Tensor, dtype: DType) -> Tensor:
    """x <= y as bool; false if either is NaN. `dtype` tells u32 from i32."""
    return torch.le(_ordered(x, dtype), _ordered(y, dtype))


def eq(x: Tensor, y: Tensor) -> Tensor:
    """x == y as bool; false if either is NaN; -0 equals +0."""
    return torch.eq(x, y)


def select(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """x where the bool `condition` holds, else y."""
    if x.dtype == y.dtype == torch.float32 and condition.numel() >= MANY and x.device.type == "cpu":
        return canonical(_select_by_bits(condition, x, y))
    return canonical(torch.where(condition, x, y))


MANY = 1 << 14
"""From this many elements on, passes without branches are faster than `where` (8x), because `where`
mispredicts branches.
"""


def _select_by_bits(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    kept = condition.to(torch.int32).sub_(1)  # 0 where x is chosen, otherwise all ones
    left, right = x.view(torch.int32), y.view(torch.int32)
    extends = max(x.dim(), y.dim()) > condition.dim()  # then the result has more axes than `kept`
    if x.numel() == 1 and not extends and not int(left):
        kept = kept.bitwise_and_(right) if y.numel() == 1 or y.shape == condition.shape else kept & right
        return kept.view(torch.float32)
    return (left ^ ((left ^ right) & kept)).view(torch.float32)


def shl(x: Tensor, y: Tensor) -> Tensor:
    """x << (y mod width) on i32, u32 or i64 (both operands of one type); bits shifted out are lost."""
    return torch.bitwise_left_shift(x, _shift_count(y))


def shr(x: Tensor, y: Tensor, dtype: DType) -> Tensor:
    """x >> (y mod width): arithmetic on i32 and i64, logical on u32."""
    count = _shift_count(y)
    if dtype is DType.U32:
        return _narrow_(torch.bitwise_right_shift(unsigned(x), count.to(torch.int64)))
    return torch.bitwise_right_shift(x, count)


def and_(x: Tensor, y: Tensor) -> Tensor:
    """Bitwise and of two integers or bools of one type."""
    return torch.bitwise_and(x, y)


def or_(x: Tensor, y: Tensor) -> Tensor:
    """Bitwise or of two integers or bools of one type."""
    return torch.bitwise_or(x, y)


def xor(x: Tensor, y: Tensor) -> Tensor:
    """Bitwise exclusive or of two integers or bools of one type."""
    return torch.bitwise_xor(x, y)


def mulhi(x: Tensor, y: Tensor) -> Tensor:
    """High 32 bits of the 64-bit product of two u32.

    The wrapped i64 product has the bits of the u64 product.
    """
    return _narrow_(torch.mul(unsigned(x), unsigned(y)).bitwise_right_shift_(32))


def bits(x: Tensor) -> Tensor:
    """The bit pattern of an f32 as u32; every NaN gives 0x7fc00000."""
    return canonical(x).contiguous().view(torch.int32)


def from_bits(x: Tensor) -> Tensor:
    """The f32 of a u32 bit pattern; every NaN pattern becomes 0x7fc00000."""
    return canonical(x.contiguous().view(torch.float32))


def scale(x: Tensor, k: Tensor) -> Tensor:
    """x * 2^k with one rounding, for f32 `x` and i32 (or i64) `k` of any value.

    In float64 both factors and the product are exact, so the only rounding is the conversion to f32.
    """
    return canonical((x.to(torch.float64) * power_of_two(k)).to(torch.float32))


def power_of_two(k: Tensor) -> Tensor:
    """2^clamp(k, -400, 400) as float64, built from bits."""
    bounded = k.to(torch.int64).clamp(-SCALE_LIMIT, SCALE_LIMIT)
    return bounded.add_(1023).bitwise_left_shift_(52).view(torch.float64)


def cast(x: Tensor, source: DType, target: DType) -> Tensor:
    """Convert `x` from `source` to `target`.

    f32 to i32 rounds to nearest even and saturates at -2^31 and 2^31 - 1; NaN gives 0. Integers to f32 round
    once. Between integers the value is taken modulo 2^width of the target. A cast to bool is `!= 0` (NaN is
    true); bool counts as 0 or 1. There are no casts from f32 to u8, u32 and i64; for these it raises
    `NumericsError`.
    """
    if target is DType.BOOL:
        return x != 0
    if source is DType.F32:
        return _cast_f32(x, target)
    if source is DType.BOOL:
        return x.to(target.storage)
    wide = unsigned(x) if source is DType.U32 else x.to(torch.int64)
    if target is DType.F32:
        return round_i64(wide) if source is DType.I64 else wide.to(torch.float64).to(torch.float32)
    if target in (DType.I32, DType.U32):
        return _narrow_(wide.clone() if wide is x else wide)
    return wide.to(target.storage)


def round_i64(x: Tensor) -> Tensor:
    """i64 to f32 with one rounding, on every device, because float64 holds the result of `jam` exactly."""
    return jam(x).to(torch.float64).to(torch.float32)


def jam(x: Tensor) -> Tensor:
    """Replace the i64 `x` by an i64 that float64 holds exactly. If `x` and its replacement are scaled by the
    same power of two, they round to the same f32.

    For magnitudes from 2^53 on, one sticky bit replaces the low 11 bits (arithmetic.md section 8). This bit
    lies below every f32 rounding boundary: f32 has 24 significant bits, so the boundaries between such large
    numbers are multiples of 2^29.
    """
    low = x & 0x7FF
    sticky = (x & ~0x7FF) | ((low != 0).to(torch.int64) << 10)
    small = (x < 2**53) & (x > -(2**53))
    return torch.where(small, x, sticky)


def unsigned(x: Tensor) -> Tensor:
    """The values of a u32 (held in int32) as i64."""
    wide = x.to(torch.int64)
    return wide & 0xFFFFFFFF if wide is x else wide.bitwise_and_(0xFFFFFFFF)


def _cast_f32(x: Tensor, target: DType) -> Tensor:
    if target is DType.F32:
        return canonical(x)
    if target is not DType.I32:
        raise NumericsError(
            f"expected a cast from F32 to I32, BOOL or F32, got {target.name}; cast to I32 first"
        )
    inside = torch.round(x).clamp(float(I32_MIN), LARGEST_F32_BELOW_2_31)
    whole = torch.where(x == x, inside, 0.0).to(torch.int32)
    return torch.where(x >= 2.0**31, I32_MAX, whole)


def _narrow_(x: Tensor) -> Tensor:
    """Reduce i64 to 32 bits modulo 2^32, without the implementation-defined cast of out-of-range values.

    Writes to `x`, so that all temporaries of an operation fit into `WORKSPACE`
    (`protocol.tasks.bundles.limits`).
    """
    return x.bitwise_and_(0xFFFFFFFF).bitwise_xor_(0x80000000).sub_(0x80000000).to(torch.int32)


def _ordered(x: Tensor, dtype: DType) -> Tensor:
    """Map u32 bits onto i32 so that the order is kept, by flipping the top bit; other types are unchanged."""
    return x ^ I32_MIN if dtype is DType.U32 else x


def _shift_count(y: Tensor) -> Tensor:
    return y & (63 if y.dtype == torch.int64 else 31)
