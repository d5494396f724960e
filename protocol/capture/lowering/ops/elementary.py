"""Elementary functions by their ATen names (arithmetic.md section 6), and the gradients that ATen has for them."""

from __future__ import annotations

import math

import torch

from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.ops.operands import f32, shaped, unary
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library import elementary

aten = torch.ops.aten


@lowers(aten.sigmoid_backward.default)
def sigmoid_grad(lowering: Lowering, node: torch.fx.Node, g: View, y: View) -> View:
    """g ((1 - y) y)."""
    b = lowering.builder
    y_ = y.broadcast(b)
    slope = b.mul(b.sub(f32(lowering, 1.0), y_), y_)
    return shaped(lowering, node, View.of(b.mul(g.broadcast(b), slope)))


@lowers(aten.tanh_backward.default)
def tanh_grad(lowering: Lowering, node: torch.fx.Node, g: View, y: View) -> View:
    """g (1 - y^2)."""
    b = lowering.builder
    y_ = y.broadcast(b)
    return shaped(lowering, node, View.of(b.mul(g.broadcast(b), b.sub(f32(lowering, 1.0), b.mul(y_, y_)))))


def log1p(b: Builder, x: Value) -> Value:
    """log(1 + x), accurate near 0. It is computed as log(u) x / (u - 1), where u is 1 + x, rounded. The error
    of u cancels in log(u) / (u - 1) (Kahan).
    """
    one, infinity = (b.constant(DType.F32, (), value) for value in (1.0, math.inf))
    u = b.add(x, one)
    curve = b.mul(elementary.log.call(b, u), b.div(x, b.sub(u, one)))
    return b.select(b.or_(b.eq(u, one), b.eq(u, infinity)), x, curve)


def expm1(b: Builder, x: Value) -> Value:
    """exp(x) - 1, accurate near 0. It is computed as (u - 1) x / log(u), where u is exp(x), rounded. The
    error of u cancels in (u - 1) / log(u) (Kahan).
    """
    zero, one, infinity = (b.constant(DType.F32, (), value) for value in (0.0, 1.0, math.inf))
    u = elementary.exp.call(b, x)
    less = b.sub(u, one)
    curve = b.mul(less, b.div(x, elementary.log.call(b, u)))
    flat = b.select(b.or_(b.eq(u, zero), b.eq(u, infinity)), less, curve)
    return b.select(b.eq(u, one), x, flat)


def exp2(b: Builder, x: Value) -> Value:
    """2^n e^(f log 2), where x is first clamped to -400 … 400, n is the integer nearest to x, and f = x - n
    is exact.
    """
    least, most, log_2 = (b.constant(DType.F32, (), value) for value in (-400.0, 400.0, math.log(2)))
    near = b.maximum(b.minimum(x, most), least)
    whole = b.rint(near)
    return b.scale(elementary.exp.call(b, b.mul(b.sub(near, whole), log_2)), b.f32_to_i32(whole))


unary(aten.exp.default, "exp", lambda b, x: elementary.exp.call(b, x))
unary(aten.exp2.default, "exp2", exp2)
unary(aten.log.default, "log", lambda b, x: elementary.log.call(b, x))
unary(aten.tanh.default, "tanh", lambda b, x: elementary.tanh.call(b, x))
unary(aten.sigmoid.default, "sigmoid", lambda b, x: elementary.sigmoid.call(b, x))
unary(aten.erf.default, "erf", lambda b, x: elementary.erf.call(b, x))
unary(aten.sin.default, "sin", lambda b, x: elementary.sin.call(b, x))
unary(aten.cos.default, "cos", lambda b, x: elementary.cos.call(b, x))
unary(aten.rsqrt.default, "rsqrt", lambda b, x: elementary.rsqrt.call(b, x))
unary(aten.log1p.default, "log1p", log1p)
unary(aten.expm1.default, "expm1", expm1)
