"""Helpers that several modules' rules share: operands of one type, results in torch's shape, constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from protocol.capture.lowering.checks import wrong_type
from protocol.capture.lowering.context import Lowering, Scalar
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value

aten = torch.ops.aten
Operand = View | Scalar


def require_f32(x: View) -> View:
    """The view unchanged. Raises `Unsupported` unless its type is f32."""
    if x.dtype is not DType.F32:
        raise wrong_type(x.dtype)
    return x


def shaped(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """`x` expanded to the shape of torch's result. `x` may be smaller, because it was computed from operands
    in which repeated axes have size 1 (`Lowering.operand`).
    """
    shape = tuple(node.meta["val"].shape)
    return x if x.shape == shape else x.apply(lowering.builder, aten.expand.default, shape)


def reshaped(lowering: Lowering, node: torch.fx.Node, x: Value) -> View:
    """The elements reshaped to the shape of torch's result."""
    return View.of(x).apply(lowering.builder, aten.view.default, tuple(node.meta["val"].shape))


def filled(lowering: Lowering, node: torch.fx.Node, value: Scalar) -> View:
    """A constant with the shape and type of torch's result."""
    shape = tuple(node.meta["val"].shape)
    one = lowering.constant(value, lowering.dtype_of(node))
    return View(one.value, shape, (0,) * len(shape))


def binary(
    lowering: Lowering, node: torch.fx.Node, x: Operand, y: Operand, make: Callable[[Value, Value], Value]
) -> View:
    """The result of `make`, a primitive of two operands, in the type of torch's result. Raises
    `Unsupported` for bool and u8.
    """
    dtype = lowering.dtype_of(node)
    if dtype in (DType.BOOL, DType.U8):
        raise wrong_type(dtype)
    result = make(lowering.operand(x, dtype), lowering.operand(y, dtype))
    return shaped(lowering, node, View.of(result))


def unary(overload: Any, name: str, make: Callable[[Builder, Value], Value]) -> None:
    """Register a rule for `overload` that computes the result by `make`, a function of one f32 operand.
    Integers are cast to f32 if torch's result is f32; otherwise they are refused.
    """

    def rule(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
        if lowering.dtype_of(node) is not DType.F32:
            require_f32(x)
        return shaped(lowering, node, View.of(make(lowering.builder, lowering.operand(x, DType.F32))))

    rule.__name__ = name
    lowers(overload)(rule)


def f32(lowering: Lowering, value: float) -> Value:
    """A scalar f32 constant."""
    return lowering.builder.constant(DType.F32, (), value)


def chosen(
    lowering: Lowering, node: torch.fx.Node, condition: Value, x: View | Value, y: View | Value
) -> View:
    """x where the condition holds, else y, in the shape of torch's result."""
    b = lowering.builder
    left, right = (value.broadcast(b) if isinstance(value, View) else value for value in (x, y))
    return shaped(lowering, node, View.of(b.select(condition, left, right)))
