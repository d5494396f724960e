"""Batch norm in training and evaluation, its gradients, and the update of its running statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from protocol.capture.lowering.checks import Unsupported
from protocol.capture.lowering.context import Lowering
from protocol.capture.lowering.rules import lowers
from protocol.capture.lowering.views import View
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library import batch_norm

aten = torch.ops.aten
Optional = View | None
Normalised = tuple[View, Optional, Optional, Optional, Optional]


@dataclass(frozen=True)
class _Running:
    """Running mean and variance before the step."""

    mean: View
    variance: View


@lowers(aten._native_batch_norm_legit_functional.default)
def batch_norm_train(
    lowering: Lowering,
    _: torch.fx.Node,
    x: View,
    gain: Optional,
    bias: Optional,
    mean: View,
    variance: View,
    training: bool,
    momentum: float,
    eps: float,
) -> Normalised:
    """The result, the batch's mean and reciprocal deviation, and the next running mean and variance. In
    evaluation, the batch's statistics are None and the running ones do not change.
    """
    running = _Running(mean, variance)
    if training:
        return _by_batch(lowering, x, gain, bias, running, momentum, eps)
    return _by_running(lowering, x, gain, bias, running, eps)


@lowers(aten.native_batch_norm.default)
def batch_norm_plain(
    lowering: Lowering,
    _: torch.fx.Node,
    x: View,
    gain: Optional,
    bias: Optional,
    mean: Optional,
    variance: Optional,
    training: bool,
    momentum: float,  # noqa: ARG001 - what is written arrives as `_native_batch_norm_legit_functional`
    eps: float,
) -> Normalised:
    """Batch norm with the running statistics, or with the batch's statistics if there are no running ones.
    Raises `Unsupported` for training with running statistics.
    """
    if mean is None or variance is None:
        return _by_batch(lowering, x, gain, bias, None, 0.0, eps)
    if training:
        raise Unsupported("writing its running statistics", "call torch.nn.functional.batch_norm instead")
    return _by_running(lowering, x, gain, bias, _Running(mean, variance), eps)


@lowers(aten._native_batch_norm_legit.no_stats)
def batch_norm_no_stats(
    lowering: Lowering,
    _: torch.fx.Node,
    x: View,
    gain: Optional,
    bias: Optional,
    training: bool,  # noqa: ARG001 - without running statistics there is only the batch
    momentum: float,  # noqa: ARG001
    eps: float,
) -> Normalised:
    """Batch norm with the batch's own statistics."""
    return _by_batch(lowering, x, gain, bias, None, 0.0, eps)


@lowers(aten._native_batch_norm_legit_no_training.default)
def batch_norm_eval(
    lowering: Lowering,
    _: torch.fx.Node,
    x: View,
    gain: Optional,
    bias: Optional,
    mean: View,
    variance: View,
    momentum: float,  # noqa: ARG001 - nothing is followed
    eps: float,
) -> Normalised:
    """Batch norm with the running statistics."""
    return _by_running(lowering, x, gain, bias, _Running(mean, variance), eps)


@lowers(aten.native_batch_norm_backward.default)
def batch_norm_grad(
    lowering: Lowering,
    _: torch.fx.Node,
    g: View,
    x: View,
    gain: Optional,
    running_mean: Optional,
    running_variance: Optional,
    mean: Optional,
    rstd: Optional,
    training: bool,
    eps: float,
    wanted: Sequence[bool],
) -> tuple[Optional, Optional, Optional]:
    """The gradients of input, gain and bias; None for those that are not wanted."""
    b = lowering.builder
    if not training and running_mean is not None and running_variance is not None:
        mean = running_mean
        rstd = View.of(_inverse_deviation(b, running_variance.elements(b), eps))
    if mean is None or rstd is None:
        raise Unsupported("without statistics", "keep running statistics, or train by the batch's own")
    gradient, planes = _planes(lowering, g), _planes(lowering, x)
    statistics = mean.elements(b), rstd.elements(b)
    if not (training or wanted[1] or wanted[2]):
        return _by_factor(lowering, x, gradient, statistics[1], gain), None, None
    total, along = lowering.call_several(batch_norm.batch_norm_sums, gradient, planes, *statistics)
    at_x = None
    if wanted[0] and training:
        gains = [] if gain is None else [gain.elements(b)]
        whole = lowering.call(batch_norm.batch_norm_grad, gradient, planes, *statistics, total, along, *gains)
        at_x = View.of(whole).apply(b, aten.view.default, x.shape)
    elif wanted[0]:
        at_x = _by_factor(lowering, x, gradient, statistics[1], gain)
    return at_x, View.of(along) if wanted[1] else None, View.of(total) if wanted[2] else None


