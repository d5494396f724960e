"""Smooth activation functions and their gradients, as in torch: gelu, silu, softplus, elu, log-sigmoid, mish.

Functions without a kernel are built from a few primitives around elementary functions (arithmetic.md section
6). Functions made of linear and quadratic pieces are in `rectifiers`.
"""

from __future__ import annotations

import torch

from protocol.capture.lowering.context import Lowering, Scalar
from protocol.capture.lowering.ops.elementary import expm1, log1p
from protocol.capture.lowering.ops.operands import chosen, f32, require_f32, shaped
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Value
from protocol.program.library import activations, elementary

aten = torch.ops.aten


@lowers(aten.gelu.default)
def gelu(lowering: Lowering, _: torch.fx.Node, x: View, *, approximate: str = "none") -> View:
    """0.5 x (1 + erf(x / sqrt 2)), or its tanh approximation."""
    values = require_f32(x).elements(lowering.builder)
    return View.of(lowering.call(activations.gelu, values, tanh=approximate == "tanh"))


@lowers(aten.gelu_backward.default)
def gelu_grad(lowering: Lowering, _: torch.fx.Node, g: View, x: View, *, approximate: str = "none") -> View:
    """g gelu'(x)."""
    b = lowering.builder
    operands = g.elements(b), require_f32(x).elements(b)
    return View.of(lowering.call(activations.gelu_grad, *operands, tanh=approximate == "tanh"))


@lowers(aten.silu.default)
def silu(lowering: Lowering, _: torch.fx.Node, x: View) -> View:
    """x sigmoid(x)."""
    return View.of(lowering.call(activations.silu, require_f32(x).elements(lowering.builder)))


@lowers(aten.silu_backward.default)
def silu_grad(lowering: Lowering, _: torch.fx.Node, g: View, x: View) -> View:
    """g silu'(x)."""
    b = lowering.builder
    return View.of(lowering.call(activations.silu_grad, g.elements(b), require_f32(x).elements(b)))


@lowers(aten.softplus.default)
def softplus(
    lowering: Lowering, node: torch.fx.Node, x: View, beta: Scalar = 1, threshold: Scalar = 20
) -> View:
    """log(1 + exp(beta x)) / beta, and x where beta x exceeds the threshold.

    For z = beta x, the logarithm is max(z, 0) + log(1 + exp(-|z|)), which cannot overflow.
    """
    b = lowering.builder
    values, z, linear = _scaled(lowering, x, beta, threshold)
    curve = b.add(b.maximum(z, f32(lowering, 0.0)), _tail(lowering, z))
    curve = b.div(curve, f32(lowering, float(beta)))
    return shaped(lowering, node, View.of(b.select(linear, values, curve)))


@lowers(aten.softplus_backward.default)
def softplus_grad(
    lowering: Lowering, node: torch.fx.Node, g: View, x: View, beta: Scalar, threshold: Scalar
) -> View:
    """g sigmoid(beta x), and g where beta x exceeds the threshold."""
    b = lowering.builder
    _values, z, linear = _scaled(lowering, x, beta, threshold)
    return chosen(lowering, node, linear, g, b.mul(g.broadcast(b), elementary.sigmoid.call(b, z)))


@lowers(aten.elu.default)
def elu(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    alpha: Scalar = 1,
    scale: Scalar = 1,
    input_scale: Scalar = 1,
) -> View:
    """scale x where x > 0, else scale alpha (exp(input_scale x) - 1)."""
    b = lowering.builder
    values = lowering.operand(x, DType.F32)
    raised = expm1(b, b.mul(values, f32(lowering, float(input_scale))))
    lower = b.mul(raised, f32(lowering, float(alpha) * float(scale)))
    above = b.lt(f32(lowering, 0.0), values)
    result = b.select(above, b.mul(values, f32(lowering, float(scale))), lower)
    return shaped(lowering, node, View.of(result))


@lowers(aten.celu.default)
def celu(lowering: Lowering, node: torch.fx.Node, x: View, alpha: Scalar = 1) -> View:
    """x where x > 0, else alpha (exp(x / alpha) - 1); its gradient is `elu_grad`."""
    return elu(lowering, node, x, alpha, 1, 1 / alpha)


