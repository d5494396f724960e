"""Draws of verifiers and segments, and who has to attest what (contracts/src/AuditBoard.sol).

A seat is one of the V draws. Its duties are segment K and q distinct segments; a verifier that is drawn twice, or draws
segment K among its own, has each (verifier, segment) once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sim.mechanism.arrays import Flags, Floats, Indices, count

Segments = npt.NDArray[np.int32]


class Draw(NamedTuple):
    """`verifiers`: (V, rows) numbers of verifiers from 0. `segments`: (q + 1, V, rows) numbers from 1, K first.
    `due`: (q + 1, V, rows), False where an earlier seat's duty is the same."""

    verifiers: Indices
    segments: Segments
    due: Flags

    @property
    def duties(self) -> npt.NDArray[np.uint8]:
        """How many duties each seat has, (V, rows)."""
        return count(self.due)


def complete(verifiers: Indices, segments: Segments, last: int) -> Draw:
    """Put segment K, `last`, before the (q, V, rows) drawn segments, and find duties that occur twice."""
    every = np.empty((len(segments) + 1, *verifiers.shape), dtype=np.int32)
    every[0], every[1:] = last, segments
    due = every != last
    due[0] = True
    twice = _twice(verifiers)
    if twice.size:
        due[:, :, twice] &= _first(verifiers.take(twice, axis=1), every.take(twice, axis=2))
    return Draw(verifiers, every, due)


def replaced(drawn: Draw, verifiers: Indices, silent: Flags, last: int) -> Draw:
    """The draw with other holders of its `silent` seats, (V, rows). Who has answered keeps its duties: of two seats
    with the same duty it is the answered one's, and not only the first one's, or an attestation would be lost.
    """
    due = drawn.due.copy()
    some: Flags = np.logical_or.reduce(silent, axis=0)
    rows = some.nonzero()[0]
    if rows.size:
        order = np.argsort(silent.take(rows, axis=1), axis=0, kind="stable")
        who = np.take_along_axis(verifiers.take(rows, axis=1), order, axis=0)
        segments = np.take_along_axis(drawn.segments[1:].take(rows, axis=2), order[None], axis=1)
        back = np.argsort(order, axis=0)[None]
        due[:, :, rows] = np.take_along_axis(complete(who, segments, last).due, back, axis=1)
    return Draw(verifiers, drawn.segments, due)


def by_account(verifiers: Indices, uniform: Floats) -> Floats:
    """One number for each account, (V, rows): that of its first seat. `uniform` is written to."""
    twice = _twice(verifiers)
    if twice.size:
        who = verifiers.take(twice, axis=1)
        first = np.stack([(who[: seat + 1] == who[seat]).argmax(axis=0) for seat in range(len(who))])
        uniform[:, twice] = np.take_along_axis(uniform.take(twice, axis=1), first, axis=0)
    return uniform


def _twice(verifiers: Indices) -> Indices:
    """Numbers of the rows in which somebody has two seats."""
    again = np.zeros(verifiers.shape[1], dtype=np.bool_)
    for step in range(1, len(verifiers)):
        again |= np.logical_or.reduce(verifiers[step:] == verifiers[:-step], axis=0)
    return again.nonzero()[0]


def _first(verifiers: Indices, segments: Segments) -> Flags:
    """Duties that no earlier seat of the same verifier has, (q + 1, V, n)."""
    first = np.ones(segments.shape, dtype=np.bool_)
    for seat in range(1, len(verifiers)):
        same = verifiers[:seat] == verifiers[seat]
        again = (segments[:, None, seat, None] == segments[None, :, :seat]) & same
        first[:, seat] = ~np.logical_or.reduce(again, axis=(1, 2))
    return first


def distinct(uniform: Floats, segments: int) -> Segments:
    """Distinct numbers of 1 ... `segments` along the first axis, a uniform subset, from as many numbers of 0 to 1.

    Floyd's, as in the contract: the j-th of q is drawn of 1 ... t with t = segments - q + j, and is t itself when it
    was taken before; t was not, for all before are smaller (Bentley and Floyd, CACM 30(9), 1987). Within a subset the
    order means nothing. A number of 0 to 1 has 53 bits, so chances are off by less than t / 2^53 of themselves.
    """
    each = len(uniform)
    taken = np.empty(uniform.shape, dtype=np.int32)
    for j, number in enumerate(taken):
        newest = segments - each + 1 + j
        number[:] = uniform[j] * newest
        number += 1
        for before in taken[:j]:
            # One comparison at a time: whoever was replaced equals none of the earlier ones any more.
            np.copyto(number, newest, where=number == before)
    return taken
