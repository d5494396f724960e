"""The balances that the engine expects: its ledger, plus the locks that a round opens and closes.

`sim.mechanism` moves all amounts, on rows of Python integers. This module adds only what the engine omits
because it nets out within a round: open locks by cause, tokens outside the vault, and withdrawals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from sim.errors import SimError
from sim.mechanism import booking
from sim.mechanism.arrays import Amounts as Units
from sim.mechanism.arrays import Flags, Indices
from sim.mechanism.booking import DRAWER, SUBMITTER
from sim.mechanism.ledger import Ledger
from sim.parameters import MarketParameters
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
"""Row of the only market."""


class Books:
    """Expected balances of all accounts. Accounts and `names` have the engine's order: submitter, drawer,
    solvers, verifiers, bystanders.
    """

    def __init__(
        self, names: Sequence[str], deposits: Sequence[int], amounts: Amounts, terms: MarketParameters
    ) -> None:
        self.ledger = Ledger(np.array(deposits, dtype=object)[:, None])
        self._names = names
        self._amounts = amounts
        self._pockets = [amounts.outside] * len(names)
        self._withdrawn = [0] * len(names)
        self._terms = terms
        self._open: Counter[tuple[int, str]] = Counter()
        self._short: Counter[int] = Counter()
        """Amounts missing from each account's registration, because the account was silent or lost a lock."""
        self._purse: int | None = None
        """The account whose stake pays the requested draw; None if the escrow pays it."""

    # ------------------------------------------------------------------ locks

    def register(self, first: int, slots: Sequence[int]) -> None:
        """Lock the stakes of verifiers' slots. The verifiers' accounts are numbered from `first`."""
        units = np.array([count * self._amounts.stake_unit for count in slots], dtype=object)
        self.ledger.lock(slice(first, first + len(slots)), units[:, None])

    def resign(self, first: int, slots: Sequence[int]) -> None:
        """Free the stakes of verifiers' slots again, once their unbonding is over."""
        self.register(first, [-count for count in slots])

    def lock(self, account: int, cause: str, amount: int) -> None:
        """Lock free tokens of an account."""
        self._open[account, cause] += amount

    def release(self, account: int, cause: str, amount: int) -> None:
        """Close a lock. Payments out of it are booked elsewhere; the rest returns to the account."""
        self._open[account, cause] -= amount

    def close_escrow(self, *, owed: bool = False) -> None:
        """Empty a task's escrow. If `owed`, keep the fee of a draw that the escrow still owes."""
        self._open[SUBMITTER, ESCROW] = self._amounts.draw_fee if owed else 0

    def withdraw(self, account: int, amount: int) -> None:
        """Move free tokens of an account out of the vault."""
        self._withdrawn[account] += amount

    def free(self, account: int) -> int:
        """Tokens that an account may lock or withdraw."""
        locked = sum(self._open[account, cause] for cause in (ESCROW, STAKE, BOND)) - self._short[account]
        if account == DRAWER and self._purse is not None:
            locked += self._amounts.draw_fee
        return int(self.ledger.free[account, 0]) - locked - self._withdrawn[account]

    # ------------------------------------------------------------------ bookings of the engine

    def drawn(self) -> None:
        """Book a draw that the escrow pays."""
        booking.pay_draws(self.ledger, ROW, self._amounts.draw_fee, np.ones(1, dtype=object))
        self.release(SUBMITTER, ESCROW, self._amounts.draw_fee)

    def asked(self, silent: Sequence[int], *, again: bool = True) -> None:
        """Book a request for a redraw. Silent accounts lose part of their stakes. The first of them pays the
        draw once it is executed. Without `again`, no draw follows, and the looks of these accounts are given
        up.
        """
        seats = np.array([silent], dtype=np.int64).T
        fee, draw_fee = self._amounts.seat_fee(self._terms), self._amounts.draw_fee
        every = np.ones(seats.shape, dtype=np.bool_)
        booking.silence(self.ledger, ROW, seats, every, fee=fee, draw_fee=draw_fee, again=again)
        for account in silent:
            self._short[account] += fee + draw_fee
        self._purse = silent[0] if silent and again else None

    def redrawn(self) -> None:
        """Book the execution of the requested draw. The escrow pays for it, unless a silent account does."""
        if self._purse is None:
            self.drawn()
        self._purse = None

    def resumed(self, account: int) -> None:
        """Top up the stake of an account that was silent or lost a lock, from its free balance."""
        del self._short[account]

    def paid_look(self, account: int) -> None:
        """Pay the fee of an attested look from the escrow."""
        fee = self._amounts.audit_fee
        booking.pay_seats(self.ledger, ROW, *_seat(account), fee)
        self.release(SUBMITTER, ESCROW, fee)

    def caught(self, account: int, looker: int) -> None:
        """Book a lock that an account loses to a looker, because the account did not reveal or could not answer."""
        lock = self._amounts.seat_lock(self._terms)
        accounts, lost = _seat(account)
        booking.take_locks(self.ledger, ROW, accounts, _at(looker)[None], lost, lock)
        self._short[account] += lock

    def dropped(self, looker: int, solver: int, bond: int) -> None:
        """Book a dropped game: the looker pays the solver a game's cost; the rest of its bond returns."""
        lookers, lost = _seat(looker)
        booking.pay_dropped(self.ledger, ROW, lookers, _at(solver)[None], lost, self._amounts.game_cost)
        self.release(looker, BOND, bond)

    def answered(self, looker: int, account: int) -> None:
        """Pay the accusation's bond to the accused account. Either the account has answered, or a conviction
        has made the accusation moot.
        """
        cost = self._amounts.game_cost
        lookers, lost = _seat(looker)
        booking.pay_answered(self.ledger, ROW, lookers, _at(account)[None], lost, cost)
        self.release(looker, BOND, cost)

    def expired(self, solver: int) -> None:
        """Book a missed deadline: the solver loses the delay penalty."""
        booking.expire(self.ledger, ROW, _at(solver), self._amounts.delay_penalty)

    def convicted(self, solver: int, challenger: int, *, late: bool) -> None:
        """Pay the challenger's reward and the submitter's restitution out of the stake. If the task had
        stalled (`late`), the reward is `retrain_reward`.
        """
        amounts = self._amounts
        reward = amounts.retrain_reward if late else amounts.reward
        booking.convict(
            self.ledger,
            ROW,
            _at(solver),
            _at(challenger),
            reward=_exact(reward),
            restitution=amounts.restitution,
        )
        self.release(solver, STAKE, reward + amounts.restitution)

    def compensated(self, solver: int, account: int, *, look: bool) -> None:
        """Out of the stake, pay a game's cost and the fee to a seat that challenged; a look gets only the cost."""
        cost, fee = self._amounts.game_cost, 0 if look else self._amounts.seat_fee(self._terms)
        booking.compensate(self.ledger, ROW, _at(solver), *_seat(account), cost=cost, fee=fee)
        self.release(solver, STAKE, cost + fee)

    def paid_fee(self, solver: int, account: int) -> None:
        """Pay an attested seat its fee out of the stake."""
        fee = self._amounts.seat_fee(self._terms)
        booking.pay_fees(self.ledger, ROW, _at(solver), *_seat(account), fee=fee)
        self.release(solver, STAKE, fee)

    def burned_rest(self, solver: int) -> None:
        """Burn the rest of the stake. A solver has one stake locked at a time."""
        rest = self._open[solver, STAKE]
        booking.burn_rest(self.ledger, ROW, _at(solver), _exact(rest))
        self.release(solver, STAKE, rest)

    def dismissed(self, solver: int, challenger: int, bond: int) -> None:
        """Book a lost challenge: half of the bond goes to the solver; the rest burns."""
        booking.dismiss(self.ledger, ROW, _at(solver), _at(challenger), _exact(bond))
        self.release(challenger, BOND, bond)

    def forfeited(self, challenger: int, bond: int) -> None:
        """Burn the bond of a commitment that was not opened in time."""
        booking.forfeit(self.ledger, ROW, _at(challenger), _exact(bond))
        self.release(challenger, BOND, bond)

    def paid_seats(self, accounts: Iterable[int]) -> None:
        """Pay the fees of seats whose accounts attested."""
        seats = np.array([list(accounts)], dtype=np.int64).T
        attested = np.ones(seats.shape, dtype=np.bool_)
        booking.pay_seats(self.ledger, ROW, seats, attested, self._amounts.seat_fee(self._terms))

    def paid_solver(self, solver: int, price: int) -> None:
        """Pay the solver the price."""
        booking.pay_solver(self.ledger, ROW, _at(solver), _exact(price))

    def closed_undrawn(self, solver: int, price: int) -> None:
        """Pay the solver half of the price of a task that was never drawn."""
        booking.close_undrawn(self.ledger, ROW, _at(solver), _exact(price))

    # ------------------------------------------------------------------ resulting balances

    def balances(self) -> dict[Place, int]:
        """Token units by place. Raises SimError if the ledger does not balance."""
        if not self.ledger.balanced():
            raise SimError("expected a ledger that adds up, got one that does not; report this as a defect")
        held: dict[Place, int] = {}
        for account, name in enumerate(self._names):
            held[Place(name, FREE)] = self.free(account)
            for cause in LOCKS:
                held[Place(name, cause)] = self._open[account, cause]
            purse = self._amounts.draw_fee if self._purse == account else 0
            held[Place(name, REGISTRATION)] = (
                int(self.ledger.locked[account, 0]) - self._short[account] + purse
            )
            held[Place(name, OUTSIDE)] = self._pockets[account] + self._withdrawn[account]
        held[Place(VAULT, BURNED)] = int(self.ledger.burned[0])
        held[Place(VAULT, HELD)] = int(self.ledger.deposits.sum()) - sum(self._withdrawn)
        return held


def _at(account: int) -> Indices:
    return np.array([account])


def _exact(amount: int) -> Units:
    return np.array([amount], dtype=object)


def _seat(account: int) -> tuple[Indices, Flags]:
    """Two arrays for the functions of `booking`, with one element each: the account of one seat, and a flag
    that is set.
    """
    return np.array([[account]]), np.ones((1, 1), dtype=np.bool_)
