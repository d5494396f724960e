"""Everybody's tokens in the vault, for all markets at once (contracts/src/StakeVault.sol).

Locks that a task opens and closes are booked net: a round ends with none of them open. What stays locked from round to
round (verifiers' registrations) is in `locked`.
"""

from __future__ import annotations

import numpy as np

from sim.errors import SettingError
from sim.mechanism.arrays import MOST, Amounts, Indices


def book(table: Amounts, rows: Indices, accounts: Indices | int, amounts: Amounts) -> None:
    """Add to places of a (accounts, rows) table: one account of each row, or several, (n, rows).

    An account may be named twice; each amount counts. Adding at places of the flat table is ten times as fast as
    through two indices, and it alone sums what falls on one place.
    """
    places = np.add(np.multiply(accounts, table.shape[1]), rows)
    np.add.at(table.reshape(-1), places.reshape(-1), np.broadcast_to(amounts, places.shape).reshape(-1))


class Ledger:
    """`free`, `locked`, `deposits`: (accounts, rows) token units; `burned`: (rows,)."""

    def __init__(self, deposits: Amounts) -> None:
        """Everybody's first deposits, (accounts, rows). Raises SettingError when their sum leaves 62 bits."""
        if deposits.dtype != object and float(deposits.sum(axis=0, dtype=np.float64).max()) >= MOST:
            raise SettingError(
                f"expected deposits of a market below 2^62 token units, got "
                f"{deposits.sum(axis=0, dtype=np.float64).max():.3g}; lower amounts, agents or rounds"
            )
        self.free = np.array(deposits, order="C")
        self.locked = np.zeros_like(self.free)
        self.burned = np.zeros_like(self.free[0])
        self.deposits = deposits

    def amounts(self, rows: Indices, amount: int) -> Amounts:
        """The same amount in some of the rows, as this ledger counts."""
        return np.full(rows.shape, amount, dtype=self.free.dtype)

    def lock(self, accounts: slice, amounts: Amounts | int) -> None:
        """Lock free tokens of some accounts, in all rows, until the end."""
        self.free[accounts] -= amounts
        self.locked[accounts] += amounts

    def give(self, rows: Indices, takers: Indices | int, amounts: Amounts) -> None:
        """Add to free tokens, of one account of each row or of several, (n, rows)."""
        book(self.free, rows, takers, amounts)

    def pay(self, rows: Indices, giver: Indices | int, taker: Indices | int, amounts: Amounts) -> None:
        """Move tokens from one account of each row to another."""
        book(self.free, rows, giver, -amounts)
        book(self.free, rows, taker, amounts)

    def burn(self, rows: Indices, giver: Indices | int, amounts: Amounts) -> None:
        """Take tokens out of the world. No row may occur twice."""
        book(self.free, rows, giver, -amounts)
        self.burned[rows] += amounts

    def gains(self) -> Amounts:
        """What every account holds more than it deposited, (accounts, rows)."""
        more: Amounts = self.free + self.locked - self.deposits
        return more

    def balanced(self) -> bool:
        """Inflow = what everybody holds + what was burned, in every row, and nobody holds less than nothing."""
        held = self.free.sum(axis=0) + self.locked.sum(axis=0) + self.burned
        return bool(
            (held == self.deposits.sum(axis=0)).all() and (self.free >= 0).all() and (self.locked >= 0).all()
        )
