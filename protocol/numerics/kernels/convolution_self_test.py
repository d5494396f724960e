"""The self-test of convolutions for each shape class (`convolution_shape_classes`): arithmetic.md section 8.

`plain` computes the expected result: it quantises the operands, adds up one matrix product for each element
of the kernel, and rounds once. These sums of integers are exact in float64: with 20 x 20 bits, a sum may have
up to 2^13 terms, and no class of those widths has as many. If torch flushes subnormals, right results are
refused, but wrong results never pass. The rows, samples or channels of each operand alternate between three
kinds: ordinary values, values at the limit of every width, and half zeros with half tiny values. One row,
sample or channel also has infinities.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Protocol

import torch
from torch import Tensor

from protocol.numerics.elementwise import add
from protocol.numerics.kernels.convolution_shape_classes import AT_INPUT, AT_WEIGHT, FORWARD, ConvolutionCall
from protocol.numerics.rows import exponent, round_exact, row_scale, whole_in_row
from protocol.numerics.types import canonical

KINDS = ("forward", "at input", "at weight")


class Convolutions(Protocol):
    """The tested interface, that of `convolution.Convolution`."""

    def run(self, call: ConvolutionCall, left: Tensor, image: Tensor, bias: Tensor | None) -> Tensor:
        """One convolution of f32 operands."""


def failure_of_class(convolution: Convolutions, call: ConvolutionCall) -> str | None:
    """A message about wrong bits in one call, or None if every bit is right."""
    left, image, bias = operands(call)
    found = convolution.run(call, left, image, bias).view(torch.int32)
    if torch.equal(found, plain(call, left, image, bias).view(torch.int32)):
        return None
    size = f"x {list(call.x_shape())}, w {list(call.w_shape())} in {call.groups} groups"
    return f"{KINDS[call.kind]} with {size}, stride {call.stride}, padding {call.padding} has wrong bits"


def operands(call: ConvolutionCall) -> tuple[Tensor, Tensor, Tensor | None]:
    """Deterministic test operands of a call, f32: the left operand, the image, and the bias or None."""
    left = call.g_shape() if call.kind == AT_WEIGHT else call.w_shape()
    image = call.g_shape() if call.kind == AT_INPUT else call.x_shape()
    bias = hard((left[0], 1), 0).reshape(-1) if call.bias else None
    return hard(left, 1 if call.kind else 0), hard(image, 1 if call.kind == AT_WEIGHT else 0), bias


def hard(shape: tuple[int, ...], axis: int) -> Tensor:
    """f32 of `shape`. Along `axis`, slices of three kinds follow each other in turn: ordinary values, values
    at the limit, and half zeros with half tiny values.

    The sixth slice also has infinities.
    """
    length = math.prod(shape)
    tables = (t.repeat(-(-length // TABLE))[:length].reshape(shape).transpose(0, axis) for t in _tables())
    ordinary, limit = tables
    x = ordinary.clone()
    x[1::3] = limit[1::3]
    x[2::3].clamp_(min=0.0).mul_(2.0**-80)
    x[5:6, ..., ::5] = torch.inf
    return x.transpose(0, axis).contiguous()


TABLE = 65_521
"""The number of elements after which the values repeat: a prime, so that no two rows begin alike."""


@cache
def _tables() -> tuple[Tensor, Tensor]:
    """Two deterministic tables, f32 [TABLE]: values in [-4, 4), and values of magnitude 1 - 2^-24."""
    k = torch.arange(TABLE, dtype=torch.int64, device="cpu")
    words = ((k * 2654435761) ^ (k * 40503 << 7)) & 0xFFFFFF
    limit = torch.where(k % 7 < 5, 1, -1).to(torch.float32) * (1 - 2.0**-24)
    return words.to(torch.float32) * 2.0**-21 - 4.0, limit


def plain(call: ConvolutionCall, left: Tensor, image: Tensor, bias: Tensor | None) -> Tensor:
    """The expected result of a call: f32, canonical. Its sums must be exact in float64: for sums of K terms,
    K * 2^(sum of `call.bits`) must be at most 2^53.
    """
    axes = {FORWARD: (0, 0), AT_INPUT: (1, 0), AT_WEIGHT: (1, 1)}[call.kind]
    groups, inputs, outputs = call.groups, call.inputs, call.outputs
    if call.kind == AT_INPUT:  # in every group, the rows of w are its input channels
        grouped = left.reshape(groups, outputs, -1, *call.kernel).transpose(1, 2).flatten(0, 1)
        el, ml = _integers(grouped, 0, call.bits[0])
        ml = ml.reshape(groups, inputs, outputs, *call.kernel).transpose(1, 2).flatten(0, 1)
    else:
        el, ml = _integers(left, axes[0], call.bits[0])
    ei, mi = _integers(image, axes[1], call.bits[1])
    if call.kind == AT_WEIGHT:
        exact = _sums(call, x=mi, g=ml)
        ei = ei.reshape(groups, 1, inputs).expand(groups, outputs, inputs).reshape(-1, inputs, 1, 1)
        el = el.reshape(-1, 1, 1, 1)
    else:
        exact = _sums(call, w=ml, **{"x" if call.kind == FORWARD else "g": mi})
        ei, el = ei.reshape(-1, 1, 1, 1), el.reshape(1, -1, 1, 1)
    result = round_exact(exact, row_scale(ei, call.bits[1]), row_scale(el, call.bits[0]))
    return canonical(result if bias is None else add(result, bias.reshape(-1, 1, 1)))


def _integers(x: Tensor, axis: int, p: int) -> tuple[Tensor, Tensor]:
    """Exponents of the slices along `axis`, and the quantised x as float64 integers."""
    if x.numel() == 0:
        return torch.zeros(x.shape[axis], dtype=torch.int32, device="cpu"), x.to(torch.float64)
    e = exponent(x.transpose(0, axis).reshape(x.shape[axis], -1))
    shape = [-1 if a == axis else 1 for a in range(x.dim())]
    return e.reshape(-1), whole_in_row(x, e.reshape(shape), p).to(torch.float64)


def _sums(
    call: ConvolutionCall, *, x: Tensor | None = None, w: Tensor | None = None, g: Tensor | None = None
) -> Tensor:
    """Compute the one of x, w and g that is None from the other two. It is a sum of matrix products in
    float64, one for each element of the kernel.
    """
    n, groups, inputs, outputs = call.samples, call.groups, call.inputs, call.outputs
    shape = call.g_shape() if g is None else call.w_shape() if w is None else call.x_shape()
    made = torch.zeros(shape, dtype=torch.float64, device="cpu")
    xs = (made if x is None else x).reshape(n, groups, inputs, *call.size)
    gs = (made if g is None else g).reshape(n, groups, outputs, *call.result)
    ws = (made if w is None else w).reshape(groups, outputs, inputs, *call.kernel)
    for ky in range(call.kernel[0]):
        for kx in range(call.kernel[1]):
            (gy, xy), (gx, xx) = _met(call, 0, ky), _met(call, 1, kx)
            seen, at, w_here = xs[..., xy, xx], gs[..., gy, gx], ws[..., ky, kx]
            if g is None:
                at += torch.einsum("ngcyx,goc->ngoyx", seen, w_here)
            elif w is None:
                w_here += torch.einsum("ngcyx,ngoyx->goc", seen, at)
            else:
                seen += torch.einsum("ngoyx,goc->ngcyx", at, w_here)
    return made


def _met(call: ConvolutionCall, axis: int, k: int) -> tuple[slice, slice]:
    """Two slices along an axis, for element k of the kernel. The first has the positions of g at which this
    element lies inside x and not in the padding. The second has the positions of x at which the element then
    lies.
    """
    stride, start = call.stride[axis], k * call.dilation[axis] - call.padding[axis]
    first = max(0, -(start // stride))
    count = max(0, min(call.result[axis], (call.size[axis] - 1 - start) // stride + 1) - first)
    at = first * stride + start
    return slice(first, first + count), slice(at, at + (count - 1) * stride + 1 if count else at, stride)
