"""The chain's draw once more, from its seed: which verifier sits in which seat, and with which segments.

docs/encoding.md section 7, contracts/src/AuditBoard.sol and libraries/DrawWords.sol. The board keeps a duty once; the
engine thinks in seats. So seats are drawn again here, and `complete` must find the board's duties in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np

from protocol.numerics.reference.philox import block
from sim.mechanism.draw import Draw, complete

_MAX_TRIES = 64


def holders(slots: Sequence[int]) -> list[int]:
    """The verifier behind each slot: seats of 128 slots first, then of 64 and so on, each size as they registered.

    `slots` are those of each verifier, 1 to 255, of whom nobody resigned.
    """
    return [
        verifier
        for size in reversed(range(8))
        for verifier, owned in enumerate(slots)
        if owned >> size & 1
        for _ in range(1 << size)
    ]


def redraw(seed: bytes, slots: Sequence[int], seats: int, segments: int, each: int, matches: int) -> Draw:
    """V seats of q segments each; and, while fewer than A verifiers were drawn, seats for segment K alone."""
    words = _words(seed)
    held = holders(slots)
    each = min(each, segments)
    who: list[int] = []
    what: list[list[int]] = []
    for _ in range(seats):
        who.append(held[_below(words, len(held))])
        what.append(_distinct(words, segments, each))
    for _ in range(_MAX_TRIES):
        if len(set(who)) >= matches:
            break
        verifier = held[_below(words, len(held))]
        if verifier not in who:
            who.append(verifier)
            what.append([segments] * each)
    return complete(np.array(who)[:, None], np.array(what, dtype=np.int32).T[:, :, None], segments)


def _words(seed: bytes) -> Iterator[int]:
    key = int.from_bytes(seed[-4:], "big"), int.from_bytes(seed[-8:-4], "big")
    for number in count():
        yield from block((number, 0, 0, 0), key)


def _below(words: Iterator[int], bound: int) -> int:
    limit = (1 << 32) - (1 << 32) % bound
    return next(word for word in words if word < limit) % bound


def _distinct(words: Iterator[int], segments: int, each: int) -> list[int]:
    """Floyd's algorithm, as the contract runs it."""
    chosen: list[int] = []
    for top in range(segments - each + 1, segments + 1):
        number = _below(words, top) + 1
        chosen.append(top if number in chosen else number)
    return chosen
