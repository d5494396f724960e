"""Layer and group norm, forward and backward: each row is normalised by its mean and variance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.ops.operands import require_f32
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Value
from protocol.program.library import layer_norm as library
from protocol.program.library import sums
from protocol.program.types import Shape

aten = torch.ops.aten
Gradients = tuple[View | None, View | None, View | None]


@lowers(aten.native_layer_norm.default)
def layer_norm(
    lowering: Lowering,
    _: torch.fx.Node,
    x: View,
    normalised: Sequence[int],
    gain: View | None,
    bias: View | None,
    eps: float,
) -> tuple[View, View, View]:
    """Layer norm over the last axes; also the means and the reciprocal deviations, as torch returns them."""
    rows = _table(lowering, x, math.prod(normalised))
    affine = [] if gain is None else [_row(lowering, gain)]
    if bias is not None:
        affine = affine or [lowering.builder.constant(DType.F32, rows.shape[1:], 1.0)]
        affine.append(_row(lowering, bias))
    y, mean, rstd = lowering.call_several(library.layer_norm, rows, *affine, eps=float(eps))
    kept = (*x.shape[: len(x.shape) - len(normalised)], *(1 for _ in normalised))
    return _shaped(lowering, y, x.shape), _shaped(lowering, mean, kept), _shaped(lowering, rstd, kept)


@lowers(aten.native_layer_norm_backward.default)
def layer_norm_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    x: View,
    normalised: Sequence[int],
    mean: View,
    rstd: View,
    gain: View | None,
    bias: View | None,  # noqa: ARG001 - its gradient does not depend on it
    wanted: Sequence[bool],
) -> Gradients:
    """The gradients of x, gain and bias; None for those that are not wanted."""
    width = math.prod(normalised)
    g_rows, x_rows = _table(lowering, g, width), _table(lowering, x, width)
    moments = _table(lowering, mean, 1), _table(lowering, rstd, 1)
    of_x = of_gain = of_bias = None
    if wanted[0]:
        affine = () if gain is None else (_row(lowering, gain),)
        dx = lowering.call(library.layer_norm_grad, g_rows, x_rows, *moments, *affine)
        of_x = _shaped(lowering, dx, x.shape)
    if wanted[1] and gain is not None:
        terms = lowering.call(library.layer_norm_grad_gain, g_rows, x_rows, *moments)
        of_gain = _shaped(lowering, terms, gain.shape)
    if wanted[2]:
        of_bias = _shaped(lowering, lowering.call(sums.sum_columns, g_rows), tuple(normalised))
    return of_x, of_gain, of_bias


@lowers(aten.native_group_norm.default)
def group_norm(
    lowering: Lowering,
    _: torch.fx.Node,
    x: View,
    gain: View | None,
    bias: View | None,
    batch: int,
    channels: int,
    places: int,
    groups: int,
    eps: float,
) -> tuple[View, View, View]:
    """Group norm: each group of channels of each example is one row; gain and bias are per channel."""
    b = lowering.builder
    rows = _table(lowering, x, channels // groups * places)
    y, mean, rstd = lowering.call_several(library.layer_norm, rows, eps=float(eps))
    y = b.reshape(y, (batch, channels, places))
    y = y if gain is None else b.mul(y, _column(lowering, gain))
    y = y if bias is None else b.add(y, _column(lowering, bias))
    kept = (batch, groups)
    return _shaped(lowering, y, x.shape), _shaped(lowering, mean, kept), _shaped(lowering, rstd, kept)


@lowers(aten.native_group_norm_backward.default)
def group_norm_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    x: View,
    mean: View,
    rstd: View,
    gain: View | None,
    batch: int,
    channels: int,
    places: int,
    groups: int,
    wanted: Sequence[bool],
) -> Gradients:
    """The gradients of x, gain and bias; None for those that are not wanted."""
    b = lowering.builder
    width = channels // groups * places
    table = (batch, channels, places)
    g_values, x_rows = b.reshape(g.elements(b), table), _table(lowering, x, width)
    moments = _table(lowering, mean, 1), _table(lowering, rstd, 1)
    of_x = of_gain = of_bias = None
    if wanted[0]:
        scaled = g_values if gain is None else b.mul(g_values, _column(lowering, gain))
        rows = b.reshape(scaled, x_rows.shape)
        of_x = _shaped(lowering, lowering.call(library.layer_norm_grad, rows, x_rows, *moments), x.shape)
    if wanted[1]:
        normal = b.reshape(b.mul(b.sub(x_rows, moments[0]), moments[1]), table)
        of_gain = View.of(_channel_sums(lowering, b.mul(g_values, normal)))
    if wanted[2]:
        of_bias = View.of(_channel_sums(lowering, g_values))
    return of_x, of_gain, of_bias


def _channel_sums(lowering: Lowering, x: Value) -> Value:
    """The sum of each channel: [B, C, L] to [C]."""
    b = lowering.builder
    batch, channels, places = x.shape
    rows = b.reshape(b.permute(x, (1, 0, 2)), (channels, batch * places))
    return lowering.call(sums.sum_rows, rows)


def _table(lowering: Lowering, x: View, width: int) -> Value:
    """The elements of x as an f32 table of shape [elements / width, width]."""
    values = require_f32(x).elements(lowering.builder)
    return lowering.builder.reshape(values, (values.type.elements // width, width))


def _row(lowering: Lowering, x: View) -> Value:
    values = x.elements(lowering.builder)
    return lowering.builder.reshape(values, (values.type.elements,))


def _column(lowering: Lowering, x: View) -> Value:
    values = x.elements(lowering.builder)
    return lowering.builder.reshape(values, (values.type.elements, 1))


def _shaped(lowering: Lowering, x: Value, shape: Shape) -> View:
    return View.of(x).apply(lowering.builder, aten.view.default, shape)
