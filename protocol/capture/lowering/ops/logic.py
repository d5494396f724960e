"""Comparisons, bitwise and logical operations, selection by a mask, and conversions: arithmetic.md section 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from protocol.capture.lowering.checks import Unsupported, wrong_type
from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.ops.operands import Operand, f32, require_f32, shaped
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value

aten = torch.ops.aten
Compare = Callable[[Builder, Value, Value], Value]


@lowers(aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def where(lowering: Lowering, node: torch.fx.Node, condition: View, x: Operand, y: Operand) -> View:
    """x where the condition holds, else y."""
    dtype = lowering.dtype_of(node)
    chosen = lowering.operand(condition, DType.BOOL)
    result = lowering.builder.select(chosen, lowering.operand(x, dtype), lowering.operand(y, dtype))
    return shaped(lowering, node, View.of(result))


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(lowering: Lowering, node: torch.fx.Node, x: View, mask: View, value: Operand) -> View:
    """`value` where the mask holds, else x."""
    return where(lowering, node, mask, value, x)


@lowers(aten._to_copy.default)
def convert(
    lowering: Lowering, node: torch.fx.Node, x: View, *, dtype: torch.dtype | None = None, **_: Any
) -> View:
    """x converted to another element type. int64 and int32 are the same type here. Floats become integers by
    rounding towards zero.
    """
    target = lowering.dtype_of(node)
    if dtype is None or x.dtype is target:
        return x
    b = lowering.builder
    values = x.broadcast(b)
    if x.dtype is DType.F32 and target is not DType.BOOL:
        if target is not DType.I32:
            raise Unsupported("from float32 to uint8", "convert to int32 or int64")
        whole = b.floor(b.abs(values))
        values = b.select(b.lt(values, f32(lowering, 0.0)), b.neg(whole), whole)
    return shaped(lowering, node, View.of(b.cast(values, target)))


def _comparison(packet: Any, name: str, compare: Compare) -> None:
    def rule(lowering: Lowering, node: torch.fx.Node, x: View, y: Operand) -> View:
        dtype = x.dtype
        if (isinstance(y, View) and y.dtype is not dtype) or isinstance(y, float):
            dtype = DType.F32
        if isinstance(y, int) and dtype is DType.U8:
            y %= 256  # torch converts the number to the tensor's type
        wide = name not in ("eq", "ne") or (isinstance(y, int) and y not in (0, 1))
        if dtype is DType.U8 or (dtype is DType.BOOL and wide):
            dtype = DType.I32
        result = compare(lowering.builder, lowering.operand(x, dtype), lowering.operand(y, dtype))
        return shaped(lowering, node, View.of(result))

    rule.__name__ = name
    lowers(packet.Tensor, packet.Scalar)(rule)


def _bitwise(packet: Any, name: str, make: Compare) -> None:
    def rule(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand) -> View:
        dtype = lowering.dtype_of(node)
        result = make(lowering.builder, lowering.operand(x, dtype), lowering.operand(y, dtype))
        return shaped(lowering, node, View.of(result))

    rule.__name__ = name
    lowers(packet.Tensor, packet.Scalar, packet.Scalar_Tensor)(rule)


def _logical(overload: Any, name: str, make: Compare) -> None:
    def rule(lowering: Lowering, node: torch.fx.Node, x: View, y: View) -> View:
        result = make(lowering.builder, lowering.operand(x, DType.BOOL), lowering.operand(y, DType.BOOL))
        return shaped(lowering, node, View.of(result))

    rule.__name__ = name
    lowers(overload)(rule)


@lowers(aten.bitwise_not.default)
def bitwise_not(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """Every bit inverted; for bool, logical not."""
    b = lowering.builder
    ones = b.constant(DType.BOOL, (), True) if x.dtype is DType.BOOL else b.i32(-1)
    return shaped(lowering, node, View.of(b.xor(lowering.operand(x, lowering.dtype_of(node)), ones)))


@lowers(aten.__lshift__.Scalar, aten.__lshift__.Tensor)
@lowers(aten.bitwise_left_shift.Tensor_Scalar, aten.bitwise_left_shift.Tensor)
def shift_left(lowering: Lowering, node: torch.fx.Node, x: View, count: Operand) -> View:
    """x 2^count on i32; 0 where the count is negative or at least 32."""
    b = lowering.builder
    values, places = _shifted(lowering, node, x, count)
    inside = b.eq(b.and_(places, b.i32(31)), places)
    return shaped(lowering, node, View.of(b.select(inside, b.shl(values, places), b.i32(0))))


@lowers(aten.__rshift__.Scalar, aten.__rshift__.Tensor)
@lowers(aten.bitwise_right_shift.Tensor_Scalar, aten.bitwise_right_shift.Tensor)
def shift_right(lowering: Lowering, node: torch.fx.Node, x: View, count: Operand) -> View:
    """floor(x / 2^count) on i32; 0 or -1, by x's sign, where the count is negative or at least 32."""
    b = lowering.builder
    values, places = _shifted(lowering, node, x, count)
    inside = b.eq(b.and_(places, b.i32(31)), places)
    return shaped(lowering, node, View.of(b.shr(values, b.select(inside, places, b.i32(31)))))


@lowers(aten.logical_not.default)
def logical_not(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """Whether x is zero."""
    b = lowering.builder
    return shaped(lowering, node, View.of(_inverted(b, lowering.operand(x, DType.BOOL))))


@lowers(aten.isnan.default)
def isnan(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """Whether x is NaN: it differs from itself."""
    b = lowering.builder
    values = require_f32(x).broadcast(b)
    return shaped(lowering, node, View.of(_inverted(b, b.eq(values, values))))


@lowers(aten.isinf.default)
def isinf(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """Whether |x| is infinite."""
    b = lowering.builder
    return shaped(lowering, node, View.of(b.eq(b.abs(require_f32(x).broadcast(b)), f32(lowering, math.inf))))


def _shifted(lowering: Lowering, node: torch.fx.Node, x: View, count: Operand) -> tuple[Value, Value]:
    if lowering.dtype_of(node) is not DType.I32:
        raise wrong_type(lowering.dtype_of(node))
    return lowering.operand(x, DType.I32), lowering.operand(count, DType.I32)


def _inverted(b: Builder, condition: Value) -> Value:
    return b.xor(condition, b.constant(DType.BOOL, (), True))


_comparison(aten.eq, "eq", lambda b, x, y: b.eq(x, y))
_comparison(aten.ne, "ne", lambda b, x, y: _inverted(b, b.eq(x, y)))
_comparison(aten.lt, "lt", lambda b, x, y: b.lt(x, y))
_comparison(aten.le, "le", lambda b, x, y: b.le(x, y))
_comparison(aten.gt, "gt", lambda b, x, y: b.lt(y, x))
_comparison(aten.ge, "ge", lambda b, x, y: b.le(y, x))

_bitwise(aten.bitwise_and, "and", lambda b, x, y: b.and_(x, y))
_bitwise(aten.bitwise_or, "or", lambda b, x, y: b.or_(x, y))
_bitwise(aten.bitwise_xor, "xor", lambda b, x, y: b.xor(x, y))
_logical(aten.logical_and.default, "and", lambda b, x, y: b.and_(x, y))
_logical(aten.logical_or.default, "or", lambda b, x, y: b.or_(x, y))
_logical(aten.logical_xor.default, "xor", lambda b, x, y: b.xor(x, y))
