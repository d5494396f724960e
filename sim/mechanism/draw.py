"""Draws of seats, and the segments of a seat (contracts/src/AuditBoard.sol, libraries/DrawWords.sol).

A task has V seats. Each is drawn among the accounts that have no seat, weighted by their stake: a slot is a unit of
it. So the seats' accounts are distinct. Each seat has its own q distinct segments of 1 ... K.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sim.mechanism.arrays import Floats, Indices

Segments = npt.NDArray[np.int32]

TRIES: Final = 32
"""Slots that a draw tries for each seat; a seat whose slots all belong to bound accounts stays empty."""
NOBODY: Final = -1
"""The account of an empty seat."""


class Draw(NamedTuple):
    """`accounts`: (V, rows) numbers of verifiers from 0, or NOBODY. `segments`: (q, V, rows) numbers from 1."""

    accounts: Indices
    segments: Segments


class Pool:
    """The registered accounts, by their slots."""

    def __init__(self, slots: Indices) -> None:
        """`slots` of each account, (accounts,)."""
        self._slots = np.append(slots, 0)  # NOBODY, the last one, has none.
        self._ends = np.cumsum(self._slots)
        self._total = int(self._ends[-1])
        self._holders = np.repeat(np.arange(len(slots)), slots)

    def seats(self, uniform: Floats, bound: Indices) -> Indices:
        """The accounts of n seats, one after the other, from as many numbers of 0 to 1, (n, rows).

        `bound`, (m, rows), are accounts that cannot be drawn: they have a seat, or were silent in one. A seat is
        empty with chance (share of the bound slots)^TRIES, otherwise its slot is a uniform one of the others: the
        same as trying slots in turn.
        """
        found: Indices = np.full(uniform.shape, NOBODY, dtype=np.int64)
        taken = bound
        for seat, number in enumerate(uniform):
            free = self._total - self._slots[taken].sum(axis=0)
            empty = (1 - free / self._total) ** TRIES
            drawn = number >= empty
            place = ((number - empty) / np.where(drawn, 1 - empty, 1) * free).astype(np.int64)
            # Slots are counted without those of bound accounts, in the order of the accounts.
            for account in np.sort(taken, axis=0):
                place += self._slots[account] * (place >= self._ends[account] - self._slots[account])
            found[seat] = np.where(drawn, self._holders.take(place, mode="clip"), NOBODY)
            taken = np.concatenate([taken, found[seat : seat + 1]])
        return found


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
            # One comparison at a time: a replaced account equals none of the earlier ones any more.
            np.copyto(number, newest, where=number == before)
    return taken
