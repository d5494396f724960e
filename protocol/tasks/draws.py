"""Draws of seats and looks from the beacon's words: audit.md section 2. The contracts compute the same.

A draw's seed is a hash of the beacon's word and of data that the chain fixed before the word. Philox makes
random words from the seed. The accounts in seats follow from the draw's seed and the board's registrations.
The segments of a seat follow only from the seed of the task's first draw, so a redrawn seat keeps its
segments. Pure. This module and contracts/src/libraries/DrawWords.sol are both tested with
`tests/vectors/draws.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Final

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from protocol.numerics.reference.philox import block
from protocol.tasks.task import RATE_OF_ALL

WORD: Final = 1 << 32


def seed_of(chain_id: int, board: str, task: int, root: bytes, number: int, word: bytes) -> bytes:
    """Seed of a task's draw `number`, counted from 1. `board` is the audit board's address, `root` the root
    of the segment tree, and `word` the beacon's word for the draw's round.
    """
    types = ["uint256", "address", "uint256", "bytes32", "uint8", "bytes32"]
    return keccak(encode(types, [chain_id, board, task, root, number, word]))


def segments_of(first: bytes, seat: int, segments: int, each: int) -> list[int]:
    """The segments of a seat, in the seat's order: `each` distinct numbers out of 1 … `segments`. `first` is
    the seed of the task's first draw.
    """
    return distinct(words(keccak(encode(["bytes32", "uint256"], [first, seat]))), segments, each)


def picks(seed: bytes, candidates: Iterable[int], look_chance: int, room: int) -> list[int]:
    """The slots that a draw of looks picks, in ascending order. Each candidate is picked with chance
    `look_chance` / 10,000, but at most `room` of them are.

    The draw's `seed` gives one number for each candidate, beginning with the lowest slot, until no room is
    left. The numbers that follow are used to draw accounts (contracts/src/libraries/Picks.sol).
    """
    stream, found = words(seed), list[int]()
    for slot in sorted(candidates):
        if len(found) == room:
            break
        if below(stream, RATE_OF_ALL) < look_chance:
            found.append(slot)
    return found


def words(seed: bytes) -> Iterator[int]:
    """The endless random words of a seed, 32 bits each: Philox, with the last two 32-bit words of the seed as
    its key.
    """
    key = int.from_bytes(seed[-4:], "big"), int.from_bytes(seed[-8:-4], "big")
    for number in count():
        yield from block((number, 0, 0, 0), key)


def below(stream: Iterator[int], bound: int) -> int:
    """A uniform number below `bound`, by rejection sampling."""
    limit = WORD - WORD % bound
    return next(word for word in stream if word < limit) % bound


def distinct(stream: Iterator[int], segments: int, each: int) -> list[int]:
    """Distinct numbers out of 1 … `segments`: `each` of them, or all if there are fewer (Floyd's algorithm)."""
    chosen: list[int] = []
    for top in range(segments - min(each, segments) + 1, segments + 1):
        number = below(stream, top) + 1
        chosen.append(top if number in chosen else number)
    return chosen
