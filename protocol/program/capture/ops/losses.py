"""`log_softmax` and the mean negative log-likelihood, forward and backward: what `cross_entropy` becomes."""

from __future__ import annotations

import torch

from protocol.numerics.types import DType
from protocol.program.capture.lowering import Lowering, Unsupported, lowers
from protocol.program.capture.views import View
from protocol.program.library import loss, softmax

aten = torch.ops.aten
MEAN = 1
"""torch's code of `reduction="mean"`."""


@lowers(aten._log_softmax.default)
def log_softmax(lowering: Lowering, _: torch.fx.Node, x: View, axis: int, half_to_float: bool) -> View:  # noqa: ARG001
    """Along the last axis."""
    return View.of(lowering.call(softmax.log_softmax, _last(x, axis).elements(lowering.builder)))


@lowers(aten._log_softmax_backward_data.default)
def log_softmax_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    y: View,
    axis: int,
    dtype: torch.dtype,  # noqa: ARG001
) -> View:
    """Along the last axis."""
    b = lowering.builder
    return View.of(lowering.call(softmax.log_softmax_grad, _last(g, axis).elements(b), y.elements(b)))


@lowers(aten.nll_loss_forward.default)
def nll_loss(
    lowering: Lowering,
    _: torch.fx.Node,
    log_probabilities: View,
    labels: View,
    weight: View | None,
    reduction: int,
    ignore_index: int,
) -> tuple[View, View]:
    """The mean over the batch, and the batch size, which torch calls the total weight."""
    b = lowering.builder
    _require_plain(log_probabilities, weight, reduction, ignore_index)
    value = lowering.call(loss.nll_loss, log_probabilities.elements(b), labels.elements(b))
    return View.of(value), lowering.constant(float(labels.shape[0]), DType.F32)


@lowers(aten.nll_loss_backward.default)
def nll_loss_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    log_probabilities: View,
    labels: View,
    weight: View | None,
    reduction: int,
    ignore_index: int,
    total_weight: View,  # noqa: ARG001 - the batch size
) -> View:
    """-g / B at every label."""
    b = lowering.builder
    _require_plain(log_probabilities, weight, reduction, ignore_index)
    classes = log_probabilities.shape[1]
    return View.of(lowering.call(loss.nll_loss_grad, g.elements(b), labels.elements(b), classes=classes))


def _last(x: View, axis: int) -> View:
    if len(x.shape) != 2 or axis % 2 != 1:
        raise Unsupported(
            f"over axis {axis} of {x.shape}", "reshape to [rows, classes] and use the last axis"
        )
    return x


def _require_plain(x: View, weight: View | None, reduction: int, ignore_index: int) -> None:
    if len(x.shape) != 2 or weight is not None or reduction != MEAN or ignore_index >= 0:
        raise Unsupported(
            "with class weights, an ignored class, a reduction other than the mean, or more than two axes",
            'use cross_entropy(logits [rows, classes], labels [rows]) with its defaults, reduction="mean"',
        )
