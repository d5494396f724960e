"""Losses that compare two tensors element by element, and optionally take the mean or sum; forward and
backward.

Mean squared error has its own kernels and is in `losses`. torch itself decomposes the absolute error.
"""

from __future__ import annotations

import math

import torch

from protocol.capture.lowering.context import Lowering, Scalar
from protocol.capture.lowering.ops.elementary import log1p
from protocol.capture.lowering.ops.operands import f32, reshaped
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Value
from protocol.program.library import elementary, sums
from protocol.program.library.loss import MEAN, NONE
from protocol.program.types import broadcast_shape

aten = torch.ops.aten
LEAST_LOG = -100.0
"""The lower bound of the logarithms in torch's `binary_cross_entropy`, which keeps the loss finite."""
LEAST_SLOPE = 1e-12
"""The lower bound of x (1 - x), the denominator in the gradient of `binary_cross_entropy`."""


@lowers(aten.smooth_l1_loss.default)
def smooth_l1(
    lowering: Lowering, node: torch.fx.Node, x: View, y: View, reduction: int = MEAN, beta: Scalar = 1.0
) -> View:
    """0.5 d^2 / beta where d = |x - y| is below beta, else d - 0.5 beta."""
    b = lowering.builder
    d = b.abs(_difference(lowering, x, y))
    near = b.div(b.mul(b.mul(d, d), f32(lowering, 0.5)), f32(lowering, float(beta)))
    far = b.sub(d, f32(lowering, 0.5 * float(beta)))
    each = b.select(b.lt(d, f32(lowering, float(beta))), near, far)
    return _reduced(lowering, node, each, reduction)


@lowers(aten.smooth_l1_loss_backward.default)
def smooth_l1_grad(
    lowering: Lowering, node: torch.fx.Node, g: View, x: View, y: View, reduction: int, beta: Scalar
) -> View:
    """g times ((x - y) / beta clamped to -1 … 1). If beta is 0: g if x > y, else -g, as in torch."""
    b = lowering.builder
    difference = _difference(lowering, x, y)
    if beta == 0:
        above = b.lt(f32(lowering, 0.0), difference)
        slope = b.select(above, f32(lowering, 1.0), f32(lowering, -1.0))
    else:
        slope = _bounded(lowering, b.div(difference, f32(lowering, float(beta))), 1.0)
    return _graded(lowering, node, g, slope, reduction)


@lowers(aten.huber_loss.default)
def huber(
    lowering: Lowering, node: torch.fx.Node, x: View, y: View, reduction: int = MEAN, delta: Scalar = 1.0
) -> View:
    """0.5 d^2 where d = |x - y| is at most delta, else delta (d - 0.5 delta)."""
    b = lowering.builder
    d, bound = b.abs(_difference(lowering, x, y)), f32(lowering, float(delta))
    near = b.mul(b.mul(d, d), f32(lowering, 0.5))
    far = b.mul(bound, b.sub(d, f32(lowering, 0.5 * float(delta))))
    return _reduced(lowering, node, b.select(b.le(d, bound), near, far), reduction)


@lowers(aten.huber_loss_backward.default)
def huber_grad(
    lowering: Lowering, node: torch.fx.Node, g: View, x: View, y: View, reduction: int, delta: Scalar
) -> View:
    """g (x - y), with the difference clamped to -delta … delta."""
    slope = _bounded(lowering, _difference(lowering, x, y), float(delta))
    return _graded(lowering, node, g, slope, reduction)


@lowers(aten.binary_cross_entropy.default)
def binary_cross_entropy(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    y: View,
    weight: View | None = None,
    reduction: int = MEAN,
) -> View:
    """-(y log x + (1 - y) log(1 - x)), times `weight` if given; logarithms are at least -100."""
    b = lowering.builder
    one, least = f32(lowering, 1.0), f32(lowering, LEAST_LOG)
    p, target = lowering.operand(x, DType.F32), lowering.operand(y, DType.F32)
    hit = b.maximum(elementary.log.call(b, p), least)
    miss = b.maximum(elementary.log.call(b, b.sub(one, p)), least)
    each = b.neg(b.add(b.mul(target, hit), b.mul(b.sub(one, target), miss)))
    each = each if weight is None else b.mul(each, weight.broadcast(b))
    return _reduced(lowering, node, each, reduction)


