"""Which attestations a task has, and whether they are enough to settle (contracts/src/AuditBoard.sol, `satisfied`)."""

from __future__ import annotations

import numpy as np

from sim.mechanism.arrays import Flags, count
from sim.mechanism.draw import Draw, Segments


def attested(drawn: Draw, attests: Flags) -> Flags:
    """Duties that were attested, (q + 1, V, rows), from what was done in each seat, (V, rows)."""
    done: Flags = drawn.due & attests
    return done


def satisfied(drawn: Draw, done: Flags, matches: int) -> Flags:
    """Tell by row whether every drawn segment has its attestations.

    A of them, or all of the drawn ones where a segment other than K was drawn fewer than A times. Where fewer than A
    verifiers were drawn the contract draws more for segment K alone; here these are taken to do as the drawn ones did.
    """
    enough: Flags = (done == drawn.due).all(axis=(0, 1))
    partly = np.flatnonzero(~enough)
    if partly.size:
        segments, due = drawn.segments.take(partly, axis=2), drawn.due.take(partly, axis=2)
        enough[partly] = _counted(segments, due, done.take(partly, axis=2), matches)
    return enough


def _counted(segments: Segments, due: Flags, done: Flags, matches: int) -> Flags:
    """The count itself, (rows,): for each duty, how often its segment was drawn and attested."""
    _, seats, rows = segments.shape
    named, drawn, attests = (part.reshape(-1, rows) for part in (segments, due, done))
    right = np.ones(rows, dtype=np.bool_)
    for duty in named[seats - 1 :]:  # The first V all name segment K.
        same = named == duty
        right &= count(same & attests) >= np.minimum(count(same & drawn), matches)
    return right