def _by_factor(lowering: Lowering, x: View, gradient: Value, rstd: Value, gain: Optional) -> View:
    """The gradient of x for fixed statistics: `gradient * (rstd * gain)`."""
    b = lowering.builder
    factor = rstd if gain is None else b.mul(rstd, gain.elements(b))
    whole = b.mul(gradient, b.reshape(factor, (*factor.shape, 1)))
    return View.of(whole).apply(b, aten.view.default, x.shape)


def _by_batch(
    lowering: Lowering,
    x: View,
    gain: Optional,
    bias: Optional,
    running: _Running | None,
    momentum: float,
    eps: float,
) -> Normalised:
    planes = _planes(lowering, x)
    mean, rstd, variance = lowering.call_several(batch_norm.batch_statistics, planes, eps=eps)
    y = _normalised(lowering, x, planes, (mean, rstd), gain, bias)
    if running is None:
        return y, View.of(mean), View.of(rstd), None, None
    return (
        y,
        View.of(mean),
        View.of(rstd),
        _followed(lowering, running.mean, mean, momentum),
        _followed(lowering, running.variance, variance, momentum),
    )


def _by_running(
    lowering: Lowering, x: View, gain: Optional, bias: Optional, running: _Running, eps: float
) -> Normalised:
    b = lowering.builder
    statistics = running.mean.elements(b), _inverse_deviation(b, running.variance.elements(b), eps)
    y = _normalised(lowering, x, _planes(lowering, x), statistics, gain, bias)
    return y, None, None, running.mean, running.variance


def _normalised(
    lowering: Lowering,
    x: View,
    planes: Value,
    statistics: tuple[Value, Value],
    gain: Optional,
    bias: Optional,
) -> View:
    b = lowering.builder
    if gain is None and bias is not None:
        raise Unsupported("with a bias and no gain", "give it both, or add the bias afterwards")
    affine = [each.elements(b) for each in (gain, bias) if each is not None]
    y = lowering.call(batch_norm.batch_normalise, planes, *statistics, *affine)
    return View.of(y).apply(b, aten.view.default, x.shape)


def _followed(lowering: Lowering, running: View, now: Value, momentum: float) -> View:
    """`momentum * now + (1 - momentum) * running`. Both factors, `momentum` and `1 - momentum`, are rounded
    to f32, as in torch.
    """
    b = lowering.builder
    fresh, kept = (b.constant(DType.F32, (), factor) for factor in (momentum, 1 - momentum))
    return View.of(b.add(b.mul(fresh, now), b.mul(kept, running.elements(b))))


def _inverse_deviation(b: Builder, variance: Value, eps: float) -> Value:
    one, least = (b.constant(DType.F32, (), value) for value in (1.0, eps))
    return b.div(one, b.sqrt(b.add(variance, least)))


def _planes(lowering: Lowering, x: View) -> Value:
    """Reshape x from [N, C, …] to [N, C, S], where S is the product of the sizes of the other axes."""
    b = lowering.builder
    whole = x.elements(b)
    return b.reshape(whole, (*x.shape[:2], whole.type.elements // (x.shape[0] * x.shape[1])))
