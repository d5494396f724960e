"""Activation functions made of linear and quadratic pieces, and their gradients; at kinks the gradients are
torch's.
"""

from __future__ import annotations

import torch

from protocol.capture.lowering.context import Lowering, Scalar
from protocol.capture.lowering.ops.operands import chosen, f32, shaped
from protocol.capture.lowering.ops.pointwise import maximum
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType

aten = torch.ops.aten


@lowers(aten.relu.default)
def relu(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """max(x, 0)."""
    return maximum(lowering, node, x, lowering.constant(0, lowering.dtype_of(node)))


@lowers(aten.threshold_backward.default)
def relu_grad(lowering: Lowering, node: torch.fx.Node, g: View, x: View, threshold: Scalar) -> View:
    """0 where x <= threshold, else g; so g where x is NaN, as in torch."""
    b = lowering.builder
    closed = b.le(lowering.operand(x, DType.F32), lowering.operand(threshold, DType.F32))
    return chosen(lowering, node, closed, f32(lowering, 0.0), g)


@lowers(aten.hardtanh_backward.default)
def hardtanh_grad(
    lowering: Lowering, node: torch.fx.Node, g: View, x: View, low: Scalar, high: Scalar
) -> View:
    """0 where x <= low or x >= high, else g."""
    b = lowering.builder
    values = lowering.operand(x, DType.F32)
    below, above = b.le(values, f32(lowering, float(low))), b.le(f32(lowering, float(high)), values)
    return chosen(lowering, node, b.or_(below, above), f32(lowering, 0.0), g)


@lowers(aten.leaky_relu.default)
def leaky_relu(lowering: Lowering, node: torch.fx.Node, x: View, slope: Scalar = 0.01) -> View:
    """x where it is above 0, else slope x."""
    b = lowering.builder
    values = lowering.operand(x, DType.F32)
    above = b.lt(f32(lowering, 0.0), values)
    return shaped(
        lowering, node, View.of(b.select(above, values, b.mul(values, f32(lowering, float(slope)))))
    )


@lowers(aten.leaky_relu_backward.default)
def leaky_relu_grad(
    lowering: Lowering,
    node: torch.fx.Node,
    g: View,
    x: View,
    slope: Scalar,
    _of_result: bool,
) -> View:
    """g where x is above 0, else slope g. The in-place form has the same gradient, because its slope is never
    negative.
    """
    b = lowering.builder
    above = b.lt(f32(lowering, 0.0), lowering.operand(x, DType.F32))
    lower = b.mul(g.broadcast(b), f32(lowering, float(slope)))
    return chosen(lowering, node, above, g, lower)


@lowers(aten.hardsigmoid.default, aten.hardswish.default)
def hard(lowering: Lowering, node: torch.fx.Node, x: View) -> View:
    """min(max(x + 3, 0), 6) / 6; for hardswish, times x."""
    b = lowering.builder
    values = lowering.operand(x, DType.F32)
    six = f32(lowering, 6.0)
    gate = b.minimum(b.maximum(b.add(values, f32(lowering, 3.0)), f32(lowering, 0.0)), six)
    result = gate if node.target is aten.hardsigmoid.default else b.mul(values, gate)
    return shaped(lowering, node, View.of(b.div(result, six)))


@lowers(aten.hardsigmoid_backward.default)
def hardsigmoid_grad(lowering: Lowering, node: torch.fx.Node, g: View, x: View) -> View:
    """g / 6 for -3 < x < 3, else 0."""
    b = lowering.builder
    values = lowering.operand(x, DType.F32)
    inside = b.lt(b.abs(values), f32(lowering, 3.0))
    return chosen(lowering, node, inside, b.div(g.broadcast(b), f32(lowering, 6.0)), f32(lowering, 0.0))


@lowers(aten.hardswish_backward.default)
def hardswish_grad(lowering: Lowering, node: torch.fx.Node, g: View, x: View) -> View:
    """0 for x <= -3, g (x / 3 + 0.5) for -3 < x < 3, else g."""
    b = lowering.builder
    values, above = lowering.operand(x, DType.F32), g.broadcast(b)
    three = f32(lowering, 3.0)
    slope = b.add(b.div(values, three), f32(lowering, 0.5))
    middle = b.select(b.lt(values, three), b.mul(above, slope), above)
    return chosen(lowering, node, b.le(values, f32(lowering, -3.0)), f32(lowering, 0.0), middle)


@lowers(aten.threshold.default)
def threshold(lowering: Lowering, node: torch.fx.Node, x: View, bound: Scalar, value: Scalar) -> View:
    """`value` where x <= bound, else x."""
    b = lowering.builder
    values = lowering.operand(x, DType.F32)
    closed = b.le(values, f32(lowering, float(bound)))
    return chosen(lowering, node, closed, f32(lowering, float(value)), values)
