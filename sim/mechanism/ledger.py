"""Everybody's tokens in the vault, for all markets at once (contracts/src/StakeVault.sol).

Locks that a task opens and closes are booked net: a round ends with none of them open. What stays locked from round to
round (verifiers' registrations) is in `locked`.
"""

from __future__ import annotations

import numpy as np

from sim.errors import SettingError
from sim.mechanism.arrays import MOST, Amounts, Flags, Indices


class Ledger:
    """`free`, `locked`, `deposits`: (rows, accounts) token units; `burned`: (rows,)."""

    def __init__(self, deposits: Amounts) -> None:
        """Everybody's first deposits, (rows, accounts). Raises SettingError when their sum leaves 62 bits."""
        if deposits.dtype != object and float(deposits.sum(axis=1, dtype=np.float64).max()) >= MOST:
            raise SettingError(
                f"expected deposits of a market below 2^62 token units, got {deposits.sum(axis=1).max()}; "
                f"lower amounts, agents or rounds"
            )
        self.free = deposits.copy()
        self.locked = np.zeros_like(deposits)
        self.burned = np.zeros_like(deposits[:, 0])
        self.deposits = deposits

    def lock(self, accounts: slice, amounts: Amounts | int) -> None:
        """Lock free tokens of some accounts until `release`."""
        self.free[:, accounts] -= amounts
        self.locked[:, accounts] += amounts

    def pay(self, rows: Indices, giver: Indices | int, taker: Indices | int, amounts: Amounts) -> None:
        """Move tokens from one account of each row to another. No row may occur twice."""
        self.free[rows, giver] -= amounts
        self.free[rows, taker] += amounts

    def burn(self, rows: Indices, giver: Indices | int, amounts: Amounts) -> None:
        """Take tokens out of the world. No row may occur twice."""
        self.free[rows, giver] -= amounts
        self.burned[rows] += amounts

    def covered(self, rows: Indices, account: Indices | int, amounts: Amounts | int) -> Flags:
        """Tell by row whether an account could lock so much."""
        enough: Flags = self.free[rows, account] >= amounts
        return enough

    def gains(self) -> Amounts:
        """What every account holds more than it deposited, (rows, accounts)."""
        more: Amounts = self.free + self.locked - self.deposits
        return more

    def balanced(self) -> bool:
        """Inflow = what everybody holds + what was burned, in every row, and nobody holds less than nothing."""
        held = self.free.sum(axis=1) + self.locked.sum(axis=1) + self.burned
        return bool(
            (held == self.deposits.sum(axis=1)).all() and (self.free >= 0).all() and (self.locked >= 0).all()
        )
