"""Draws of verifiers and segments, and who has to attest what (contracts/src/AuditBoard.sol).

A seat is one of the V draws. Its duties are segment K and q distinct segments; a verifier that is drawn twice, or draws
segment K among its own, has each (verifier, segment) once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sim.mechanism.arrays import Flags, Indices, count

Segments = npt.NDArray[np.int32]


class Draw(NamedTuple):
    """`verifiers`: (V, rows) numbers of verifiers from 0. `segments`: (q + 1, V, rows) numbers from 1, K first.
    `due`: (q + 1, V, rows), False where an earlier seat's duty is the same."""

    verifiers: Indices
    segments: Segments
    due: Flags

    def first(self, rows: int) -> Draw:
        """The draws of the first rows."""
        return Draw(self.verifiers[:, :rows], self.segments[:, :, :rows], self.due[:, :, :rows])

    @property
    def duties(self) -> npt.NDArray[np.uint8]:
        """How many duties each seat has, (V, rows)."""
        return count(self.due)


def draw(
    generator: np.random.Generator, rows: int, verifiers: int, seats: int, segments: int, each: int
) -> Draw:
    """Draw `seats` of `verifiers` with replacement, and `each` distinct ones of `segments` for each."""
    who = generator.integers(0, verifiers, size=(seats, rows))
    return complete(who, distinct(generator, (seats, rows), segments, each), segments)


def complete(verifiers: Indices, segments: Segments, last: int) -> Draw:
    """Put segment K, `last`, before the (q, V, rows) drawn segments, and find duties that occur twice."""
    every = np.empty((len(segments) + 1, *verifiers.shape), dtype=np.int32)
    every[0], every[1:] = last, segments
    due = every != last
    due[0] = True
    for later in range(1, len(verifiers)):
        for earlier in range(later):
            twice = np.flatnonzero(verifiers[later] == verifiers[earlier])
            if twice.size:
                mine, other = every[:, later, twice], every[:, earlier, twice]
                due[:, later, twice] &= ~(mine[:, None] == other[None, :]).any(axis=1)
    return Draw(verifiers, every, due)


def distinct(generator: np.random.Generator, shape: tuple[int, ...], segments: int, each: int) -> Segments:
    """`each` distinct numbers of 1 ... `segments` for every place of `shape`, (each, *shape): a uniform subset.

    Floyd's, as in the contract: the j-th number is drawn of 1 ... t with t = segments - each + j, and is t itself when
    it was taken before; t was not, for all before are smaller (Bentley and Floyd, CACM 30(9), 1987). Within a subset
    the order means nothing.
    """
    taken = np.empty((each, *shape), dtype=np.int32)
    for j in range(each):
        newest = segments - each + 1 + j
        number = generator.integers(1, newest, size=shape, dtype=np.int32, endpoint=True)
        for before in taken[:j]:
            # One comparison at a time: whoever was replaced equals none of the earlier ones any more.
            np.copyto(number, newest, where=number == before)
        taken[j] = number
    return taken
