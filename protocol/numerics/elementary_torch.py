"""Elementary functions on torch tensors: the lists of `elementary`, evaluated operation by operation.

On the CPU a compiled function or `elementary_blocks` does it instead, with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from protocol.numerics import elementary, elementary_blocks, elementwise
from protocol.numerics.kernels.fused import Map, fused_for
from protocol.numerics.types import DType, canonical

COMPILED = {
    getattr(elementary, name): Map[name.upper()] for name in elementary.__all__ if name != "Operations"
}
"""The compiled function of each list."""


class TorchOperations:
    """`Operations` on torch tensors. NaN is made canonical at the end, not after each step: no list uses the bits of a
    NaN but for its sign, and what that is set on is a NaN again."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def f32(self, bits: int) -> Tensor:
        return self.i32(bits - (bits >> 31 << 32)).view(torch.float32)

    def i32(self, value: int) -> Tensor:
        return torch.full((), value, dtype=torch.int32, device=self._device)

    def u32(self, value: int) -> Tensor:
        return self.f32(value).view(torch.int32)

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.add(x, y)

    def sub(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sub(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.mul(x, y)

    def div(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.div(x, y)

    def sqrt(self, x: Tensor) -> Tensor:
        return elementwise.sqrt(x)

    def neg(self, x: Tensor) -> Tensor:
        return torch.neg(x)

    def abs(self, x: Tensor) -> Tensor:
        return torch.abs(x)

    def minimum(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.minimum(x, y) + 0.0

    def maximum(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.maximum(x, y) + 0.0

    def rint(self, x: Tensor) -> Tensor:
        return torch.round(x)

    def scale(self, x: Tensor, k: Tensor) -> Tensor:
        return elementwise.scale(x, k)

    def power_of_two(self, k: Tensor) -> Tensor:
        return torch.bitwise_left_shift(k + 127, 23).view(torch.float32)

    def lt(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.lt(x, y)

    def eq(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.eq(x, y)

    def select(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return torch.where(condition, x, y)

    def eq_i32(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.eq(x, y)

    def select_i32(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return torch.where(condition, x, y)

    def add_i32(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.add(x, y)

    def sub_i32(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.sub(x, y)

    def and_i32(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.bitwise_and(x, y)

    def shr_i32(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.bitwise_right_shift(x, y)

    def bits_i32(self, x: Tensor) -> Tensor:
        return elementwise.bits(x)

    def from_bits_i32(self, x: Tensor) -> Tensor:
        return elementwise.from_bits(x)

    def bits_u32(self, x: Tensor) -> Tensor:
        return elementwise.bits(x)

    def from_bits_u32(self, x: Tensor) -> Tensor:
        return elementwise.from_bits(x)

    def and_u32(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.bitwise_and(x, y)

    def or_u32(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.bitwise_or(x, y)

    def f32_to_i32(self, x: Tensor) -> Tensor:
        return elementwise.cast(x, DType.F32, DType.I32)

    def i32_to_f32(self, x: Tensor) -> Tensor:
        return elementwise.cast(x, DType.I32, DType.F32)


def exp_f32(x: Tensor) -> Tensor:
    """`exp` on an f32 tensor of any shape and device."""
    return evaluate(elementary.exp, x)


def log_f32(x: Tensor) -> Tensor:
    """`log` on an f32 tensor of any shape and device."""
    return evaluate(elementary.log, x)


def tanh_f32(x: Tensor) -> Tensor:
    """`tanh` on an f32 tensor of any shape and device."""
    return evaluate(elementary.tanh, x)


def sigmoid_f32(x: Tensor) -> Tensor:
    """`sigmoid` on an f32 tensor of any shape and device."""
    return evaluate(elementary.sigmoid, x)


def erf_f32(x: Tensor) -> Tensor:
    """`erf` on an f32 tensor of any shape and device."""
    return evaluate(elementary.erf, x)


def sin_f32(x: Tensor) -> Tensor:
    """`sin` on an f32 tensor of any shape and device."""
    return evaluate(elementary.sin, x)


def cos_f32(x: Tensor) -> Tensor:
    """`cos` on an f32 tensor of any shape and device."""
    return evaluate(elementary.cos, x)


def rsqrt_f32(x: Tensor) -> Tensor:
    """`rsqrt` on an f32 tensor of any shape and device."""
    return evaluate(elementary.rsqrt, x)


def evaluate(function: Callable[[Any, Any], Any], x: Tensor, compiled: Map | None = None) -> Tensor:
    """A list of one argument, as `elementary` has them, on an f32 tensor of any shape and device.

    `compiled` names its compiled form if it is not one of `elementary`'s own.
    """
    which, fused = compiled or COMPILED.get(function), fused_for(x)
    if which is not None and fused is not None:
        return fused.map(which, x)
    if x.device.type != "cpu":
        return canonical(function(TorchOperations(x.device), x))
    source = x.detach().contiguous()
    result = torch.empty_like(source)
    elementary_blocks.evaluate(
        function, source.view(-1).numpy(), result.view(-1).numpy(), torch.get_num_threads()
    )
    return result
