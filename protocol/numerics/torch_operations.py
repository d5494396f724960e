"""`elementary.Operations` on torch tensors of any shape and device."""

from __future__ import annotations

import torch
from torch import Tensor

from protocol.numerics import elementwise
from protocol.numerics.types import DType


class TorchOperations:
    """`Operations` on torch tensors.

    Callers make NaN canonical at the end, not after each operation. That is enough, because in an operation
    list the bits of a NaN affect only results that are NaN too. For example, a list may copy the sign of a
    NaN, but only to another NaN.
    """

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
