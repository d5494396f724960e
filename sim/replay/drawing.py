"""Recomputes the chain's draws from the beacon's words: the accounts of the seats, and the looks picked.

It follows audit.md section 2, contracts/src/AuditBoard.sol and libraries/Pool.sol. `protocol.tasks.draws`
computes seeds, segments and picks. This module finds the accounts, assuming that nobody resigns during a
task. Tests compare the accounts that this module and the board find with the table `fills` of
tests/vectors/draws.json.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from protocol.tasks.draws import below, picks, words
from protocol.tasks.task import RATE_OF_ALL
from sim.mechanism.draw import NOBODY, TRIES, TRIES_OF_DRAW

_LEVELS = 16


def holders(slots: Sequence[int]) -> list[int]:
    """The verifier of each slot: highest level first, and within a level in order of registration.

    `slots` is each verifier's number of slots, a power of two.
    """
    return [
        verifier
        for level in reversed(range(_LEVELS))
        for verifier, owned in enumerate(slots)
        if owned == 1 << level
        for _ in range(owned)
    ]


def looked(seed: bytes, candidates: Sequence[int], chance: int, room: int) -> tuple[list[int], Iterator[int]]:
    """Recompute the first draw of a level. Returns the slots that it picks among the candidates, in ascending
    order, and the rest of the stream of words.
    """
    picked, stream = picks(seed, candidates, chance, room), words(seed)
    # Once there is no room left, no further number is taken.
    last = max(candidates) if len(picked) < room else max(picked, default=-1)
    for _ in range(sum(slot <= last for slot in candidates)):
        below(stream, RATE_OF_ALL)
    return picked, stream


def found(stream: Iterator[int], slots: Sequence[int], seats: int, bound: Collection[int]) -> list[int]:
    """The accounts of the `seats` requested seats, in order. A seat gets NOBODY if all 32 slots tried for it
    belong to accounts that are bound or already drawn, if the draw has already tried 256 slots, or if there
    are no slots.
    """
    held, taken = holders(slots), set(bound)
    every = (held[below(stream, len(held))] for _ in range(TRIES_OF_DRAW if held else 0))
    drawn: list[int] = []
    for _ in range(seats):
        tried = islice(every, TRIES)
        drawn.append(next((verifier for verifier in tried if verifier not in taken), NOBODY))
        taken.add(drawn[-1])
    return drawn
