"""Rounding to the numbers of a quantised model, as in quantisation-aware training."""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.capture.expansion.table import aten, expands


@expands(aten.fake_quantize_per_tensor_affine_cachemask.default)
def fake_quantise(x: Tensor, scale: float, zero: int, low: int, high: int) -> tuple[Tensor, Tensor]:
    """x rounded to the nearest number of the form scale * (k - zero), where k is an integer from `low` to
    `high`. The second result, for the gradient, is a mask of the elements that were not clipped.
    """
    return _rounded(
        x, torch.full((), scale, device=x.device), torch.full((), float(zero), device=x.device), low, high
    )


@expands(aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default)
def fake_quantise_by_tensors(
    x: Tensor, scale: Tensor, zero: Tensor, on: Tensor, low: int, high: int
) -> tuple[Tensor, Tensor]:
    """`fake_quantise` with the scale and the zero point as tensors; x unchanged where `on` is zero."""
    found, inside = _rounded(x, scale, zero, low, high)
    is_on = on != 0
    return torch.where(is_on, found, x), inside | ~is_on


@expands(aten.fake_quantize_per_channel_affine_cachemask.default)
def fake_quantise_channels(
    x: Tensor, scale: Tensor, zero: Tensor, axis: int, low: int, high: int
) -> tuple[Tensor, Tensor]:
    """`fake_quantise` with one scale and one zero point for each index along an axis."""
    shape = [1] * x.dim()
    shape[axis] = x.shape[axis]
    return _rounded(x, scale.view(shape), zero.view(shape), low, high)


def _rounded(x: Tensor, scale: Tensor, zero: Tensor, low: int, high: int) -> tuple[Tensor, Tensor]:
    zero = zero.to(x.dtype)
    whole = (x * (1 / scale)).round() + zero
    return (whole.clamp(low, high) - zero) * scale, (whole >= low) & (whole <= high)