@lowers(aten.binary_cross_entropy_backward.default)
def binary_cross_entropy_grad(
    lowering: Lowering,
    node: torch.fx.Node,
    g: View,
    x: View,
    y: View,
    weight: View | None = None,
    reduction: int = MEAN,
) -> View:
    """g (x - y) / (x (1 - x)), times `weight` if given; the denominator is at least 1e-12."""
    b = lowering.builder
    p = lowering.operand(x, DType.F32)
    spread = b.maximum(b.mul(b.sub(f32(lowering, 1.0), p), p), f32(lowering, LEAST_SLOPE))
    slope = b.div(b.sub(p, lowering.operand(y, DType.F32)), spread)
    slope = slope if weight is None else b.mul(slope, weight.broadcast(b))
    return _graded(lowering, node, g, slope, reduction)


@lowers(aten.binary_cross_entropy_with_logits.default)
def binary_cross_entropy_of_logits(
    lowering: Lowering,
    node: torch.fx.Node,
    x: View,
    y: View,
    weight: View | None = None,
    positive: View | None = None,
    reduction: int = MEAN,
) -> View:
    """(1 - y) x + w (max(-x, 0) + log(1 + exp(-|x|))), where w = 1 + (positive - 1) y. The whole sum is
    multiplied by `weight` if given.

    torch itself decomposes the gradient.
    """
    b = lowering.builder
    one, zero = f32(lowering, 1.0), f32(lowering, 0.0)
    z, target = lowering.operand(x, DType.F32), lowering.operand(y, DType.F32)
    tail = log1p(b, elementary.exp.call(b, b.neg(b.abs(z))))
    loss = b.add(b.maximum(b.neg(z), zero), tail)
    if positive is not None:
        loss = b.mul(b.add(b.mul(b.sub(positive.broadcast(b), one), target), one), loss)
    each = b.add(b.mul(b.sub(one, target), z), loss)
    each = each if weight is None else b.mul(each, weight.broadcast(b))
    return _reduced(lowering, node, each, reduction)


def _difference(lowering: Lowering, x: View, y: View) -> Value:
    return lowering.builder.sub(lowering.operand(x, DType.F32), lowering.operand(y, DType.F32))


def _bounded(lowering: Lowering, x: Value, bound: float) -> Value:
    b = lowering.builder
    return b.minimum(b.maximum(x, f32(lowering, -bound)), f32(lowering, bound))


def _reduced(lowering: Lowering, node: torch.fx.Node, each: Value, reduction: int) -> View:
    """Every element, the sum, or the mean, as `reduction` says."""
    b = lowering.builder
    shapes = [tuple(operand.meta["val"].shape) for operand in node.args[:2]]  # type: ignore[union-attr]
    shape = broadcast_shape(shapes)
    whole = b.expand(each, shape)
    if reduction == NONE:
        return View.of(whole)
    terms = math.prod(shape)
    total = lowering.call(sums.sum_rows, b.reshape(whole, (1, terms)))
    return reshaped(lowering, node, b.div(total, f32(lowering, float(terms))) if reduction == MEAN else total)


def _graded(lowering: Lowering, node: torch.fx.Node, g: View, slope: Value, reduction: int) -> View:
    """`g` times `slope`, divided by the number of elements if `reduction` is the mean."""
    b = lowering.builder
    shape = tuple(node.meta["val"].shape)
    above = g.broadcast(b)
    if reduction == MEAN:
        above = b.div(above, f32(lowering, float(math.prod(shape))))
    return View.of(b.expand(b.mul(above, slope), shape))
