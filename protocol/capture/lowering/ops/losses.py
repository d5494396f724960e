"""Negative log-likelihood and mean squared error, forward and backward.

Losses that torch itself decomposes, such as l1 and Kullback-Leibler, need no rule.
"""

from __future__ import annotations

import torch

from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Value
from protocol.program.library import loss

aten = torch.ops.aten


@lowers(aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)
def nll_loss(
    lowering: Lowering,
    _: torch.fx.Node,
    log_probabilities: View,
    labels: View,
    weight: View | None,
    reduction: int,
    ignore: int,
) -> tuple[View, View]:
    """The loss of log-probabilities of shape [B, C], [C] or [B, C, H, W], and the total weight of the rows
    that are not ignored. Without a reduction, this weight is 0, as in torch.
    """
    b = lowering.builder
    rows = _by_class(lowering, log_probabilities).elements(b)
    weights = () if weight is None else (weight.elements(b),)
    value, total = lowering.call_several(
        loss.nll_loss, rows, _flat(lowering, labels), *weights, ignore=ignore, reduction=reduction
    )
    if reduction == loss.NONE:
        return View.of(b.reshape(value, labels.shape)), View.of(
            b.constant(DType.F32, (), 0.0)
        )  # torch returns 0 here too
    return View.of(value), View.of(total)


@lowers(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default)
def nll_loss_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    log_probabilities: View,
    labels: View,
    weight: View | None,
    reduction: int,
    ignore: int,
    total: View,
) -> View:
    """The gradient of the log-probabilities, in their shape. At every label that is not ignored it is -g,
    multiplied by the label's weight if there are weights. Elsewhere it is 0. For the mean, it is divided by
    the total weight.
    """
    b = lowering.builder
    by_class = _by_class(lowering, log_probabilities)
    above = g.elements(b)
    if reduction == loss.NONE:
        above = b.reshape(above, by_class.shape[:1])
    operands = [above, _flat(lowering, labels), total.elements(b)]
    operands += [] if weight is None else [weight.elements(b)]
    result = lowering.call(
        loss.nll_loss_grad, *operands, classes=by_class.shape[1], ignore=ignore, reduction=reduction
    )
    if len(log_probabilities.shape) < 4:
        return View.of(b.reshape(result, log_probabilities.shape))
    batch, classes, height, width = log_probabilities.shape
    return View.of(b.reshape(result, (batch, height, width, classes))).apply(
        b, aten.permute.default, (0, 3, 1, 2)
    )


@lowers(aten.mse_loss.default)
def mse_loss(lowering: Lowering, node: torch.fx.Node, x: View, y: View, reduction: int = loss.MEAN) -> View:
    """The squares (x - y)^2 of all elements, or their mean, or their sum, as `reduction` says."""
    b = lowering.builder
    result = lowering.call(loss.mse_loss, *_pair(lowering, x, y), reduction=reduction)
    return View.of(b.reshape(result, tuple(node.meta["val"].shape)))


@lowers(aten.mse_loss_backward.default)
def mse_loss_grad(lowering: Lowering, node: torch.fx.Node, g: View, x: View, y: View, reduction: int) -> View:
    """2 (x - y) g; for the mean, divided by the number of elements."""
    b = lowering.builder
    above = _flat(lowering, g) if reduction == loss.NONE else g.elements(b)
    result = lowering.call(loss.mse_loss_grad, above, *_pair(lowering, x, y), reduction=reduction)
    return View.of(b.reshape(result, tuple(node.meta["val"].shape)))


def _by_class(lowering: Lowering, x: View) -> View:
    """x as [rows, classes]. The class axis of x is the last if x has rank 1 or 2, and the second if x has rank 4."""
    b = lowering.builder
    if len(x.shape) == 4:
        x = x.apply(b, aten.permute.default, (0, 2, 3, 1))
    return x.apply(b, aten.view.default, (-1, x.shape[-1]))


def _flat(lowering: Lowering, x: View) -> Value:
    return x.apply(lowering.builder, aten.view.default, (-1,)).elements(lowering.builder)


def _pair(lowering: Lowering, x: View, y: View) -> tuple[Value, Value]:
    """Both operands as vectors, converted to f32."""
    left, right = (View.of(_flat(lowering, each)) for each in (x, y))
    return lowering.elements(left, DType.F32), lowering.elements(right, DType.F32)
