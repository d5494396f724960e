"""Messages between lanes, the machines that train one model together: compressed differences of parameters.

The parameters are one row of N numbers, f32 [N]. `emit` makes a message of a lane's changes: from every
`block` numbers it sends the one of largest magnitude, as 8 bits under an exponent that 64 numbers share. The
rest stays in the lane's error feedback and is sent later. `absorb` adds up the messages of all lanes,
exactly.

| tensor of a message | type | content |
|---|---|---|
| index, if `block` > 1 | u8 [N / block] | place of the number in each block |
| value | u8 [N / block] | v from -128 to 127, as its low 8 bits |
| exponent | i32 [N / block / 64] | e: a number is v 2^(e - 7) |
| count | f32 [] | 1; 0 if the lane does not count, and then all tensors are zeros |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from protocol.numerics import elementwise, reductions
from protocol.numerics.kernels.fused import SHARED
from protocol.numerics.kernels.fused_dispatch import fused_for
from protocol.numerics.rows import exponent, quantise
from protocol.numerics.sums import sum_f32
from protocol.numerics.types import DType
from protocol.program.builder import Builder, Value
from protocol.program.library.function import define
from protocol.program.library.rows import count_up, sum_last

BITS, DROPPED = 13, 6
"""Bits of a quantised number, and the number of low bits that a message omits."""
POINT = BITS - DROPPED
LARGEST = 127
BYTE = 256
BLOCKS = (1, 8, 16, 32, 64)
"""Supported block sizes: one number of each block is sent."""


def largest_below(most_exponent: int) -> float:
    """The largest f32 below 2^most_exponent."""
    return (1 - 2.0**-24) * 2.0**most_exponent


def per_message(block: int) -> int:
    """Number of tensors in a message; if `block` is 1, there is no index."""
    return 4 if block > 1 else 3


# emit


def _emit(
    base: Tensor, local: Tensor, feedback: Tensor, *, block: int, decay: float, most_exponent: int
) -> tuple[Tensor, ...]:
    fused = fused_for(base)
    if fused is not None:
        return fused.emit((base, local, feedback), block, decay, largest_below(most_exponent))
    share = torch.full((), decay, dtype=torch.float32, device=base.device)
    wanted = elementwise.add(elementwise.mul(share, feedback), elementwise.sub(base, local))
    rows = wanted.reshape(-1, block)
    index = reductions.argmax(rows.abs())
    value = rows.gather(1, index.to(torch.int64)).reshape(-1, SHARED)
    top = torch.full((), largest_below(most_exponent), dtype=torch.float32, device=base.device)
    value = elementwise.maximum(elementwise.minimum(value, top), -top)
    e = exponent(value)
    whole = (quantise(value, e, BITS) + (1 << DROPPED - 1)) >> DROPPED
    whole = whole.clamp(max=LARGEST)
    sent = _spread(whole, e, index, block)
    message = ((whole & BYTE - 1).to(torch.uint8).reshape(-1), e.reshape(-1))
    kept = elementwise.sub(wanted, sent)
    return (*([index.to(torch.uint8).reshape(-1)] if block > 1 else []), *message, kept)


@define("lane_emit", kernel=_emit)
def emit(
    b: Builder, base: Value, local: Value, feedback: Value, *, block: int, decay: float, most_exponent: int
) -> tuple[Value, ...]:
    """A message without its count, and the next feedback, f32 [N]. The inputs `base`, `local` and `feedback`
    are f32 [N], too; N is a multiple of 64 * `block`.

    `base` holds the parameters at the beginning of the round, `local` those after this lane's steps. The
    value to send is decay * feedback + (base - local). Before a number is rounded to 8 bits, it is clamped to
    a magnitude below 2^most_exponent.
    """
    wanted = b.add(b.mul(b.constant(DType.F32, (), decay), feedback), b.sub(base, local))
    blocks = base.type.elements // block
    if block > 1:
        index = b.reshape(b.argmax(b.abs(b.reshape(wanted, (blocks, block)))), (blocks,))
        first = b.mul(count_up(b, blocks), b.i32(block))
        value = b.gather(wanted, b.add(first, index))
    else:
        value = wanted
    top = largest_below(most_exponent)
    value = b.minimum(value, b.constant(DType.F32, (), top))
    value = b.reshape(b.maximum(value, b.constant(DType.F32, (), -top)), (blocks // SHARED, SHARED))
    e = b.exponent(value)
    whole = b.shr(b.add(b.quantise(value, e, BITS), b.i32(1 << DROPPED - 1)), b.i32(DROPPED))
    whole = b.select(b.lt(b.i32(LARGEST), whole), b.i32(LARGEST), whole)
    numbers = b.reshape(_numbers(b, whole, e), (blocks,))
    sent = _placed(b, index if block > 1 else None, numbers, block)
    byte = b.reshape(b.cast(b.and_(whole, b.i32(BYTE - 1)), DType.U8), (blocks,))
    message = (byte, b.reshape(e, (blocks // SHARED,)))
    return (*([b.cast(index, DType.U8)] if block > 1 else []), *message, b.sub(wanted, sent))


# absorb


def _absorb(
    base: Tensor,
    feedback: Tensor,
    lane: Tensor,
    *messages: Tensor,
    block: int,
    rate: float,
    most_exponent: int,
) -> tuple[Tensor, Tensor]:
    of_own = per_message(block) - 1
    own, inbox = messages[:of_own], _inbox(messages[of_own:], block)
    counts = [message[-1] for message in inbox]
    mine = torch.zeros((), dtype=torch.float32, device=base.device)
    total = mine
    for number, count in enumerate(counts):
        total = elementwise.add(total, count)
        mine = torch.where(lane == number, count, mine)
    divisor = elementwise.maximum(total, torch.ones_like(total))
    returned = elementwise.sub(torch.ones_like(mine), mine)
    share = torch.full((), rate, dtype=torch.float32, device=base.device)
    fused = fused_for(base)
    if fused is not None:
        scalars = (rate, *fused.scalars(divisor, returned))
        return fused.absorb(
            (base, feedback), [own, *(m[:-1] for m in inbox)], (block, most_exponent), scalars
        )
    decoded = [_decoded(message[:-1], block, most_exponent) for message in inbox]
    summed = sum_f32(torch.stack(decoded, 1)).reshape(-1)
    moved = elementwise.sub(base, elementwise.mul(share, elementwise.div(summed, divisor)))
    kept = elementwise.add(feedback, elementwise.mul(returned, _decoded(own, block, most_exponent)))
    return moved, kept


@define("lane_absorb", kernel=_absorb)
def absorb(
    b: Builder,
    base: Value,
    feedback: Value,
    lane: Value,
    *messages: Value,
    block: int,
    rate: float,
    most_exponent: int,
) -> tuple[Value, Value]:
    """The next base and feedback, f32 [N], from the present ones and the messages of 1 … 16 lanes.

    `lane`, i32 [], is this lane's number, counted from 0. `messages` holds this lane's last message without
    its count, then the messages of all lanes in order. Exponents in the messages that are above
    `most_exponent` are clamped to it.

    The next base is base - rate * (total / members). Here total is the sum of the numbers that all lanes
    sent, computed exactly and then rounded once. members is the sum of the lanes' counts, but at least 1. The
    result of every further operation is rounded too. The next feedback is feedback + (1 - own count) * own
    message. So if this lane's message does not count, its numbers return to the feedback.
    """
    of_own = per_message(block) - 1
    own, inbox = messages[:of_own], _inbox(messages[of_own:], block)
    zero, one = b.constant(DType.F32, (), 0.0), b.constant(DType.F32, (), 1.0)
    total = mine = zero
    for number, message in enumerate(inbox):
        total = b.add(total, message[-1])
        mine = b.select(b.eq(lane, b.i32(number)), message[-1], mine)
    columns = [b.reshape(_sent(b, m[:-1], block, most_exponent), (base.type.elements, 1)) for m in inbox]
    summed = b.reshape(sum_last(b, b.concat(columns, 1)), base.shape)
    mean = b.div(summed, b.maximum(total, one))
    moved = b.sub(base, b.mul(b.constant(DType.F32, (), rate), mean))
    return moved, b.add(feedback, b.mul(b.sub(one, mine), _sent(b, own, block, most_exponent)))


def _inbox(messages: Sequence[Any], block: int) -> list[Sequence[Any]]:
    each = per_message(block)
    return [messages[k : k + each] for k in range(0, len(messages), each)]


# messages to numbers


def _numbers(b: Builder, whole: Value, e: Value) -> Value:
    return b.scale(b.i32_to_f32(whole), b.sub(e, b.i32(POINT)))


def _placed(b: Builder, index: Value | None, numbers: Value, block: int) -> Value:
    """f32 [N] with the [N / block] numbers at their places, and zero elsewhere."""
    if index is None:
        return numbers
    blocks = numbers.type.elements
    here = b.eq(b.reshape(count_up(b, block), (1, block)), b.reshape(index, (blocks, 1)))
    placed = b.select(here, b.reshape(numbers, (blocks, 1)), b.constant(DType.F32, (), 0.0))
    return b.reshape(placed, (blocks * block,))


def _sent(b: Builder, message: Sequence[Value], block: int, most_exponent: int) -> Value:
    """The numbers that a message without its count contributes to the sum: f32 [N]."""
    byte, e = message[-2:]
    rows = (e.type.elements, SHARED)
    e = b.select(b.lt(b.i32(most_exponent), e), b.i32(most_exponent), e)
    whole = b.reshape(b.cast(byte, DType.I32), rows)
    whole = b.select(b.lt(b.i32(LARGEST), whole), b.sub(whole, b.i32(BYTE)), whole)
    numbers = b.reshape(_numbers(b, whole, b.reshape(e, (rows[0], 1))), byte.shape)
    return _placed(b, b.cast(message[0], DType.I32) if block > 1 else None, numbers, block)


def _decoded(message: Sequence[Tensor], block: int, most_exponent: int) -> Tensor:
    byte, e = message[-2:]
    whole = byte.view(torch.int8).to(torch.int32).reshape(-1, SHARED)
    index = message[0].to(torch.int32).reshape(-1, 1) if block > 1 else None
    return _spread(whole, e.clamp(max=most_exponent).reshape(-1, 1), index, block)


def _spread(whole: Tensor, e: Tensor, index: Tensor | None, block: int) -> Tensor:
    numbers = elementwise.scale(whole.to(torch.float32), e - POINT).reshape(-1, 1)
    if block == 1 or index is None:
        return numbers.reshape(-1)
    here = torch.arange(block, dtype=torch.int32, device=whole.device) == index.reshape(-1, 1)
    return torch.where(here, numbers, 0.0).reshape(-1)
