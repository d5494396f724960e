"""Dropout masks. The program draws them with a counter-based generator, so that nobody can choose them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from protocol.numerics.philox import mask
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define


def _keep_mask(key: Tensor, step: Tensor, *, below: int, stream: int, **shape: int) -> Tensor:
    return mask(key, step, stream, _sizes(shape), below)


@define("keep_mask", kernel=_keep_mask)
def keep_mask(b: Builder, key: Value, step: Value, *, below: int, stream: int, **shape: int) -> Value:
    """A mask, f32 [d0, d1, …]: 1 with probability `below` / 2^32, else 0.

    `key` is u32 [2], `step` is u32 [], and `below` is from 0 to 2^32 - 1.
    """
    words = b.philox(key, step, stream, _sizes(shape))
    return b.cast(b.lt(words, b.constant(DType.U32, (), below)), DType.F32)


def axes(shape: Sequence[int]) -> dict[str, int]:
    """A shape as the attributes d0, d1, …"""
    return {f"d{axis}": size for axis, size in enumerate(shape)}


def _sizes(shape: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(shape[f"d{axis}"] for axis in range(len(shape)))
