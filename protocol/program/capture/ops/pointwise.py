"""Operations on single elements: each is one or a few primitives of arithmetic.md section 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.capture.lowering import Lowering, Scalar, Unsupported, lowers
from protocol.program.capture.views import View
from protocol.program.library import elementary

aten = torch.ops.aten
Operand = View | Scalar


@lowers(aten.add.Tensor, aten.add.Scalar)
def add(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand, *, alpha: Scalar = 1) -> View:
    """x + alpha y: a product and a sum, each rounded."""
    return _scaled(lowering, node, x, y, alpha, lowering.builder.add)


@lowers(aten.sub.Tensor, aten.sub.Scalar)
def sub(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand, *, alpha: Scalar = 1) -> View:
    """x - alpha y: a product and a difference, each rounded."""
    return _scaled(lowering, node, x, y, alpha, lowering.builder.sub)


@lowers(aten.rsub.Scalar, aten.rsub.Tensor)
def rsub(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand, alpha: Scalar = 1) -> View:
    """y - alpha x."""
    return _scaled(lowering, node, y, x, alpha, lowering.builder.sub)


@lowers(aten.mul.Tensor, aten.mul.Scalar)
def mul(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand) -> View:
    """x y."""
    return _binary(lowering, node, x, y, lowering.builder.mul)


@lowers(aten.div.Tensor, aten.div.Scalar)
def div(lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand) -> View:
    """x / y, rounded once; never a product with the reciprocal."""
    return _binary(lowering, node, x, y, lowering.builder.div)


@lowers(aten.pow.Tensor_Scalar)
def power(lowering: Lowering, node: torch.fx.Node, x: View, exponent: Scalar) -> View:
    """x, x x or the square root: the powers that are exact or rounded once."""
    b = lowering.builder
    if exponent == 1:
        return x
    if exponent == 2:
        return _binary(lowering, node, x, x, b.mul)
    if exponent == 0.5:
        return View.of(b.sqrt(lowering.elements(x, DType.F32)))
    raise Unsupported(f"with exponent {exponent}", "use exponents 0.5, 1 and 2, or products")


@lowers(aten.maximum.default)
def maximum(lowering: Lowering, node: torch.fx.Node, x: View, y: View) -> View:
    """Larger of two f32, NaN if either is."""
    return _binary(lowering, node, x, y, lowering.builder.maximum)


@lowers(aten.minimum.default)
def minimum(lowering: Lowering, node: torch.fx.Node, x: View, y: View) -> View:
    """Smaller of two f32, NaN if either is."""
    return _binary(lowering, node, x, y, lowering.builder.minimum)


@lowers(aten.relu.default)
def relu(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """max(x, 0)."""
    return _binary(lowering, node, x, 0.0, lowering.builder.maximum)


@lowers(aten.threshold_backward.default)
def relu_grad(lowering: Lowering, _: torch.fx.Node, g: View, x: View, threshold: Scalar) -> View:
    """0 where x <= threshold, else g; so a NaN in x lets g through, as in torch."""
    b = lowering.builder
    closed = b.le(lowering.operand(x, DType.F32), lowering.operand(threshold, DType.F32))
    return View.of(b.select(closed, lowering.operand(0.0, DType.F32), lowering.elements(g)))


@lowers(aten.where.self)
def where(lowering: Lowering, node: torch.fx.Node, condition: View, x: Operand, y: Operand) -> View:
    """x where the condition holds, else y."""
    dtype = lowering.dtype_of(node)
    chosen = lowering.operand(condition, DType.BOOL)
    result = lowering.builder.select(chosen, lowering.operand(x, dtype), lowering.operand(y, dtype))
    return _shaped(lowering, node, View.of(result))


@lowers(aten._to_copy.default)
def convert(
    lowering: Lowering, node: torch.fx.Node, x: View, *, dtype: torch.dtype | None = None, **_: Any
) -> View:
    """Another element type. int64 and int32 are the same type here."""
    target = lowering.dtype_of(node)
    if dtype is None or x.dtype is target:
        return x
    return View.of(lowering.elements(x, target))


def _unary(overload: Any, name: str, make: Callable[[Builder, Value], Value]) -> None:
    def rule(lowering: Lowering, _: torch.fx.Node, x: View) -> View:
        if x.dtype is not DType.F32:
            raise Unsupported(f"on {x.dtype.name.lower()}", "convert with .float() first")
        return View.of(make(lowering.builder, lowering.elements(x)))

    rule.__name__ = name
    lowers(overload)(rule)


def _comparison(packet: Any, name: str, compare: Callable[[Builder, Value, Value], Value]) -> None:
    def rule(lowering: Lowering, node: torch.fx.Node, x: View, y: Operand) -> View:
        dtype = x.dtype
        if (isinstance(y, View) and y.dtype is not dtype) or isinstance(y, float):
            dtype = DType.F32
        result = compare(lowering.builder, lowering.operand(x, dtype), lowering.operand(y, dtype))
        return _shaped(lowering, node, View.of(result))

    rule.__name__ = name
    lowers(packet.Tensor, packet.Scalar)(rule)


def _sign(b: Builder, x: Value) -> Value:
    """1, -1 or 0, as in torch 0 for NaN: the gradient of |x|."""
    zero = b.constant(DType.F32, (), 0.0)
    below = b.select(b.lt(x, zero), b.constant(DType.F32, (), -1.0), zero)
    return b.select(b.lt(zero, x), b.constant(DType.F32, (), 1.0), below)


def _inverted(b: Builder, condition: Value) -> Value:
    return b.xor(condition, b.constant(DType.BOOL, (), True))


_unary(aten.neg.default, "neg", lambda b, x: b.neg(x))
_unary(aten.abs.default, "abs", lambda b, x: b.abs(x))
_unary(aten.sqrt.default, "sqrt", lambda b, x: b.sqrt(x))
_unary(aten.floor.default, "floor", lambda b, x: b.floor(x))
_unary(aten.round.default, "rint", lambda b, x: b.rint(x))
_unary(aten.reciprocal.default, "reciprocal", lambda b, x: b.div(b.constant(DType.F32, (), 1.0), x))
_unary(aten.exp.default, "exp", lambda b, x: elementary.exp.call(b, x))
_unary(aten.log.default, "log", lambda b, x: elementary.log.call(b, x))

_unary(aten.sgn.default, "sign", _sign)

_comparison(aten.eq, "eq", lambda b, x, y: b.eq(x, y))
_comparison(aten.ne, "ne", lambda b, x, y: _inverted(b, b.eq(x, y)))
_comparison(aten.lt, "lt", lambda b, x, y: b.lt(x, y))
_comparison(aten.le, "le", lambda b, x, y: b.le(x, y))
_comparison(aten.gt, "gt", lambda b, x, y: b.lt(y, x))
_comparison(aten.ge, "ge", lambda b, x, y: b.le(y, x))


@lowers(aten.ones_like.default, aten.ones.default)
def ones(lowering: Lowering, node: torch.fx.Node, _: Any, **__: Any) -> View:
    """Ones; the seed of the backward pass is one."""
    return _filled(lowering, node, 1)


@lowers(aten.zeros_like.default, aten.zeros.default)
def zeros(lowering: Lowering, node: torch.fx.Node, _: Any, **__: Any) -> View:
    """Zeros."""
    return _filled(lowering, node, 0)


@lowers(aten.full.default, aten.full_like.default)
def full(lowering: Lowering, node: torch.fx.Node, _: Any, value: Scalar, **__: Any) -> View:
    """One value everywhere."""
    return _filled(lowering, node, value)


@lowers(aten.scalar_tensor.default)
def scalar(lowering: Lowering, node: torch.fx.Node, value: Scalar, **__: Any) -> View:
    """One value."""
    return _filled(lowering, node, value)


def _filled(lowering: Lowering, node: torch.fx.Node, value: Scalar) -> View:
    shape = tuple(node.meta["val"].shape)
    one = lowering.constant(value, lowering.dtype_of(node))
    return View(one.value, shape, (0,) * len(shape))


def _binary(
    lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand, make: Callable[[Value, Value], Value]
) -> View:
    dtype = lowering.dtype_of(node)
    if dtype in (DType.BOOL, DType.U8):
        raise Unsupported(f"on {dtype.name.lower()}", "convert with .float() first")
    result = make(lowering.operand(x, dtype), lowering.operand(y, dtype))
    return _shaped(lowering, node, View.of(result))


def _scaled(
    lowering: Lowering,
    node: torch.fx.Node,
    x: Operand,
    y: Operand,
    alpha: Scalar,
    make: Callable[[Value, Value], Value],
) -> View:
    if alpha != 1:
        y = _binary(lowering, node, y, alpha, lowering.builder.mul)
    return _binary(lowering, node, x, y, make)


def _shaped(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """Operands lost their repeated axes; the result gets the shape that torch gave it."""
    shape = tuple(node.meta["val"].shape)
    if x.shape == shape:
        return x
    return x.apply(lowering.builder, aten.expand.default, shape)