@lowers(aten.elu_backward.default)
def elu_grad(
    lowering: Lowering,
    node: torch.fx.Node,
    g: View,
    alpha: Scalar,
    scale: Scalar,
    input_scale: Scalar,
    of_result: bool,
    x: View,
) -> View:
    """g times the slope of `elu`. x is the operand of `elu` or, if `of_result` (the in-place form), its
    result.
    """
    b = lowering.builder
    values, above_g = lowering.operand(x, DType.F32), g.broadcast(b)
    factor = float(alpha) * float(scale) * float(input_scale)
    if of_result:
        slope = b.mul(
            b.add(values, f32(lowering, float(alpha) * float(scale))), f32(lowering, float(input_scale))
        )
    else:
        raised = elementary.exp.call(b, b.mul(values, f32(lowering, float(input_scale))))
        slope = b.mul(raised, f32(lowering, factor))
    above = b.lt(f32(lowering, 0.0), values)
    result = b.select(above, b.mul(above_g, f32(lowering, float(scale))), b.mul(above_g, slope))
    return shaped(lowering, node, View.of(result))


@lowers(aten.glu.default)
def glu(lowering: Lowering, node: torch.fx.Node, x: View, axis: int = -1) -> View:
    """The first half of an axis times the sigmoid of the second half."""
    b = lowering.builder
    first, second = _halves(lowering, x, axis)
    return shaped(lowering, node, View.of(b.mul(first, elementary.sigmoid.call(b, second))))


@lowers(aten.glu_backward.default)
def glu_grad(lowering: Lowering, _: torch.fx.Node, g: View, x: View, axis: int) -> View:
    """The gradient of both halves of the axis, `first` and `second`. With s = sigmoid(second), it is g s for
    the first half, and ((1 - s) s) (g first) for the second half.
    """
    b = lowering.builder
    first, second = _halves(lowering, x, axis)
    s, above = elementary.sigmoid.call(b, second), g.elements(b)
    slope = b.mul(b.sub(f32(lowering, 1.0), s), s)
    halves = [b.mul(above, s), b.mul(slope, b.mul(above, first))]
    return View.of(b.concat(halves, axis % len(x.shape)))


@lowers(aten.log_sigmoid_forward.default)
def log_sigmoid(lowering: Lowering, _: torch.fx.Node, x: View) -> tuple[View, View]:
    """min(x, 0) - log(1 + exp(-|x|)), and x in place of the buffer that torch keeps for the gradient."""
    b = lowering.builder
    values = require_f32(x).elements(b)
    return View.of(b.sub(b.minimum(values, f32(lowering, 0.0)), _tail(lowering, values))), x


@lowers(aten.log_sigmoid_backward.default)
def log_sigmoid_grad(lowering: Lowering, node: torch.fx.Node, g: View, x: View, _: View) -> View:
    """g sigmoid(-x)."""
    b = lowering.builder
    slope = elementary.sigmoid.call(b, b.neg(lowering.operand(x, DType.F32)))
    return shaped(lowering, node, View.of(b.mul(g.broadcast(b), slope)))


@lowers(aten.mish.default)
def mish(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """x tanh(log(1 + exp(x)))."""
    b = lowering.builder
    values = lowering.operand(x, DType.F32)
    return shaped(lowering, node, View.of(b.mul(values, _mish_gate(lowering, values))))


@lowers(aten.mish_backward.default)
def mish_grad(lowering: Lowering, node: torch.fx.Node, g: View, x: View) -> View:
    """g (t + (x sigmoid(x)) (1 - t^2)) for t = tanh(log(1 + exp(x)))."""
    b = lowering.builder
    values = lowering.operand(x, DType.F32)
    t = _mish_gate(lowering, values)
    along = b.mul(values, elementary.sigmoid.call(b, values))
    slope = b.add(t, b.mul(along, b.sub(f32(lowering, 1.0), b.mul(t, t))))
    return shaped(lowering, node, View.of(b.mul(g.broadcast(b), slope)))


def _halves(lowering: Lowering, x: View, axis: int) -> tuple[Value, Value]:
    b = lowering.builder
    half = require_f32(x).shape[axis] // 2
    first, second = (x.apply(b, aten.slice.Tensor, axis, k * half, (k + 1) * half) for k in range(2))
    return first.elements(b), second.elements(b)


def _tail(lowering: Lowering, z: Value) -> Value:
    """log(1 + exp(-|z|)). Far from 0, the sum is rounded to 1, whose logarithm is 0. There, the result is
    exp(-|z|) instead.
    """
    b = lowering.builder
    return log1p(b, elementary.exp.call(b, b.neg(b.abs(z))))


def _mish_gate(lowering: Lowering, x: Value) -> Value:
    b = lowering.builder
    gate: Value = elementary.tanh.call(b, b.add(b.maximum(x, f32(lowering, 0.0)), _tail(lowering, x)))
    return gate


def _scaled(lowering: Lowering, x: View, beta: Scalar, threshold: Scalar) -> tuple[Value, Value, Value]:
    """x, beta x, and whether beta x exceeds the threshold."""
    b = lowering.builder
    values = lowering.operand(x, DType.F32)
    z = b.mul(values, f32(lowering, float(beta)))
    return values, z, b.lt(f32(lowering, float(threshold)), z)
