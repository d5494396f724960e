"""Walks: a walk names a chunk by the turns from the root of a tensor's tree down to a leaf (audit.md section 7).

A walk is 32 bits, read from the most significant one: 0 goes left, 1 goes right, and bits left over at a
leaf are ignored. So every walk names one chunk of a tensor of any size. The bits that are used are the
chunk's `turns` (`digests`). Pure.
"""

from __future__ import annotations

from typing import Final

from protocol.commitments.digests import turns
from protocol.commitments.errors import ProofError
from protocol.commitments.geometry import split

WALK_BITS: Final = 32
"""Bits of a walk. These are enough, because a tree of chunks has depth 30 at most."""


def chunk_at(count: int, walk: int) -> int:
    """The chunk at which a walk ends in a tensor of `count` chunks. Raises ProofError for an invalid walk or count."""
    if not 0 <= walk < 1 << WALK_BITS or not 1 <= count <= 1 << WALK_BITS:
        raise ProofError(
            "walk",
            expected=f"{WALK_BITS} bits, in a tree of 1 to 2^{WALK_BITS} leaves",
            got=f"{walk} in one of {count}",
            remedy="take it from the chain",
        )
    first, size, bit = 0, count, WALK_BITS
    while size > 1:
        left, bit = split(size), bit - 1
        if walk >> bit & 1:
            first, size = first + left, size - left
        else:
            size = left
    return first


def walk_to(count: int, index: int, rest: int = 0) -> int:
    """A walk to chunk `index` of a tensor of `count` chunks. The low bits that the walk does not use are
    taken from `rest`. Raises DigestError if the tensor has no such chunk.
    """
    turned, depth = turns(count, index)
    below = WALK_BITS - depth
    return turned << below | rest & ((1 << below) - 1)
