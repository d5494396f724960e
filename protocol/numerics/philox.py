"""Philox random words and masks, compiled if possible: arithmetic.md section 7, encoding.md opcode 0x0901.

Programs turn the words into batches, or into other masks than those of `mask`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from protocol.numerics import philox_torch
from protocol.numerics.elementwise import unsigned
from protocol.numerics.kernels import philox as kernel


def philox(key: Tensor, step: Tensor, stream: int, shape: Sequence[int]) -> Tensor:
    """u32 tensor of `shape`: the element with flat index i is word i mod 4 of
    Philox4x32-10(counter = (i div 4 low, i div 4 high, step, stream), key).

    `key` is u32 [2], `step` u32 with one element (any rank), both held in int32; `stream` is below 2^32.
    """
    found = kernel.words(key, step, stream, shape)
    return philox_torch.philox(key, step, stream, shape) if found is None else found


def mask(key: Tensor, step: Tensor, stream: int, shape: Sequence[int], below: int) -> Tensor:
    """f32 tensor of `shape`: 1 where the word of `philox` is less than `below` (0 … 2^32 - 1), else 0."""
    found = kernel.mask(key, step, stream, shape, below)
    if found is not None:
        return found
    return (unsigned(philox_torch.philox(key, step, stream, shape)) < below).to(torch.float32)
