"""Draws of verifiers and segments, and who has to attest what (contracts/src/AuditBoard.sol).

A seat is one of the V draws. Its duties are segment K and q distinct segments; a verifier that is drawn twice, or draws
segment K among its own, has each (verifier, segment) once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.mechanism.arrays import Flags, Indices


class Draw(NamedTuple):
    """`verifiers`: (rows, V) numbers of verifiers from 0. `segments`: (rows, V, q + 1) numbers from 1, K first.
    `due`: (rows, V, q + 1), False where an earlier seat's duty is the same."""

    verifiers: Indices
    segments: Indices
    due: Flags

    def at(self, rows: Indices) -> Draw:
        """The draws of some of the rows."""
        return Draw(self.verifiers[rows], self.segments[rows], self.due[rows])


def draw(
    generator: np.random.Generator, rows: int, verifiers: int, seats: int, segments: int, each: int
) -> Draw:
    """Draw `seats` of `verifiers` with replacement, and `each` distinct ones of `segments` for each."""
    who = generator.integers(0, verifiers, size=(rows, seats))
    return complete(who, distinct(generator, (rows, seats), segments, each), segments)


def complete(verifiers: Indices, segments: Indices, last: int) -> Draw:
    """Add segment K, `last`, to the (rows, V, q) drawn segments, and find duties that occur twice."""
    rows, seats = verifiers.shape
    all_segments = np.concatenate([np.full((rows, seats, 1), last), segments], axis=2)
    due = np.ones(all_segments.shape, dtype=np.bool_)
    due[:, :, 1:] = segments != last
    for later in range(1, seats):
        for earlier in range(later):
            rows_twice = np.flatnonzero(verifiers[:, later] == verifiers[:, earlier])
            if rows_twice.size:
                mine, other = all_segments[rows_twice, later], all_segments[rows_twice, earlier]
                due[rows_twice, later] &= ~(mine[:, :, None] == other[:, None, :]).any(axis=2)
    return Draw(verifiers, all_segments, due)


def distinct(generator: np.random.Generator, shape: tuple[int, ...], segments: int, each: int) -> Indices:
    """`each` distinct numbers of 1 ... `segments` in every place of `shape`; the last axis holds them, ascending.

    The j-th is drawn among those that are left and stepped over the smaller ones that were taken before it, so that
    every draw takes the same count of random numbers.
    """
    taken = np.empty((each, *shape), dtype=np.int64)
    for j in range(each):
        number = generator.integers(1, segments - j + 1, size=shape)
        for smaller in taken[:j]:
            number += number >= smaller
        taken[j] = number
        for i in range(j, 0, -1):  # Insert: what was taken stays ascending.
            lower, upper = np.minimum(taken[i - 1], taken[i]), np.maximum(taken[i - 1], taken[i])
            taken[i - 1], taken[i] = lower, upper
    return np.moveaxis(taken, 0, -1)
