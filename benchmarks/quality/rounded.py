"""Emulates convolutions whose operands have any number of bits: torch computes them, with operands rounded as
in arithmetic.md section 3.

Elements share exponents in the same groups as in `protocol.program.library.convolution`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn import grad

Bits = tuple[int, int]
SAMPLE, CHANNEL, ROW = (1, 2, 3), (0, 2, 3), (1, 2, 3)


def rounded(model: nn.Module, table: Sequence[Bits]) -> nn.Module:
    """The model with rounded convolutions. `table` has the bits of the forward pass, the input gradient and
    the weight gradient.
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.forward = _forward(module, table)  # type: ignore[method-assign]
    return model


def _forward(module: nn.Conv2d, table: Sequence[Bits]) -> Any:
    windows = (module.stride, module.padding, module.dilation, module.groups)

    def forward(x: Tensor) -> Tensor:
        y: Tensor = _Convolution.apply(x, module.weight, windows, table)  # type: ignore[no-untyped-call]
        return y if module.bias is None else y + module.bias.reshape(-1, 1, 1)

    return forward


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, windows: Any, table: Sequence[Bits]) -> Tensor:
        ctx.save_for_backward(x, w)
        ctx.windows, ctx.table = windows, table
        px, pw = table[0]
        return F.conv2d(_round(x, SAMPLE, px), _round(w, ROW, pw), None, *windows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (g,) = gradients
        x, w = ctx.saved_tensors
        groups = ctx.windows[3]
        pg, pw = ctx.table[1]
        by_input = _round(w.reshape(groups, -1, *w.shape[1:]), (1, 3, 4), pw).reshape(w.shape)
        at_x = grad.conv2d_input(x.shape, by_input, _round(g, SAMPLE, pg), *ctx.windows)
        pg, px = ctx.table[2]
        at_w = grad.conv2d_weight(_round(x, CHANNEL, px), w.shape, _round(g, CHANNEL, pg), *ctx.windows)
        return at_x, at_w, None, None


def _round(x: Tensor, axes: tuple[int, ...], p: int) -> Tensor:
    """Round x to p bits: m_p(x) 2^(e-p) of arithmetic.md section 3, with one exponent e for all elements
    along `axes`.
    """
    largest = x.abs().amax(axes, keepdim=True).clamp(min=2.0**-96)
    scale = torch.exp2((p - torch.frexp(largest).exponent).to(x.dtype))
    return (x * scale).round() / scale
