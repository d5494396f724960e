"""The ends of a task, booked: expired, never drawn, convicted, settled; and a challenge that was dismissed.

Each function moves tokens in the rows that end so, and mirrors the contract's function of that name. A task that is
void for want of attestations moves nothing: its locks return to their owners. `rows` are (n,) numbers of rows,
accounts and amounts (n,) each.
"""

from __future__ import annotations

import numpy as np

from sim.mechanism import shares
from sim.mechanism.arrays import Amounts, Indices
from sim.mechanism.ledger import Ledger

SUBMITTER = 0
"""Account of everybody who posts tasks."""
DRAWER = 1
"""Account of whoever proves headers of draw blocks."""
FIRST_SOLVER = 2


def expire(ledger: Ledger, rows: Indices, solvers: Indices, penalty: int) -> None:
    """TaskMarket.expire: the penalty, which is at most the stake, burns; escrow and stake return."""
    amount = ledger.amount(penalty)
    ledger.take(rows, solvers, amount)
    ledger.burn(rows, amount)


def lose_draw(ledger: Ledger, rows: Indices, solvers: Indices, stake: int) -> None:
    """TaskMarket.voidTask of a task that was never drawn: the whole stake burns, the escrow returns."""
    amount = ledger.amount(stake)
    ledger.take(rows, solvers, amount)
    ledger.burn(rows, amount)


def pay_drawer(ledger: Ledger, rows: Indices, fee: int) -> None:
    """TaskMarket.payDrawer: out of the escrow."""
    amount = ledger.amount(fee)
    ledger.take(rows, SUBMITTER, amount)
    ledger.give(rows, DRAWER, amount)


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


def settle(
    ledger: Ledger,
    rows: Indices,
    solvers: Indices,
    verifiers: Indices,
    attested: Amounts,
    *,
    price: Amounts,
    reserve: int,
    fee: int,
) -> shares.Settlement:
    """TaskMarket.settle. `verifiers` are the seats' accounts, `attested` how many duties each attested, (V, n) both."""
    counts = attested.astype(np.int64)
    split = shares.settle(price, ledger.amount(reserve), ledger.amount(fee), counts.sum(axis=0))
    fees = split.each * counts
    ledger.take(rows, SUBMITTER, fees.sum(axis=0) + split.to_solver)
    ledger.give(rows, verifiers, fees)
    ledger.give(rows, solvers, split.to_solver)
    return split
