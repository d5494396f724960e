"""RFC 9162 section 2.1 as the RFC states it: recursive, over a list of leaf data, and slow.

This is a second implementation of trees and proofs for the tests. It shares no code with
`protocol.commitments`.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256


def largest_power_below(n: int) -> int:
    k = 1
    while 2 * k < n:
        k *= 2
    return k


def mth(leaves: Sequence[bytes]) -> bytes:
    if not leaves:
        return sha256().digest()
    if len(leaves) == 1:
        return sha256(b"\x00" + leaves[0]).digest()
    k = largest_power_below(len(leaves))
    return sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def path(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = largest_power_below(len(leaves))
    if index < k:
        return [*path(index, leaves[:k]), mth(leaves[k:])]
    return [*path(index - k, leaves[k:]), mth(leaves[:k])]


def proof(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    return subproof(m, leaves, True)


def subproof(m: int, leaves: Sequence[bytes], whole: bool) -> list[bytes]:
    n = len(leaves)
    if m == n:
        return [] if whole else [mth(leaves)]
    k = largest_power_below(n)
    if m <= k:
        return [*subproof(m, leaves[:k], whole), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


def nodes(lo: int, size: int) -> list[tuple[int, int]]:
    """All nodes of the subtree over the leaves `lo` to `lo + size - 1`. Each node is given as its first leaf
    and its number of leaves.
    """
    if size == 1:
        return [(lo, 1)]
    k = largest_power_below(size)
    return [(lo, size), *nodes(lo, k), *nodes(lo + k, size - k)]


def descendants(leaves: Sequence[bytes], levels: int) -> list[bytes]:
    if levels == 0 or len(leaves) == 1:
        return [mth(leaves)]
    k = largest_power_below(len(leaves))
    return descendants(leaves[:k], levels - 1) + descendants(leaves[k:], levels - 1)
