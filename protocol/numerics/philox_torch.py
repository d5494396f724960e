"""Philox4x32-10 counter-based random words in torch only: arithmetic.md section 7, encoding.md opcode 0x0901.

Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). The generator has no
state: a word depends only on the key, the step, the stream and its index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from protocol.numerics.elementwise import cast, unsigned
from protocol.numerics.types import DType

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
MASK = 0xFFFFFFFF


def philox(key: Tensor, step: Tensor, stream: int, shape: Sequence[int]) -> Tensor:
    """As `protocol.numerics.philox.philox`."""
    count = math.prod(shape)
    block = torch.arange((count + 3) // 4, dtype=torch.int64, device=key.device)
    key_words = unsigned(key.reshape(2))
    counter = (block & MASK, block >> 32, unsigned(step.reshape(1)), torch.full_like(block, stream & MASK))
    words = torch.stack(rounds(counter, (key_words[0], key_words[1])), dim=-1)
    return cast(words.reshape(-1)[:count].reshape(tuple(shape)), DType.I64, DType.U32)


def rounds(counter: tuple[Tensor, ...], key: tuple[Tensor, Tensor]) -> list[Tensor]:
    """The four words that the ten rounds give for four counter words and two key words. All words are i64 in
    [0, 2^32), and they broadcast together.
    """
    c0, c1, c2, c3 = torch.broadcast_tensors(*counter)
    k0, k1 = key
    for _ in range(ROUNDS):
        high0, low0 = _multiply(c0, MULTIPLIERS[0])
        high1, low1 = _multiply(c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + KEY_STEPS[0]) & MASK, (k1 + KEY_STEPS[1]) & MASK
    return [c0, c1, c2, c3]


def _multiply(x: Tensor, multiplier: int) -> tuple[Tensor, Tensor]:
    """The high and the low 32-bit word of the 64-bit product of x and `multiplier`. The product is an i64 and
    may wrap, but it has the same bits as the u64 product.
    """
    product = x * multiplier
    return (product >> 32) & MASK, product & MASK
