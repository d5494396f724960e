"""Which attestations a task has, and whether they are enough to settle (contracts/src/AuditBoard.sol, `satisfied`)."""

from __future__ import annotations

import numpy as np

from sim.mechanism.arrays import Flags, Indices
from sim.mechanism.draw import Draw


def attested(drawn: Draw, attests: Flags) -> Flags:
    """Duties that were attested, (rows, V, q + 1), from what was done in each seat, (rows, V)."""
    done: Flags = drawn.due & attests[:, :, None]
    return done


def satisfied(drawn: Draw, done: Flags, matches: int) -> Flags:
    """Tell by row whether every drawn segment has its attestations.

    A of them, or all of the drawn ones where a segment other than K was drawn fewer than A times. Where fewer than A
    verifiers were drawn the contract draws more for segment K alone; here these are taken to do as the drawn ones did.
    """
    enough: Flags = (done == drawn.due).all(axis=(1, 2))
    partly = np.flatnonzero(~enough)
    if partly.size:
        enough[partly] = _count(drawn.segments[partly], drawn.due[partly], done[partly], matches)
    return enough


def _count(segments: Indices, due: Flags, done: Flags, matches: int) -> Flags:
    rows = len(segments)
    named, drawn, attests = (part.reshape(rows, -1) for part in (segments, due, done))
    same = named[:, :, None] == named[:, None, :]
    of_drawn = (same & drawn[:, None, :]).sum(axis=2)
    of_attested = (same & attests[:, None, :]).sum(axis=2)
    right: Flags = (of_attested >= np.minimum(of_drawn, matches)).all(axis=1)
    return right
