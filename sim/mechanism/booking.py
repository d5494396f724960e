"""Bookings for draws, silent seats, dismissed challenges, locks taken by looks, and the ends of sold tasks.

Each function moves tokens in the affected rows. It mirrors the contract function that its docstring names.
Tokens that no function moves return to their owner: for example, the stake of a task without a conviction,
and the rest of an escrow. `rows` are (n,) row numbers. Accounts and amounts are (n,), or (V, n) if each seat
has one.
"""

from __future__ import annotations

from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.ledger import Ledger

SUBMITTER = 0
"""Account of the party that posts all tasks."""
DRAWER = 1
"""Account of the party that executes draws."""
FIRST_SOLVER = 2


def expire(ledger: Ledger, rows: Indices, solvers: Indices, penalty: int) -> None:
    """TaskMarket.expire: half of the penalty, rounded down, goes to the submitter; the rest burns."""
    ledger.take(rows, solvers, ledger.amount(penalty))
    ledger.give(rows, SUBMITTER, ledger.amount(penalty // 2))
    ledger.burn(rows, ledger.amount(penalty - penalty // 2))


def pay_draws(ledger: Ledger, rows: Indices, fee: int, draws: Amounts) -> None:
    """TaskMarket.drawn: pay the draw fee out of the escrow as many times as `draws` says."""
    amounts = ledger.amount(fee) * draws
    ledger.take(rows, SUBMITTER, amounts)
    ledger.give(rows, DRAWER, amounts)


def silence(
    ledger: Ledger,
    rows: Indices,
    seats: Indices,
    silent: Flags,
    *,
    fee: int,
    draw_fee: int,
    again: bool = True,
) -> None:
    """AuditBoard.redraw: each silent account loses the seat's fee and the draw fee, out of its stake.

    If the draw that replaces the silent accounts takes place (`again`), the draw fee that the first silent
    account loses pays for this draw. All other losses burn. `seats`: ledger accounts, (V, n).
    """
    lost = ledger.amount(fee + draw_fee) * silent
    paid = ledger.amount(draw_fee if again else 0) * silent.any(axis=0)
    ledger.take(rows, seats, lost)
    ledger.give(rows, DRAWER, paid)
    ledger.burn(rows, lost.sum(axis=0) - paid)


def convict(
    ledger: Ledger,
    rows: Indices,
    solvers: Indices,
    challengers: Indices,
    *,
    reward: Amounts,
    restitution: int,
) -> None:
    """TaskMarket.convict, StakeVault.slash: pay the reward and the restitution out of the stake; the escrow
    returns.
    """
    ledger.take(rows, solvers, reward + ledger.amount(restitution))
    ledger.give(rows, challengers, reward)
    ledger.give(rows, SUBMITTER, ledger.amount(restitution))


def compensate(
    ledger: Ledger, rows: Indices, solvers: Indices, seats: Indices, spoke: Flags, *, cost: int, fee: int
) -> None:
    """Commitments.compensate, openLate: out of the stake, pay a game's cost and the fee to each seat that
    spoke up. A seat spoke up if it made a challenge that was not dismissed.
    """
    amounts = ledger.amount(cost + fee) * spoke
    ledger.take(rows, solvers, amounts.sum(axis=0))
    ledger.give(rows, seats, amounts)


def pay_fees(
    ledger: Ledger, rows: Indices, solvers: Indices, seats: Indices, owed: Flags, *, fee: int
) -> None:
    """Commitments.payFee: out of the stake, pay the fee to each seat that is owed nothing else. `seats` are
    (V, n).
    """
    amounts = ledger.amount(fee) * owed
    ledger.take(rows, solvers, amounts.sum(axis=0))
    ledger.give(rows, seats, amounts)


def burn_rest(ledger: Ledger, rows: Indices, solvers: Indices, rest: Amounts) -> None:
    """TaskMarket.burnRest: burn the unclaimed rest of a convicted stake."""
    ledger.take(rows, solvers, rest)
    ledger.burn(rows, rest)


def forfeit(ledger: Ledger, rows: Indices, challengers: Indices, bonds: Amounts) -> None:
    """Commitments.forfeit: burn the whole bonds of commitments that were not opened in time."""
    ledger.take(rows, challengers, bonds)
    ledger.burn(rows, bonds)


def dismiss(ledger: Ledger, rows: Indices, solvers: Indices, challengers: Indices, bonds: Amounts) -> None:
    """DisputeGame.timeOut: half of a silent challenger's bond, rounded down, goes to the solver; the rest burns."""
    ledger.take(rows, challengers, bonds)
    ledger.give(rows, solvers, bonds // 2)
    ledger.burn(rows, bonds - bonds // 2)


def pay_seats(ledger: Ledger, rows: Indices, seats: Indices, attested: Flags, fee: int) -> None:
    """TaskMarket.settle, voidTask, closeStalled: pay attested seats their whole fee. `seats` are (V, n)."""
    fees = ledger.amount(fee) * attested
    ledger.take(rows, SUBMITTER, fees.sum(axis=0))
    ledger.give(rows, seats, fees)


def pay_solver(ledger: Ledger, rows: Indices, solvers: Indices, price: Amounts) -> None:
    """TaskMarket.settle: pay the price."""
    ledger.take(rows, SUBMITTER, price)
    ledger.give(rows, solvers, price)


def close_undrawn(ledger: Ledger, rows: Indices, solvers: Indices, price: Amounts) -> None:
    """TaskMarket.closeStalled of a task that was never drawn: pay half of the price, rounded down."""
    pay_solver(ledger, rows, solvers, price // 2)


def take_locks(
    ledger: Ledger, rows: Indices, targets: Indices, lookers: Indices, lost: Flags, lock: int
) -> None:
    """Looks.takeUnrevealed, takeUnanswered: half of a lock, rounded down, goes to the looker; the rest burns.

    Accounts and `lost` are (L, n), with one entry for each of L looks in each row.
    """
    ledger.take(rows, targets, ledger.amount(lock) * lost)
    ledger.give(rows, lookers, ledger.amount(lock // 2) * lost)
    ledger.burn(rows, (ledger.amount(lock - lock // 2) * lost).sum(axis=0))


def pay_dropped(
    ledger: Ledger, rows: Indices, lookers: Indices, solvers: Indices, dropped: Flags, cost: int
) -> None:
    """DisputeGame.drop: pay the solver a game's cost out of the looker's bond. Accounts and `dropped` are (L,
    n), for L looks in each row.
    """
    ledger.take(rows, lookers, ledger.amount(cost) * dropped)
    ledger.give(rows, solvers, ledger.amount(cost) * dropped)


def pay_answered(
    ledger: Ledger, rows: Indices, lookers: Indices, targets: Indices, answered: Flags, cost: int
) -> None:
    """Looks.answer, closeMoot: pay the accused account the accusation's bond, which is a game's cost.

    Accounts and `answered` are (L, n), with one entry for each of L looks in each row.
    """
    ledger.take(rows, lookers, ledger.amount(cost) * answered)
    ledger.give(rows, targets, ledger.amount(cost) * answered)
