"""The ends of a task, booked: expired, convicted, settled; and a challenge that was dismissed.

Each function moves tokens in the rows that end so, and mirrors the contract's function of that name. A void task moves
nothing: its locks return to their owners. `rows` are (n,) numbers of rows, accounts and amounts (n,) each.
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
    ledger.burn(rows, solvers, ledger.amounts(rows, penalty))


def pay_drawer(ledger: Ledger, rows: Indices, fee: int) -> None:
    """TaskMarket.payDrawer: out of the escrow."""
    ledger.pay(rows, SUBMITTER, DRAWER, ledger.amounts(rows, fee))


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
    split = shares.slash(ledger.amounts(rows, stake), np.asarray(reward), np.asarray(restitution))
    ledger.pay(rows, solvers, challengers, split.rewarded)
    ledger.pay(rows, solvers, SUBMITTER, split.restored)
    ledger.burn(rows, solvers, split.burned)
    return split


def dismiss(ledger: Ledger, rows: Indices, solvers: Indices, challengers: Indices, bond: int) -> None:
    """GameState._dismiss: half of the bond, rounded down, pays the solver, the rest burns."""
    amounts = ledger.amounts(rows, bond)
    ledger.pay(rows, challengers, solvers, amounts // 2)
    ledger.burn(rows, challengers, amounts - amounts // 2)


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
    split = shares.settle(price, np.asarray(reserve), np.asarray(fee), counts.sum(axis=0))
    fees = split.each * counts
    ledger.give(rows, SUBMITTER, -(fees.sum(axis=0) + split.to_solver))
    ledger.give(rows, verifiers, fees)
    ledger.give(rows, solvers, split.to_solver)
    return split
