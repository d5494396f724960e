"""Draws the dataset rows that a step uses. The numbers come from a counter-based generator, so that nobody
can choose the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from protocol.numerics.elementwise import cast, mulhi
from protocol.numerics.philox import philox
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define
from protocol.program.library.integers import quotient
from protocol.program.library.rows import count_up
from protocol.program.library.scan import scan

ROUNDS: Final = 32
"""Swap-or-not rounds: the probability that a row never moves is 2^-32."""
FIRST_FACTOR: Final = 0x7FEB352D
SECOND_FACTOR: Final = 0x2C1B3C6D
"""The multiplier of a round's second product. Both multipliers are odd, so that the products are invertible."""
SHIFT: Final = 15


def _draw_batch(key: Tensor, step: Tensor, *, batch: int, rows: int, stream: int) -> Tensor:
    return _below(philox(key, step, stream, (batch,)), rows)


@define("draw_batch", kernel=_draw_batch)
def draw_batch(b: Builder, key: Value, step: Value, *, batch: int, rows: int, stream: int) -> Value:
    """Row numbers in 0 … rows-1, i32 [batch], drawn with replacement; `key` is u32 [2], `step` u32 [].

    A row number is floor(word * rows / 2^32) for a random 32-bit word, so a row's probability differs from 1
    / rows by less than 2^-32.
    """
    words = b.philox(key, step, stream, (batch,))
    return b.cast(b.mulhi(words, b.constant(DType.U32, (), rows)), DType.I32)


def _draw_from_epoch(key: Tensor, step: Tensor, *, batch: int, rows: int, stream: int) -> Tensor:
    batches = rows // batch
    epoch = torch.div(step, batches, rounding_mode="floor")
    words = philox(key, epoch, stream, (2, ROUNDS))
    row = torch.arange(batch, dtype=torch.int32, device=key.device).add_((step - epoch * batches) * batch)
    for pivot, salt in zip(_below(words[0], rows), words[1], strict=True):
        other = torch.remainder(pivot - row, rows)
        mixed = (torch.maximum(row, other) ^ salt).mul_(FIRST_FACTOR)
        mixed = (mixed ^ (mixed >> SHIFT)).mul_(SECOND_FACTOR)
        row = torch.where(mixed < 0, other, row)
    return row


@define("draw_from_epoch", kernel=_draw_from_epoch)
def draw_from_epoch(b: Builder, key: Value, step: Value, *, batch: int, rows: int, stream: int) -> Value:
    """Row numbers in 0 … rows-1, i32 [batch], without repetition within an epoch.

    `key` is u32 [2], `step` is u32 [] below 2^31, and `rows` is below 2^31. An epoch has `rows` div `batch`
    steps. The remaining rows, `rows` mod `batch` in number, are left out; which rows these are differs
    between epochs. The order is a permutation by swap-or-not (Hoang, Morris and Rogaway, CRYPTO 2012), which
    works for any number of rows without rejection: in each round, row x and its partner, (pivot - x) mod
    rows, are swapped or not.
    """
    batches = rows // batch
    number = b.cast(step, DType.I32)
    epoch = quotient(b, number, batches)
    words = b.philox(key, b.cast(epoch, DType.U32), stream, (2, ROUNDS))
    pivots, salts = (b.reshape(b.slice(words, 0, k, k + 1), (ROUNDS,)) for k in range(2))
    pivots = b.cast(b.mulhi(pivots, b.constant(DType.U32, (), rows)), DType.I32)
    first = b.mul(b.sub(number, b.mul(epoch, b.i32(batches))), b.i32(batch))

    def swapped(
        b: Builder, carried: Sequence[Value], keys: Sequence[Value], _: Sequence[Value]
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        (row,), (pivot, salt) = carried, keys
        other = b.sub(pivot, row)
        other = b.select(b.lt(other, b.i32(0)), b.add(other, b.i32(rows)), other)
        mixed = b.xor(b.select(b.lt(row, other), other, row), b.cast(salt, DType.I32))
        mixed = b.mul(mixed, b.i32(FIRST_FACTOR))
        mixed = b.mul(b.xor(mixed, b.shr(mixed, b.i32(SHIFT))), b.i32(SECOND_FACTOR))
        return (b.select(b.lt(mixed, b.i32(0)), other, row),), ()

    start = b.add(count_up(b, batch), first)
    carried, _ = scan(b, swapped, (start,), (pivots, salts), ())
    row: Value = carried[0]
    return row


def _below(words: Tensor, rows: int) -> Tensor:
    """floor(word * rows / 2^32), in i32."""
    bound = torch.full((), rows, dtype=torch.int32, device=words.device)
    return cast(mulhi(words, bound), DType.U32, DType.I32)
