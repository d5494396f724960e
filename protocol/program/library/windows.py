"""Windows that slide over the last two axes, for convolutions and poolings, forward and backward.

All windows are one strided view of a padded tensor. For an input gradient, the output's gradient is spread
apart by the stride, with a fill in between, and is read through windows of stride 1. Bodies and kernels both
work like this, so functions come in two forms: one for a builder and one for tensors.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from protocol.program.builder import Builder, Value
from protocol.program.types import contiguous_strides


@dataclass(frozen=True)
class Sliding:
    """Kernel, stride, padding (on both sides) and dilation along the height and the width, in elements."""

    kernel_y: int
    kernel_x: int
    stride_y: int
    stride_x: int
    padding_y: int
    padding_x: int
    dilation_y: int
    dilation_x: int

    def attributes(self) -> dict[str, int]:
        """The fields as attributes of a library function."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def unit(self) -> Sliding:
        """The windows of stride 1 through which an input gradient reads the spread output gradient."""
        return Sliding(self.kernel_y, self.kernel_x, 1, 1, 0, 0, self.dilation_y, self.dilation_x)

    def reach(self) -> tuple[int, int]:
        """The distance from the first to the last element of a window: (kernel - 1) dilation."""
        return (self.kernel_y - 1) * self.dilation_y, (self.kernel_x - 1) * self.dilation_x

    def count(self, height: int, width: int) -> tuple[int, int]:
        """Number of windows that fit into the padded height and width."""
        reach_y, reach_x = self.reach()
        return (
            (height + 2 * self.padding_y - reach_y - 1) // self.stride_y + 1,
            (width + 2 * self.padding_x - reach_x - 1) // self.stride_x + 1,
        )

    def padded(self, height: int, width: int, count: tuple[int, int]) -> tuple[int, int]:
        """The height and width that hold the padded tensor and `count` windows, which may extend beyond the
        padding.
        """
        reach_y, reach_x = self.reach()
        return (
            max(height + 2 * self.padding_y, (count[0] - 1) * self.stride_y + reach_y + 1),
            max(width + 2 * self.padding_x, (count[1] - 1) * self.stride_x + reach_x + 1),
        )


def padded(b: Builder, x: Value, s: Sliding, count: tuple[int, int], fill: float) -> Value:
    """x [N, C, H, W] with enough `fill` around it for `count` windows."""
    height, width = s.padded(x.shape[2], x.shape[3], count)
    shape = (*x.shape[:2], height, width)
    return x if shape == x.shape else b.pad(x, shape, (0, 0, s.padding_y, s.padding_x), fill)


def padded_tensor(x: Tensor, s: Sliding, count: tuple[int, int], fill: float) -> Tensor:
    """`padded` on tensors."""
    height, width = s.padded(x.shape[2], x.shape[3], count)
    bottom, right = height - x.shape[2] - s.padding_y, width - x.shape[3] - s.padding_x
    return F.pad(x, (s.padding_x, right, s.padding_y, bottom), value=fill).contiguous()


def window_strides(x: tuple[int, ...], s: Sliding) -> dict[str, int]:
    """Strides, in elements, of windows in a padded tensor. The argument `x` is the tensor's shape [N, C, H,
    W].

    In the result, `n` leads to the next sample and `c` to the next channel. `y` and `x` lead to the next
    window along the height and the width, `ky` and `kx` to the next element of a window.
    """
    n, c, h, w = contiguous_strides(x)
    return {
        "n": n,
        "c": c,
        "y": h * s.stride_y,
        "x": w * s.stride_x,
        "ky": h * s.dilation_y,
        "kx": w * s.dilation_x,
    }


def spread(b: Builder, g: Value, s: Sliding, height: int, width: int, fill: float) -> Value:
    """Spread g [N, C, OH, OW], which has one element per window, to [N, C, H + reach, W + reach].

    Positions that receive no element of g are `fill`. Let ky and kx count the places of a window's kernel
    from its end. If place (ky, kx) lies on element (y, x) of the input, the window's element of g is at
    position (y + ky dilation, x + kx dilation) of the result.
    """
    n, c, rows, columns = g.shape
    reach_y, reach_x = s.reach()
    if (s.stride_y, s.stride_x) != (1, 1):
        apart = b.pad(
            b.reshape(g, (n, c, rows, 1, columns, 1)),
            (n, c, rows, s.stride_y, columns, s.stride_x),
            [0] * 6,
            fill,
        )
        g = b.reshape(apart, (n, c, rows * s.stride_y, columns * s.stride_x))
    g, low_y = _cut(b, g, 2, reach_y - s.padding_y, height + reach_y)
    g, low_x = _cut(b, g, 3, reach_x - s.padding_x, width + reach_x)
    shape = (n, c, height + reach_y, width + reach_x)
    return g if shape == g.shape else b.pad(g, shape, (0, 0, low_y, low_x), fill)


def _cut(b: Builder, g: Value, axis: int, low: int, size: int) -> tuple[Value, int]:
    """Drop the elements of g that lie outside positions 0 … size-1 along an axis. The first element of g is
    at position `low`, which may be negative. Return what is left, and the position of its first element.
    """
    start, stop = max(0, -low), min(g.shape[axis], size - low)
    whole = (start, stop) == (0, g.shape[axis])
    return (g if whole else b.slice(g, axis, start, stop)), max(0, low)


def spread_tensor(g: Tensor, s: Sliding, height: int, width: int, fill: float) -> Tensor:
    """`spread` on tensors."""
    n, c, rows, columns = g.shape
    reach_y, reach_x = s.reach()
    out = torch.full((n, c, height + reach_y, width + reach_x), fill, dtype=g.dtype, device=g.device)
    low_y, low_x = reach_y - s.padding_y, reach_x - s.padding_x
    # Windows may start before the input or end after it: if `low` is negative, the first ones are dropped.
    first_y, first_x = max(0, -(low_y // s.stride_y)), max(0, -(low_x // s.stride_x))
    inside = g[:, :, first_y:, first_x:]
    target = out[:, :, low_y + first_y * s.stride_y :: s.stride_y, low_x + first_x * s.stride_x :: s.stride_x]
    rows, columns = min(inside.shape[2], target.shape[2]), min(inside.shape[3], target.shape[3])
    target[:, :, :rows, :columns] = inside[:, :, :rows, :columns]
    return out
