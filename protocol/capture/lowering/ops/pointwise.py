"""Elementwise arithmetic: each rule is one or a few primitives of arithmetic.md section 2."""

from __future__ import annotations

import math

import torch

from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.context import Lowering, Scalar
from protocol.capture.lowering.ops.operands import Operand, binary, f32, require_f32, shaped, unary
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library import elementary
from protocol.program.library.integers import quotient

aten = torch.ops.aten


@lowers(aten.add.Tensor, aten.add.Scalar)
def add(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand, alpha: Scalar = 1) -> View:
    """x + alpha y: a product and a sum, each rounded. For bool, the result is `x or y`."""
    if lowering.dtype_of(node) is DType.BOOL and alpha == 1:
        either = lowering.builder.or_(lowering.operand(x, DType.BOOL), lowering.operand(y, DType.BOOL))
        return shaped(lowering, node, View.of(either))
    return binary(lowering, node, x, _times(lowering, node, y, alpha), lowering.builder.add)


@lowers(aten.sub.Tensor, aten.sub.Scalar)
def sub(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand, alpha: Scalar = 1) -> View:
    """x - alpha y: a product and a difference, each rounded."""
    return binary(lowering, node, x, _times(lowering, node, y, alpha), lowering.builder.sub)


@lowers(aten.rsub.Scalar, aten.rsub.Tensor)
def rsub(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand, alpha: Scalar = 1) -> View:
    """y - alpha x."""
    return binary(lowering, node, y, _times(lowering, node, x, alpha), lowering.builder.sub)


@lowers(aten.mul.Tensor, aten.mul.Scalar)
def mul(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand) -> View:
    """x times y. For bool, the result is `x and y`."""
    if lowering.dtype_of(node) is DType.BOOL:
        both = lowering.builder.and_(lowering.operand(x, DType.BOOL), lowering.operand(y, DType.BOOL))
        return shaped(lowering, node, View.of(both))
    return binary(lowering, node, x, y, lowering.builder.mul)


@lowers(aten.div.Tensor, aten.div.Scalar)
def div(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand) -> View:
    """x / y, rounded once; x is never multiplied by the reciprocal of y instead."""
    return binary(lowering, node, x, y, lowering.builder.div)


@lowers(aten.addcmul.default)
def add_product(
    lowering: Lowering, node: torch.fx.Node, x: View, y: View, z: View, *, value: Scalar = 1
) -> View:
    """x + (value * y) * z, every step rounded."""
    b = lowering.builder
    return binary(
        lowering, node, x, binary(lowering, node, _times(lowering, node, y, value), z, b.mul), b.add
    )


@lowers(aten.addcdiv.default)
def add_quotient(
    lowering: Lowering, node: torch.fx.Node, x: View, y: View, z: View, *, value: Scalar = 1
) -> View:
    """x + (value * y) / z, every step rounded."""
    b = lowering.builder
    return binary(
        lowering, node, x, binary(lowering, node, _times(lowering, node, y, value), z, b.div), b.add
    )


@lowers(aten.lerp.Scalar, aten.lerp.Tensor)
def lerp(lowering: Lowering, node: torch.fx.Node, x: View, y: View, weight: Operand) -> View:
    """x + weight (y - x), every step rounded."""
    b = lowering.builder
    way = binary(lowering, node, weight, binary(lowering, node, y, x, b.sub), b.mul)
    return binary(lowering, node, x, way, b.add)


@lowers(aten.pow.Tensor_Scalar)
def power(lowering: Lowering, node: torch.fx.Node, x: View, exponent: Scalar) -> View:
    """x^exponent, as a product of factors x, multiplied from left to right. If the exponent is a whole number
    plus 1/2, the last factor is sqrt(x). A negative exponent gives 1 / x^|exponent|.
    """
    b = lowering.builder
    size = abs(float(exponent))
    factors = [x] * int(size)
    if not size.is_integer():
        factors.append(View.of(b.sqrt(require_f32(x).broadcast(b))))
    result = factors[0] if factors else lowering.constant(1, lowering.dtype_of(node))
    for factor in factors[1:]:
        result = binary(lowering, node, result, factor, b.mul)
    return shaped(lowering, node, result if exponent >= 0 else binary(lowering, node, 1.0, result, b.div))


@lowers(aten.maximum.default)
def maximum(lowering: Lowering, node: torch.fx.Node, x: View, y: View) -> View:
    """The larger of x and y; for f32, NaN if either is NaN."""
    b = lowering.builder
    if lowering.dtype_of(node) is DType.F32:
        return binary(lowering, node, x, y, b.maximum)
    return binary(lowering, node, x, y, lambda x, y: b.select(b.lt(x, y), y, x))


