"""What the engine expects everybody to hold: its ledger, and the locks that a round opens and closes.

All amounts are moved by `sim.mechanism`, on rows of Python integers; this adds only what the engine leaves out because
a round nets it: open locks by cause, pockets, withdrawals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from sim.errors import SimError
from sim.mechanism import booking
from sim.mechanism.arrays import Flags, Indices
from sim.mechanism.booking import SUBMITTER
from sim.mechanism.ledger import Ledger
from sim.mechanism.shares import Settlement
from sim.replay.amounts import Amounts
from sim.replay.comparison import (
    BOND,
    BURNED,
    ESCROW,
    FREE,
    HELD,
    LOCKS,
    OUTSIDE,
    REGISTRATION,
    STAKE,
    VAULT,
    Place,
)

ROW = np.zeros(1, dtype=np.int64)
"""The one market."""


class Books:
    """Accounts are the engine's: submitter, drawer, solvers, verifiers; `names` in this order."""

    def __init__(self, names: Sequence[str], deposits: Sequence[int], amounts: Amounts) -> None:
        self.ledger = Ledger(np.array(deposits, dtype=object)[:, None])
        self._names = names
        self._amounts = amounts
        self._pockets = [amounts.outside] * len(names)
        self._withdrawn = [0] * len(names)
        self._open: Counter[tuple[int, str]] = Counter()

    # ------------------------------------------------------------------ locks

    def register(self, first: int, slots: Sequence[int]) -> None:
        """Verifiers, from account `first` on, lock the stake of their slots."""
        units = np.array([count * self._amounts.stake_unit for count in slots], dtype=object)
        self.ledger.lock(slice(first, first + len(slots)), units[:, None])

    def resign(self, first: int, slots: Sequence[int]) -> None:
        """Their unbonding is over."""
        self.register(first, [-count for count in slots])

    def lock(self, account: int, cause: str, amount: int) -> None:
        """An account locks free tokens."""
        self._open[account, cause] += amount

    def release(self, account: int, cause: str, amount: int) -> None:
        """What is left in the lock is booked elsewhere, or returns."""
        self._open[account, cause] -= amount

    def withdraw(self, account: int, amount: int) -> None:
        """Free tokens leave the vault."""
        self._withdrawn[account] += amount

    def free(self, account: int) -> int:
        """What an account may lock or withdraw."""
        locked = sum(self._open[account, cause] for cause in (ESCROW, STAKE, BOND))
        return int(self.ledger.free[account, 0]) - locked - self._withdrawn[account]

    # ------------------------------------------------------------------ what the engine books

    def drawn(self) -> None:
        """The draw's fee leaves the escrow."""
        booking.pay_drawer(self.ledger, ROW, self._amounts.draw_fee)
        self.release(SUBMITTER, ESCROW, self._amounts.draw_fee)

    def expired(self, solver: int) -> None:
        """The deadline passed."""
        booking.expire(self.ledger, ROW, _at(solver), self._amounts.delay_penalty)

    def undrawn(self, solver: int) -> None:
        """The task was never drawn, and is void."""
        booking.lose_draw(self.ledger, ROW, _at(solver), self._amounts.stake)

    def convicted(self, solver: int, challenger: int) -> None:
        """The stake is slashed."""
        booking.convict(
            self.ledger,
            ROW,
            _at(solver),
            _at(challenger),
            stake=self._amounts.stake,
            reward=self._amounts.reward_cap,
            restitution=self._amounts.restitution,
        )

    def dismissed(self, solver: int, challenger: int) -> None:
        """A challenge of what is right ended: the bond is lost."""
        bond = self._amounts.challenge_bond
        booking.dismiss(self.ledger, ROW, _at(solver), _at(challenger), bond)
        self.release(challenger, BOND, bond)

    def settled(self, solver: int, seats: Indices, done: Flags, price: int, reserve: int) -> Settlement:
        """Fees and price are paid. `seats` are the verifiers' accounts, (V, 1), `done` their duties, (q + 1, V, 1)."""
        return booking.settle(
            self.ledger,
            ROW,
            _at(solver),
            seats,
            done.sum(axis=0),
            price=np.array([price], dtype=object),
            reserve=reserve,
            fee=self._amounts.audit_fee,
        )

    # ------------------------------------------------------------------ what follows

    def balances(self) -> dict[Place, int]:
        """Token units by place. Raises SimError when the ledger does not add up."""
        if not self.ledger.balanced():
            raise SimError("expected a ledger that adds up, got one that does not; report this as a defect")
        held: dict[Place, int] = {}
        for account, name in enumerate(self._names):
            held[Place(name, FREE)] = self.free(account)
            for cause in LOCKS:
                held[Place(name, cause)] = self._open[account, cause]
            held[Place(name, REGISTRATION)] = int(self.ledger.locked[account, 0])
            held[Place(name, OUTSIDE)] = self._pockets[account] + self._withdrawn[account]
        held[Place(VAULT, BURNED)] = int(self.ledger.burned[0])
        held[Place(VAULT, HELD)] = int(self.ledger.deposits.sum()) - sum(self._withdrawn)
        return held


def _at(account: int) -> Indices:
    return np.array([account])
