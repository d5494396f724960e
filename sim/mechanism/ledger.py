"""All accounts' tokens in the vault, for all markets at once (contracts/src/StakeVault.sol).

Locks that a task both opens and closes are booked net, because none of them is open at the end of a round.
Permanent locks (verifiers' registrations) are in `locked`. `sim.engine.flight` counts the stakes of tasks in
flight.
"""

from __future__ import annotations

import numpy as np

from sim.errors import ParameterError
from sim.mechanism.arrays import MOST, Amounts, Indices


def book(table: Amounts, rows: Indices, accounts: Indices | int, amounts: Amounts) -> None:
    """Add amounts to cells of an (accounts, rows) table.

    `accounts` is one account for all n rows, an array (n,) with one account per row, or an array (V, n) with
    several per row; (V, 1) if these are the same in all rows. `amounts` is one number that is added to every
    cell addressed, or an array with one amount for each of them: shape (V, n) if there are several accounts
    per row, otherwise (n,). If an account is named twice, both amounts count. The table is flattened because
    `add.at` is ten times as fast with one index as with two.
    """
    if isinstance(accounts, int):
        np.add.at(table[accounts], rows, amounts)
        return
    places = accounts * table.shape[1] + rows
    np.add.at(table.reshape(-1), places.reshape(-1), amounts.reshape(-1) if np.ndim(amounts) else amounts)


def require_range(what: str, most: float) -> None:
    """Raise ParameterError unless sums up to `most` token units fit in 62 bits."""
    if most >= MOST:
        raise ParameterError(
            f"expected {what} of a market below 2^62 token units, got {most:.3g}; lower amounts, agents or rounds"
        )


class Ledger:
    """Tokens in the vault. `free`, `deposits`: (accounts, rows); `locked`: (accounts, 1); `burned`: (rows,).

    In all methods, `rows` are (n,) distinct row numbers, and accounts and amounts are as in `book`.
    """

    def __init__(self, deposits: Amounts) -> None:
        """Start from the initial deposits, (accounts, rows). Raises ParameterError if an int64 sum may need
        more than 62 bits.
        """
        if deposits.dtype != object:
            require_range("deposits", float(deposits.sum(axis=0, dtype=np.float64).max()))
        self.free = np.array(deposits, order="C")
        self.locked = np.zeros((len(self.free), 1), dtype=self.free.dtype)
        self.burned = np.zeros_like(self.free[0])
        self.deposits = deposits

    def amount(self, amount: int) -> Amounts:
        """Convert a number to this ledger's integer type."""
        return np.asarray(amount, dtype=self.free.dtype)

    def lock(self, accounts: slice, amounts: Amounts | int) -> None:
        """Lock free tokens of some accounts permanently, in all rows."""
        self.free[accounts] -= amounts
        self.locked[accounts] += amounts

    def give(self, rows: Indices, takers: Indices | int, amounts: Amounts) -> None:
        """Give tokens that were taken from other accounts to `takers`, as free tokens."""
        book(self.free, rows, takers, amounts)

    def take(self, rows: Indices, givers: Indices | int, amounts: Amounts) -> None:
        """Take free tokens from `givers`. The caller then gives the amount to other accounts or burns it."""
        book(self.free, rows, givers, np.negative(amounts))

    def burn(self, rows: Indices, amounts: Amounts) -> None:
        """Burn tokens that were taken."""
        self.burned[rows] += amounts

    def gains(self) -> Amounts:
        """Each account's holdings minus its deposits, (accounts, rows)."""
        more: Amounts = self.free - self.deposits
        more += self.locked
        return more

    def balanced(self) -> bool:
        """Whether in every row deposits = holdings + burned, and no holding is negative."""
        held = self.free.sum(axis=0) + self.locked.sum(axis=0) + self.burned
        return bool(
            (held == self.deposits.sum(axis=0)).all() and (self.free >= 0).all() and (self.locked >= 0).all()
        )
