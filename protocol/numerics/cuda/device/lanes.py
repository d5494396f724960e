"""Messages between lanes (protocol/program/library/lanes.py): the counterpart of native/lanes_body.h.

A Triton program handles GROUPS groups of 64 blocks of BLOCK numbers, as tiles [GROUPS, 64, BLOCK]. A message
has one exponent for each group. For each block, it has one number and the index of this number in the block.
If BLOCK is 1, the message has no indices. If an index is not a place within the block, the block adds
nothing.
"""

from __future__ import annotations

import triton
import triton.language as tl

from protocol.numerics.cuda.device.scalar import (
    bits_of,
    canonical,
    exponent_of,
    factor_of,
    from_bits,
    magnitude,
    op_maximum,
    op_minimum,
    op_scale,
    round_sum,
    whole,
)

BITS, DROPPED, LARGEST = tl.constexpr(13), tl.constexpr(6), tl.constexpr(127)
POINT, HALF = tl.constexpr(7), tl.constexpr(32)  # BITS - DROPPED; half a unit of the kept bits
MOST_SCALE = tl.constexpr(250)  # limit of |k| in `op_scale`: 127 * 2^-250 rounds to zero, 2^250 to infinity


@triton.jit
def _blocks(groups, GROUPS: tl.constexpr):
    """This program's groups [GROUPS], whether each group exists, and the indices of the groups' blocks
    [GROUPS, 64].
    """
    group = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    return group, group < groups, group[:, None] * 64 + tl.arange(0, 64)[None, :]


@triton.jit
def _numbers(block, there, BLOCK: tl.constexpr):
    """The places [1, 1, BLOCK] within a block, the offsets of all numbers, and which numbers exist."""
    place = tl.arange(0, BLOCK)[None, None, :]
    return place, block[:, :, None] * BLOCK + place, there[:, None, None]


@triton.jit
def _sent(v, e, index, place):
    """The numbers of each block. The number at the place `index` is v 2^(e - 7), rounded once; the others
    are 0. e - 7 wraps in i32.
    """
    k = tl.minimum(tl.maximum(e - POINT, -MOST_SCALE), MOST_SCALE)
    number = op_scale(v.to(tl.float32), k[:, None])
    return tl.where(place == index[:, :, None], number[:, :, None], 0.0)


@triton.jit
def emit(
    base, local, feedback, index, value, exponent, kept, decay, top, groups,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write a message and the next feedback. If BLOCK is 1, no index is written."""
    group, there, block = _blocks(groups, GROUPS)
    place, at, here = _numbers(block, there, BLOCK)
    change = tl.load(base + at, mask=here, other=0.0) - tl.load(local + at, mask=here, other=0.0)
    wanted = canonical(decay * tl.load(feedback + at, mask=here, other=0.0) + change)
    # Keys order by magnitude (NaN is largest), then by place, lower places first; the last bit is the sign.
    key = (magnitude(wanted).to(tl.int64) << 7) | ((63 - place) << 1) | ((bits_of(wanted) >> 31) & 1)
    key = tl.max(key, axis=2)
    chosen = 63 - ((key >> 1) & 63).to(tl.int32)
    number = from_bits((key >> 7).to(tl.int32) | ((key & 1).to(tl.int32) << 31))
    number = op_maximum(op_minimum(number, top), -top)
    e = exponent_of(tl.max(magnitude(number), axis=1))
    m = tl.where(e[:, None] == 32767, 0, whole(number, factor_of(e, BITS)[:, None]))
    v = tl.minimum((m + HALF) >> DROPPED, LARGEST)
    tl.store(kept + at, canonical(wanted - _sent(v, e, chosen, place)), mask=here)
    tl.store(exponent + group, e, mask=there)
    tl.store(value + block, v.to(tl.int8), mask=there[:, None])
    if BLOCK > 1:
        tl.store(index + block, chosen.to(tl.uint8), mask=there[:, None])


@triton.jit
def _read(index, value, exponent, start, group, there, block, place, limit, BLOCK: tl.constexpr):
    """The terms that one message adds to this program's numbers. The message begins at block `start`."""
    e = tl.minimum(tl.load(exponent + (start >> 6) + group, mask=there, other=0), limit)
    at, here = block + start, there[:, None]
    v = tl.load(value + at, mask=here, other=0)
    chosen = tl.load(index + at, mask=here, other=0).to(tl.int32) if BLOCK > 1 else tl.zeros_like(v)
    return _sent(v, e, chosen, place)


@triton.jit
def absorb(
    base, feedback, own_index, own_value, own_exponent, index, value, exponent, moved, kept,
    divisor, returned, rate, limit, blocks, end, GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the next base to `moved` and the next feedback to `kept`.

    The messages lie one after another, each with `blocks` blocks; `end` is the number of blocks in all of
    them. `divisor` and `returned` are pointers, so the host reads nothing back.
    """
    group, there, block = _blocks(blocks >> 6, GROUPS)
    place, at, here = _numbers(block, there, BLOCK)
    largest = tl.zeros((GROUPS, 64, BLOCK), tl.int32)
    for start in range(0, end, blocks):
        sent = _read(index, value, exponent, start, group, there, block, place, limit, BLOCK)
        largest = tl.maximum(largest, magnitude(sent))
    e = exponent_of(largest)
    factor = factor_of(e, 30)
    total = tl.zeros((GROUPS, 64, BLOCK), tl.int64)
    for start in range(0, end, blocks):
        sent = _read(index, value, exponent, start, group, there, block, place, limit, BLOCK)
        total += whole(sent, factor).to(tl.int64)
    mean = tl.div_rn(round_sum(total, e), tl.load(divisor) + tl.zeros_like(factor))
    tl.store(moved + at, canonical(tl.load(base + at, mask=here, other=0.0) - rate * mean), mask=here)
    own = _read(own_index, own_value, own_exponent, 0, group, there, block, place, limit, BLOCK)
    back = tl.load(returned) * own
    tl.store(kept + at, canonical(tl.load(feedback + at, mask=here, other=0.0) + back), mask=here)
