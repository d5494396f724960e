"""Everybody's tokens in the vault, for all markets at once (contracts/src/StakeVault.sol).

Locks that a task opens and closes are booked net: a round ends with none of them open. What stays locked for good
(verifiers' registrations) is in `locked`; `sim.engine.flight` counts the stakes of tasks in flight.
"""

from __future__ import annotations

import numpy as np

from sim.errors import ParameterError
from sim.mechanism.arrays import MOST, Amounts, Indices


def book(table: Amounts, rows: Indices, accounts: Indices | int, amounts: Amounts) -> None:
    """Add to places of a (accounts, rows) table.

    `accounts` is one account for all rows, one for each, or several for each, (n, rows); `amounts` are shaped alike or
    are one number. An account may be named twice; each amount counts. `add.at` on the flat table is ten times as fast
    as two indices.
    """
    if isinstance(accounts, int):
        np.add.at(table[accounts], rows, amounts)
        return
    places = accounts * table.shape[1] + rows
    np.add.at(table.reshape(-1), places.reshape(-1), amounts.reshape(-1) if np.ndim(amounts) else amounts)


def require_range(what: str, most: float) -> None:
    """Raise ParameterError unless sums up to `most` token units stay below 62 bits."""
    if most >= MOST:
        raise ParameterError(
            f"expected {what} of a market below 2^62 token units, got {most:.3g}; lower amounts, agents or rounds"
        )


class Ledger:
    """`free`, `deposits`: (accounts, rows) token units; `locked`: (accounts, 1), in all rows; `burned`: (rows,).

    In all methods `rows` are (n,) numbers of rows, none of them twice; accounts and amounts as in `book`.
    """

    def __init__(self, deposits: Amounts) -> None:
        """Everybody's first deposits, (accounts, rows). Raises ParameterError when their sum leaves 62 bits."""
        if deposits.dtype != object:
            require_range("deposits", float(deposits.sum(axis=0, dtype=np.float64).max()))
        self.free = np.array(deposits, order="C")
        self.locked = np.zeros((len(self.free), 1), dtype=self.free.dtype)
        self.burned = np.zeros_like(self.free[0])
        self.deposits = deposits

    def amount(self, amount: int) -> Amounts:
        """One number, as this ledger counts."""
        return np.asarray(amount, dtype=self.free.dtype)

    def lock(self, accounts: slice, amounts: Amounts | int) -> None:
        """Lock free tokens of some accounts, in all rows, until the end."""
        self.free[accounts] -= amounts
        self.locked[accounts] += amounts

    def give(self, rows: Indices, takers: Indices | int, amounts: Amounts) -> None:
        """Add to free tokens; what is given was taken from somebody."""
        book(self.free, rows, takers, amounts)

    def take(self, rows: Indices, givers: Indices | int, amounts: Amounts) -> None:
        """Take from free tokens what is then given or burned."""
        book(self.free, rows, givers, np.negative(amounts))

    def burn(self, rows: Indices, amounts: Amounts) -> None:
        """Let what was taken leave the world."""
        self.burned[rows] += amounts

    def gains(self) -> Amounts:
        """What every account holds more than it deposited, (accounts, rows)."""
        more: Amounts = self.free - self.deposits
        more += self.locked
        return more

    def balanced(self) -> bool:
        """Inflow = what everybody holds + what was burned, in every row, and nobody holds less than nothing."""
        held = self.free.sum(axis=0) + self.locked.sum(axis=0) + self.burned
        return bool(
            (held == self.deposits.sum(axis=0)).all() and (self.free >= 0).all() and (self.locked >= 0).all()
        )
