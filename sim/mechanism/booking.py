"""The ends of a task, booked: expired, convicted, settled; and a challenge that was dismissed.

Each function moves tokens in the rows that end so, and mirrors the contract's function of that name. A void task moves
nothing: its locks return to their owners.
"""

from __future__ import annotations

import numpy as np

from sim.mechanism import shares
from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.ledger import Ledger

SUBMITTER = 0
"""Account of everybody who posts tasks."""
DRAWER = 1
"""Account of whoever proves headers of draw blocks."""
FIRST_SOLVER = 2


def expire(ledger: Ledger, rows: Indices, solvers: Indices, penalty: int) -> None:
    """TaskMarket.expire: the penalty burns, at most what the stake holds; escrow and stake return."""
    ledger.burn(rows, solvers, np.full_like(ledger.burned[rows], penalty))


def pay_drawer(ledger: Ledger, rows: Indices, fee: int) -> None:
    """TaskMarket.payDrawer: out of the escrow."""
    ledger.pay(rows, SUBMITTER, DRAWER, np.full_like(ledger.burned[rows], fee))


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
    split = shares.slash(
        np.full_like(ledger.burned[rows], stake), np.asarray(reward), np.asarray(restitution)
    )
    ledger.pay(rows, solvers, challengers, split.rewarded)
    ledger.pay(rows, solvers, SUBMITTER, split.restored)
    ledger.burn(rows, solvers, split.burned)
    return split


def dismiss(ledger: Ledger, rows: Indices, solvers: Indices, challengers: Indices, bond: int) -> None:
    """DisputeGame._dismiss: half of the bond, rounded down, pays the solver, the rest burns."""
    amounts = np.full_like(ledger.burned[rows], bond)
    ledger.pay(rows, challengers, solvers, amounts // 2)
    ledger.burn(rows, challengers, amounts - amounts // 2)


def settle(
    ledger: Ledger,
    rows: Indices,
    solvers: Indices,
    verifiers: Indices,
    done: Flags,
    *,
    price: Amounts,
    reserve: int,
    fee: int,
) -> shares.Settlement:
    """TaskMarket.settle. `verifiers` are accounts, (rows, V), `done` attested duties, (rows, V, q + 1)."""
    counts = done.sum(axis=2)
    split = shares.settle(price, np.asarray(reserve), np.asarray(fee), counts.sum(axis=1))
    for seat in range(verifiers.shape[1]):
        ledger.pay(rows, SUBMITTER, verifiers[:, seat], split.each * counts[:, seat])
    ledger.pay(rows, SUBMITTER, solvers, split.to_solver)
    return split
