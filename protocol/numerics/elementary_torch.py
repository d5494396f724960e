"""Elementary functions on torch tensors: the lists of `elementary`, evaluated operation by operation."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from protocol.numerics import elementary, elementwise
from protocol.numerics.types import DType, canonical

BLOCK = 1 << 16
"""Elements of a block: 256 KiB of f32. Temporaries of 2^20 elements take half as long again, in page faults."""


class TorchOperations:
    """`Operations` on torch tensors. NaN is made canonical by `exp_f32` and `log_f32`, not after each step: no
    operation of the lists but `bits_i32` can tell NaNs apart, and `log` does not use its result for a NaN."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def f32(self, bits: int) -> Tensor:
        return torch.tensor(bits, dtype=torch.int64, device=self._device).to(torch.int32).view(torch.float32)

    def i32(self, value: int) -> Tensor:
        return torch.tensor(value, dtype=torch.int32, device=self._device)

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

    def f32_to_i32(self, x: Tensor) -> Tensor:
        return elementwise.cast(x, DType.F32, DType.I32)

    def i32_to_f32(self, x: Tensor) -> Tensor:
        return elementwise.cast(x, DType.I32, DType.F32)


def exp_f32(x: Tensor) -> Tensor:
    """`exp` on an f32 tensor of any shape and device."""
    return _in_blocks(elementary.exp, x)


def log_f32(x: Tensor) -> Tensor:
    """`log` on an f32 tensor of any shape and device."""
    return _in_blocks(elementary.log, x)


def tanh_f32(x: Tensor) -> Tensor:
    """`tanh` on an f32 tensor of any shape and device."""
    return _in_blocks(elementary.tanh, x)


def sigmoid_f32(x: Tensor) -> Tensor:
    """`sigmoid` on an f32 tensor of any shape and device."""
    return _in_blocks(elementary.sigmoid, x)


def erf_f32(x: Tensor) -> Tensor:
    """`erf` on an f32 tensor of any shape and device."""
    return _in_blocks(elementary.erf, x)


def sin_f32(x: Tensor) -> Tensor:
    """`sin` on an f32 tensor of any shape and device."""
    return _in_blocks(elementary.sin, x)


def cos_f32(x: Tensor) -> Tensor:
    """`cos` on an f32 tensor of any shape and device."""
    return _in_blocks(elementary.cos, x)


def rsqrt_f32(x: Tensor) -> Tensor:
    """`rsqrt` on an f32 tensor of any shape and device."""
    return _in_blocks(elementary.rsqrt, x)


def _in_blocks(function: Callable[[TorchOperations, Tensor], Tensor], x: Tensor) -> Tensor:
    """Evaluate a list block by block on the CPU, where its twenty temporaries then stay in cache."""
    o = TorchOperations(x.device)
    if x.device.type != "cpu" or x.numel() <= BLOCK:
        return canonical(function(o, x))
    blocks = [canonical(function(o, block)) for block in x.reshape(-1).split(BLOCK)]
    return torch.cat(blocks).reshape(x.shape)
