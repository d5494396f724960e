"""Walks: chunks named without a tensor's size, by turns from the root of its tree down to a leaf.

A walk is 32 bits, from the most significant one on: 0 goes left, 1 right, and bits that remain at a leaf are ignored.
So every walk names one chunk of every tensor; its first bits, as many as the chunk is deep, are the chunk's `turns`
(audit.md section 7). Pure.
"""

from __future__ import annotations

from typing import Final

from protocol.commitments.digests import turns
from protocol.commitments.errors import ProofError
from protocol.commitments.geometry import split

WALK_BITS: Final = 32
"""A tree of chunks is at most 30 deep."""


def chunk_at(count: int, walk: int) -> int:
    """The chunk that a walk ends at, of a tensor of `count` chunks. Raises ProofError for what is not a walk."""
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
    """A walk to chunk `index` of a tensor of `count`; its bits below the leaf are those of `rest`. Raises DigestError
    where the tensor has no such chunk.
    """
    turned, depth = turns(count, index)
    below = WALK_BITS - depth
    return turned << below | rest & ((1 << below) - 1)
