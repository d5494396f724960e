"""Compares a solver's ledger with the chain."""

from __future__ import annotations

from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from solver.earnings import read
from solver.ledger import Flow, Spent, Sums, by_month_and_task, total
from tests.chain.solver_stage import Stage

COIN = 10_000 * 10**18
"""Wei that anvil gives each account."""


def ledger_of(scene: Stage) -> list[Flow | Spent]:
    """All entries of the only ledger in the stage's home folder. Its solver must not be running."""
    (ledger,) = read(scene.home)
    return list(ledger.entries)


def adds_up(scene: Stage, account: str) -> Sums:
    """Check the ledger of the solver with this account against the chain, to the last unit: its free and its
    locked tokens in the vault, its tokens outside the vault, and its coin. Check also that the rows by month
    and task add up to the total income and coin. Returns the totals.
    """
    entries, submitter = ledger_of(scene), scene.submitter
    sums = total(entries)
    assert sums.free == submitter.vault.free(account)
    assert sums.locked == locked(scene, account)
    assert sums.coin == COIN - submitter.connection.balance(account)
    # The stage mints the solver's tokens through the solver's own transactions.
    minted = 200_000 * TOKEN * sum(isinstance(one, Spent) and one.what.endswith(".mint") for one in entries)
    assert submitter.token.balance_of(account) == minted - sums.deposited + sums.withdrawn
    rows = by_month_and_task(entries).values()
    assert sum(row.income for row in rows) == sums.income
    assert sum(row.coin for row in rows) == sums.coin
    return sums


def locked(scene: Stage, account: str) -> int:
    """The token units that are still locked for an account, summed over all locks that it has ever had."""
    vault = scene.submitter.vault
    followed = Follower(
        scene.devnet.connection, {vault.address: vault.contract}, scene.deployment.block
    ).poll()
    locks = [
        event.arguments["lock"]
        for event in followed.events
        if event.name == "Locked" and event.arguments["owner"] == account
    ]
    return sum(vault.lock_of(lock).remaining for lock in locks)
