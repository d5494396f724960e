"""Locks of the tasks in flight while the next task is played: drawn accounts, and solvers' stakes.

A task's locks last until `overlap` - 1 more tasks are over, however the task ends. The only exception is a
stake that a conviction takes, which is lost at once. Tasks in flight at the same time never draw the same
account, as in contracts/src/AuditBoard.sol, and never share a stake.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.draw import NOBODY


class Seated:
    """Accounts that tasks in flight have drawn, for seats or for looks. Those that were silent are suspended;
    the others still hold their seat or look.
    """

    def __init__(self, overlap: int) -> None:
        self._drawn: deque[Indices] = deque(maxlen=overlap - 1)

    def add(self, drawn: Indices) -> None:
        """Add the accounts that one task has drawn, and free the accounts that the oldest task had drawn.
        `drawn` has shape (m, rows) and may include NOBODY.
        """
        if self._drawn.maxlen:
            ordered = np.sort(drawn, axis=0)
            self._drawn.append(ordered[(ordered != NOBODY).any(axis=1)])

    def accounts(self, rows: int) -> Indices:
        """Accounts that cannot be drawn, (n, rows), padded with NOBODY."""
        return np.concatenate([np.empty((0, rows), dtype=np.int64), *self._drawn])


class Stakes:
    """Stakes that solvers have locked in tasks in flight."""

    def __init__(self, overlap: int, stake: int, solvers: slice, rows: int) -> None:
        """`solvers`: the accounts of all solvers."""
        self._stake = stake
        self._first = solvers.start
        self._every = np.arange(rows)
        self._tasks: deque[tuple[Indices, Flags]] = deque(maxlen=overlap - 1)
        self.locked: Amounts = np.zeros((solvers.stop - solvers.start, rows), dtype=np.int64)
        """Locked stake by solver, (solvers, rows) token units."""

    def add(self, accounts: Indices, locked: Flags) -> None:
        """Lock the stake of one task's solver in each row where `locked` is true; free the oldest task's stakes."""
        if not self._tasks.maxlen:
            return
        if len(self._tasks) == self._tasks.maxlen:
            self._book(*self._tasks.popleft(), -self._stake)
        self._tasks.append((accounts, locked))
        self._book(accounts, locked, self._stake)

    def _book(self, accounts: Indices, locked: Flags, amount: int) -> None:
        rows = self._every[locked]
        self.locked[accounts[rows] - self._first, rows] += amount