@lowers(aten.minimum.default)
def minimum(lowering: Lowering, node: torch.fx.Node, x: View, y: View) -> View:
    """The smaller of x and y; for f32, NaN if either is NaN."""
    b = lowering.builder
    if lowering.dtype_of(node) is DType.F32:
        return binary(lowering, node, x, y, b.minimum)
    return binary(lowering, node, x, y, lambda x, y: b.select(b.lt(x, y), x, y))


@lowers(aten.clamp.default, aten.clamp.Tensor, aten.hardtanh.default)
def clamp(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    low: Operand | None = None,
    high: Operand | None = None,
) -> View:
    """min(max(x, low), high)."""
    if node.target is aten.hardtanh.default:
        low, high = -1.0 if low is None else low, 1.0 if high is None else high
    for bound, rule in ((low, maximum), (high, minimum)):
        if bound is not None:
            given = bound if isinstance(bound, View) else lowering.constant(bound, lowering.dtype_of(node))
            x = rule(lowering, node, x, given)
    return x


@lowers(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(lowering: Lowering, node: torch.fx.Node, x: View, low: Operand) -> View:
    """max(x, low)."""
    return clamp(lowering, node, x, low)


@lowers(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(lowering: Lowering, node: torch.fx.Node, x: View, high: Operand) -> View:
    """min(x, high)."""
    return clamp(lowering, node, x, None, high)


@lowers(aten.floor_divide.default, aten.div.Tensor_mode, aten.div.Scalar_mode, aten.floor_divide.Scalar)
def floor_divide(
    lowering: Lowering, node: torch.fx.Node, x: View, y: Operand, *, rounding_mode: str = "floor"
) -> View:
    """floor(x / y), exact for floats while |x / y| is less than 2^24. If `rounding_mode` is "trunc", x / y is
    rounded to f32 and then towards zero. Integers need "floor" and a positive constant divisor.
    """
    if lowering.dtype_of(node) is DType.F32 and rounding_mode in ("floor", "trunc"):
        b = lowering.builder
        dividend, divisor = lowering.operand(x, DType.F32), lowering.operand(y, DType.F32)
        ratio = b.div(dividend, divisor)
        whole = b.floor(ratio)
        if rounding_mode == "trunc":
            negative = b.lt(ratio, f32(lowering, 0.0))
            whole = b.select(negative, b.neg(b.floor(b.neg(ratio))), whole)
        elif isinstance(y, View) or not _is_power_of_two(y):
            below, rest = _divided(b, dividend, divisor)
            of_number = b.select(b.eq(rest, rest), below, rest)
            whole = b.select(b.eq(divisor, f32(lowering, 0.0)), ratio, of_number)
        elif abs(y) > 1:  # a quotient may round to 0, but not one of whole numbers
            dividend = b.floor(dividend if y > 0 else b.neg(dividend))
            whole = b.floor(b.div(dividend, f32(lowering, abs(float(y)))))
        return shaped(lowering, node, View.of(whole))
    return shaped(lowering, node, View.of(_quotient(lowering, node, x, y, rounding_mode)[0]))


@lowers(aten.remainder.Scalar, aten.remainder.Tensor)
def remainder(lowering: Lowering, node: torch.fx.Node, x: View, y: Operand) -> View:
    """x - y floor(x / y), with the sign of y. Integers need a positive constant divisor. For floats, the
    result is fmod(x, y), plus y if the signs differ, as in torch; fmod is exact while |x / y| is less than
    2^24.
    """
    b = lowering.builder
    if lowering.dtype_of(node) is DType.F32:
        dividend, modulus = lowering.operand(x, DType.F32), lowering.operand(y, DType.F32)
        if not _is_power_of_two(y):
            return shaped(lowering, node, View.of(_divided(b, dividend, modulus)[1]))
        remains = b.sub(dividend, b.mul(modulus, b.floor(b.div(dividend, modulus))))
        return shaped(lowering, node, View.of(_with_sign_of(b, remains, modulus)[1]))
    quotient, divisor = _quotient(lowering, node, x, y, "floor")
    factor = b.i32((divisor + 2**31) % 2**32 - 2**31)  # only the low 32 bits of an int64 matter
    rest = b.sub(lowering.operand(x, DType.I32), b.mul(quotient, factor))
    return shaped(lowering, node, View.of(rest))


def _is_power_of_two(y: Operand) -> bool:
    """Whether y is a constant power of two, of either sign. Dividing an f32 by it is exact, unless the
    quotient underflows or overflows.
    """
    return not isinstance(y, View) and math.frexp(abs(y))[0] == 0.5


def _divided(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """floor(x / y) and x - y floor(x / y). The product is computed exactly, as a rounded f32 and its error
    (Dekker 1971), because the quotient may have been rounded up to the next whole number.
    """
    whole = b.floor(b.div(x, y))
    zero = b.constant(DType.F32, (), 0.0)
    infinite = b.eq(b.abs(y), b.constant(DType.F32, (), math.inf))
    factor = b.select(infinite, zero, y)  # of an infinite y, the quotient is 0
    product = b.mul(whole, factor)
    (high, low), (high_y, low_y) = _halves(b, whole), _halves(b, factor)
    error = b.sub(b.mul(high, high_y), product)
    for one, other in ((high, low_y), (low, high_y), (low, low_y)):
        error = b.add(error, b.mul(one, other))
    outside, rest = _with_sign_of(b, b.sub(b.sub(x, product), error), y)
    return b.select(outside, b.sub(whole, b.constant(DType.F32, (), 1.0)), whole), rest


def _halves(b: Builder, x: Value) -> tuple[Value, Value]:
    """Two f32 whose sum is x. Each has at most 12 significant bits, so that products of such halves are exact."""
    high = b.from_bits_i32(b.and_(b.bits_i32(x), b.i32(-(2**12))))
    return high, b.sub(x, high)


def _with_sign_of(b: Builder, rest: Value, y: Value) -> tuple[Value, Value]:
    """Two results. The first tells whether the remainder `rest` is nonzero and has the opposite sign to y.
    The second is the remainder, to which y is added where the first result is true.
    """
    zero = b.constant(DType.F32, (), 0.0)
    opposite = b.xor(b.lt(rest, zero), b.lt(y, zero))
    outside = b.and_(opposite, b.xor(b.eq(rest, zero), b.constant(DType.BOOL, (), True)))
    return outside, b.select(outside, b.add(rest, y), rest)


def _quotient(lowering: Lowering, node: torch.fx.Node, x: View, y: Operand, mode: str) -> tuple[Value, int]:
    """floor(x / y) and y. Raises `Unsupported` unless x holds integers, y is a positive constant and `mode`
    is "floor".
    """
    if isinstance(y, View) or y < 1 or mode != "floor" or lowering.dtype_of(node) is not DType.I32:
        raise Unsupported(
            "but for the floor of an integer over a positive integer constant",
            "divide integers by a Python number, or floats by `/`",
        )
    return quotient(lowering.builder, lowering.operand(x, DType.I32), int(y)), int(y)


@lowers(aten.xlogy.Tensor)
def x_log_y(lowering: Lowering, node: torch.fx.Node, x: View, y: View) -> View:
    """x log y, and 0 where x is 0 and y is not NaN."""
    b = lowering.builder
    zero = lowering.constant(0.0, DType.F32).value
    factor, power_ = lowering.operand(x, DType.F32), lowering.operand(y, DType.F32)
    nothing = b.and_(b.eq(factor, zero), b.eq(power_, power_))
    product = b.mul(factor, elementary.log.call(b, power_))
    return shaped(lowering, node, View.of(b.select(nothing, zero, product)))


def _sign(b: Builder, x: Value) -> Value:
    """1, -1 or 0: the gradient of |x|; 0 for NaN, as in torch."""
    zero = b.constant(DType.F32, (), 0.0)
    below = b.select(b.lt(x, zero), b.constant(DType.F32, (), -1.0), zero)
    return b.select(b.lt(zero, x), b.constant(DType.F32, (), 1.0), below)


unary(aten.sqrt.default, "sqrt", lambda b, x: b.sqrt(x))
unary(aten.floor.default, "floor", lambda b, x: b.floor(x))
unary(aten.ceil.default, "ceil", lambda b, x: b.neg(b.floor(b.neg(x))))
unary(aten.round.default, "rint", lambda b, x: b.rint(x))
unary(aten.reciprocal.default, "reciprocal", lambda b, x: b.div(b.constant(DType.F32, (), 1.0), x))
unary(aten.sgn.default, "sign", _sign)
unary(aten.sign.default, "sign", _sign)


@lowers(aten.abs.default)
def magnitude(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """|x|."""
    b = lowering.builder
    if x.dtype is DType.F32:
        return shaped(lowering, node, View.of(b.abs(x.broadcast(b))))
    return maximum(lowering, node, x, neg(lowering, node, x))


@lowers(aten.neg.default)
def neg(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """-x."""
    b = lowering.builder
    if x.dtype is DType.F32:
        return shaped(lowering, node, View.of(b.neg(x.broadcast(b))))
    return binary(lowering, node, 0, x, b.sub)


def _times(lowering: Lowering, node: torch.fx.Node, x: Operand, factor: Scalar) -> Operand:
    return x if factor == 1 else binary(lowering, node, x, factor, lowering.builder.mul)
