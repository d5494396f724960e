"""Draws of seats and of their segments (contracts/src/AuditBoard.sol, libraries/DrawWords.sol).

A task has V seats. Each seat is drawn among the accounts that have no seat yet, so the seats' accounts are
distinct. Accounts are weighted by stake; a slot is one unit of stake. Each seat has its own q distinct
segments of 1 ... K.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from sim.mechanism.arrays import Floats, Indices

Segments = npt.NDArray[np.int32]

TRIES: Final = 32
"""Number of slots that a draw tries for each seat. If all of them belong to bound accounts, the seat stays empty."""
TRIES_OF_DRAW: Final = 256
"""Number of slots that a draw tries for all of its seats. The simulation ignores this limit (ASSUMPTIONS.md)."""
NOBODY: Final = -1
"""The account of an empty seat."""


class Draw(NamedTuple):
    """`accounts`: (V, rows) numbers of verifiers from 0, or NOBODY. `segments`: (q, V, rows) numbers from 1."""

    accounts: Indices
    segments: Segments


class Pool:
    """The registered accounts, by their slots."""

    def __init__(self, slots: Indices) -> None:
        """`slots`: the number of slots of each account, (accounts,)."""
        self._slots = np.append(slots, 0)  # NOBODY, the last one, has none.
        self._ends = np.cumsum(self._slots)
        self._total = int(self._ends[-1])
        self._holders = np.repeat(np.arange(len(slots)), slots)

    def seats(self, uniform: Floats, bound: Indices) -> Indices:
        """Draw the accounts of n seats one after the other. `uniform` holds n uniform numbers in [0, 1) for
        each row; its shape is (n, rows).

        `bound` holds the accounts that cannot be drawn, because they have a seat or were silent in one; its
        shape is (m, rows). A seat is empty with chance (share of the bound slots)^TRIES; otherwise its slot
        is uniform among the slots that are not bound. The distribution is the same as when slots are tried in
        turn.
        """
        found: Indices = np.full(uniform.shape, NOBODY, dtype=np.int64)
        taken = bound
        for seat, number in enumerate(uniform):
            free = self._total - self._slots[taken].sum(axis=0)
            empty = (1 - free / self._total) ** TRIES
            drawn = number >= empty
            place = ((number - empty) / np.where(drawn, 1 - empty, 1) * free).astype(np.int64)
            # Slots of bound accounts are skipped; the others are counted in the order of the accounts.
            for account in np.sort(taken, axis=0):
                place += self._slots[account] * (place >= self._ends[account] - self._slots[account])
            found[seat] = np.where(drawn, self._holders.take(place, mode="clip"), NOBODY)
            taken = np.concatenate([taken, found[seat : seat + 1]])
        return found


def distinct(uniform: Floats, segments: int) -> Segments:
    """Draw distinct numbers from 1 ... `segments` along the first axis, one for each number of `uniform`.

    All subsets have the same chance, by Floyd's algorithm (Bentley and Floyd, CACM 30(9), 1987), as in the
    contract: the j-th of q numbers is drawn from 1 ... t with t = segments - q + j, and is replaced by t if
    it was already taken. t itself is never taken, because all earlier numbers are smaller. Order within a
    subset has no meaning. Uniform numbers have 53 bits, so the chance of each of the t numbers is 1 / t with
    a relative error of less than t / 2^53.
    """
    each = len(uniform)
    taken = np.empty(uniform.shape, dtype=np.int32)
    for j, number in enumerate(taken):
        newest = segments - each + 1 + j
        number[:] = uniform[j] * newest
        number += 1
        for before in taken[:j]:
            # One comparison at a time: once replaced, a number differs from all earlier ones.
            np.copyto(number, newest, where=number == before)
    return taken
