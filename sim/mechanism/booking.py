"""The ends of a task, booked; and draws, silent seats, and challenges that were dismissed.

Each function moves tokens in the rows that end so, and mirrors the contract's function of that name. What is not moved
returns to its owner: stakes of tasks that nobody is convicted in, the rest of an escrow. `rows` are (n,) numbers of
rows, accounts and amounts (n,) each, or (V, n) where there is one for each seat.
"""

from __future__ import annotations

from sim.mechanism import shares
from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.ledger import Ledger

SUBMITTER = 0
"""Account of everybody who posts tasks."""
DRAWER = 1
"""Account of whoever executes draws."""
FIRST_SOLVER = 2


def expire(ledger: Ledger, rows: Indices, solvers: Indices, penalty: int) -> None:
    """TaskMarket.expire: half of the penalty, rounded down, goes to the submitter, the rest burns."""
    ledger.take(rows, solvers, ledger.amount(penalty))
    ledger.give(rows, SUBMITTER, ledger.amount(penalty // 2))
    ledger.burn(rows, ledger.amount(penalty - penalty // 2))


def pay_draws(ledger: Ledger, rows: Indices, fee: int, draws: Amounts) -> None:
    """TaskMarket.drawn: so many draw fees out of the escrow."""
    amounts = ledger.amount(fee) * draws
    ledger.take(rows, SUBMITTER, amounts)
    ledger.give(rows, DRAWER, amounts)


def silence(ledger: Ledger, rows: Indices, seats: Indices, silent: Flags, *, fee: int, draw_fee: int) -> None:
    """AuditBoard.redraw: each silent account loses the seat's fee and the draw fee, which its stake covers.

    The first of them pays the draw that replaces them all, the rest burns. `seats`: accounts of the ledger, (V, n).
    """
    lost = ledger.amount(fee + draw_fee) * silent
    paid = ledger.amount(draw_fee) * silent.any(axis=0)
    ledger.take(rows, seats, lost)
    ledger.give(rows, DRAWER, paid)
    ledger.burn(rows, lost.sum(axis=0) - paid)


def convict(
    ledger: Ledger,
    rows: Indices,
    solvers: Indices,
    challengers: Indices,
    *,
    stake: int,
    reward: int,
    restitution: int,
) -> shares.Slash:
    """TaskMarket.convict, StakeVault.slash: reward, restitution, the rest burns; the escrow returns."""
    whole = ledger.amount(stake)
    split = shares.slash(whole, ledger.amount(reward), ledger.amount(restitution))
    ledger.take(rows, solvers, whole)
    ledger.give(rows, challengers, split.rewarded)
    ledger.give(rows, SUBMITTER, split.restored)
    ledger.burn(rows, split.burned)
    return split


def dismiss(ledger: Ledger, rows: Indices, solvers: Indices, challengers: Indices, bond: int) -> None:
    """GameState._dismiss: half of the bond, rounded down, pays the solver, the rest burns."""
    ledger.take(rows, challengers, ledger.amount(bond))
    ledger.give(rows, solvers, ledger.amount(bond // 2))
    ledger.burn(rows, ledger.amount(bond - bond // 2))


def pay_seats(ledger: Ledger, rows: Indices, seats: Indices, attested: Flags, fee: int) -> None:
    """TaskMarket.settle, voidTask, closeStalled: attested seats have their fee, whole. (V, n) both."""
    fees = ledger.amount(fee) * attested
    ledger.take(rows, SUBMITTER, fees.sum(axis=0))
    ledger.give(rows, seats, fees)


def pay_solver(ledger: Ledger, rows: Indices, solvers: Indices, price: Amounts) -> None:
    """TaskMarket.settle: the price."""
    ledger.take(rows, SUBMITTER, price)
    ledger.give(rows, solvers, price)


def close_undrawn(ledger: Ledger, rows: Indices, solvers: Indices, price: Amounts) -> None:
    """TaskMarket.closeStalled of a task that was never drawn: half of the price, rounded down."""
    pay_solver(ledger, rows, solvers, price // 2)
