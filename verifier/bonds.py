"""Deposits bonds in the vault before commitments need them, and keeps them there. If an account has too few
tokens for all of its bonds, the tasks with the most at stake (`Bonds.at_stake`) come first. Nothing is kept
for a bond if the tokens cannot cover it in addition to the bonds of the tasks before it, or if its task
cannot be challenged now.

Each account of a process has its own tokens. If an account lacks tokens for a challenge under one deployment,
it uses tokens that it keeps ready under another deployment and does not need for a challenge there. The terms
of a task set its bond. While many bonds of the task are held, the contract asks for a larger bond, but not
for a seat's first commitment or in an UNPAID task (`Commitments.bond`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.dispute.keys import NO_SEAT
from protocol.node import logs
from protocol.node.party.funds import require_coin, require_free, withdraw_above
from protocol.tasks.task import Terms
from verifier.database import COMMITTING, Challenge, Database


class Bonds:
    """The bonds of all accounts, by address. Callable from any thread."""

    def __init__(
        self,
        clients: Mapping[str, Client],
        database: Database,
        terms: Callable[[int], Terms],
        lock: threading.Lock | None = None,
        everywhere: list[Bonds] | None = None,
    ) -> None:
        """`everywhere` lists the `Bonds` of all deployments of the process. This object is added to it. All
        of them have the same `lock`.
        """
        self._clients = clients
        self._database = database
        self._terms = terms
        self._lock = lock or threading.Lock()
        self._everywhere = [] if everywhere is None else everywhere
        self._everywhere.append(self)
        self._ready: dict[str, int] = {}
        self._log = logs.get("verifier.bonds")

    def at_stake(self, task: int) -> int:
        """The task's stake and budget together, in token units. The stake is what a conviction costs the
        solver, and the budget is the most that the solver gains otherwise.
        """
        terms = self._terms(task)
        return terms.stake + terms.budget

    def kept(self, account: str) -> int:
        """Token units that stay in the vault for an account's next commitment."""
        return self._ready.get(account, 0)

    def is_ready(self, account: str, task: int) -> bool:
        """Whether `make_ready` was called for a bond as large as this task's, or larger."""
        return self.kept(account) >= self._terms(task).bond

    def make_ready(self, account: str, task: int) -> None:
        """Deposit the task's bond, if there are tokens for it. The commitment then need not wait for a
        deposit, during which somebody else could convict the solver. Raises ChainError.
        """
        client, bond = self._clients[account], self._terms(task).bond
        with self._lock:
            if sum(client.tokens()) >= bond:
                client.fund(bond)
            else:
                self._log.warning("no tokens for a bond", task=task, account=account, tokens=bond / TOKEN)
            self._ready[account] = max(bond, self.kept(account))

    def withdraw(self, account: str) -> int:
        """Withdraw an account's free tokens, except those that are kept. Returns the units. Raises ChainError."""
        with self._lock:
            amount, _ = withdraw_above(self._clients[account], self.kept(account))
        return amount

    def require(
        self, challenge: Challenge, seat: int, fits: Callable[[Challenge], bool] = lambda _challenge: True
    ) -> bool:
        """Makes sure that this challenge's bond is free in the vault, notes that the bond is at stake, and
        returns True. If the challenge does not fit beside the challenges whose bond is already at stake, does
        nothing and returns False. `fits` decides whether it fits; only one call of `fits` runs at a time.

        The account's free tokens in the vault must cover this challenge's bond, and the bonds of some of the
        account's other challenges that are not committed yet: those whose bond is already at stake, and those
        whose task has more at stake (`at_stake`), if they can be committed (`_needed`). If free tokens are
        missing, they are deposited; the deposit also covers the bonds of the account's other uncommitted
        challenges, as far as its tokens reach. If tokens are missing outside the vault too, they are
        withdrawn from the vaults of other deployments. `seat` is the seat from which the challenge is
        committed, or NO_SEAT. The account must have coin for the longest course of every game at stake.
        Raises NotEnoughTokens, NotEnoughCoin, ChainError.
        """
        client = self._clients[challenge.account]
        with self._lock:
            if not fits(challenge):
                return False
            bond = client.commitments.bond(challenge.task, seat)
            at_stake = sum(bonds._at_stake(challenge.account) for bonds in self._everywhere)
            require_coin(client, at_stake + (challenge.opening_until is None))
            due = self._due(challenge.account, challenge.key)
            most = bond + self._sum(due)
            free = client.vault.free(client.address)
            if free < most:
                wealth = free + client.token.balance_of(client.address)
                spare = sum(
                    bonds._spare(challenge.account) for bonds in self._everywhere if bonds is not self
                )
                ahead = [row for row in due if self._before(row.task, challenge.task)]
                wanted = bond + self._needed(client, due, ahead, wealth + spare)
                if wealth < wanted <= wealth + spare:
                    self._bring(challenge.account, wanted - wealth)
                if free < wanted:
                    require_free(client, max(wanted, min(most, wealth)), "for bonds")
            self._database.update_challenge(challenge.key, opening_until=COMMITTING)
            return True

    def _at_stake(self, account: str) -> int:
        """The number of an account's challenges in this deployment whose bond is at stake."""
        rows = self._database.open_challenges()
        return sum(row.account == account and row.opening_until is not None for row in rows)

    def _due(self, account: str, but: tuple[int, int] | None = None) -> list[Challenge]:
        """An account's challenges that are not committed yet, except the one with the key `but`."""
        rows = [row for row in self._database.open_challenges() if row.account == account and row.key != but]
        return [row for row in rows if row.game is None and not row.is_committed]

    def _spare(self, account: str) -> int:
        """The account's free token units in this deployment's vault that no challenge here needs. Raises
        ChainError.
        """
        client = self._clients.get(account)
        if client is None:
            return 0
        free, due = client.vault.free(account), self._due(account)
        return max(0, free - self._needed(client, due, due, free))

    def _bring(self, account: str, missing: int) -> None:
        """Withdraw `missing` token units of an account from the vaults of the other deployments. Only units
        that no challenge there needs are taken. They may have been deposited in advance, for bonds that are
        never locked. Raises ChainError.
        """
        for bonds in self._everywhere:
            amount = 0 if bonds is self else min(missing, bonds._spare(account))
            if amount:
                bonds._clients[account].vault.withdraw(amount)
                missing -= amount
                self._log.info(
                    "taken from other contracts for a bond", tokens=amount / TOKEN, account=account
                )

    def _needed(
        self, client: Client, due: Iterable[Challenge], ahead: Iterable[Challenge], tokens: int
    ) -> int:
        """Token units that must stay free for an account's uncommitted challenges: for those of `due` whose
        bond is at stake, and for those of `ahead`, the largest `at_stake` first. Raises ChainError.

        For a challenge of `ahead`, nothing is kept if `tokens` units cannot cover its bond beside the bonds
        before it, or if its task cannot be challenged now. Otherwise, one false result in a task with a bond
        beyond the account's tokens would keep the account from challenging in all smaller tasks.
        """
        needed = self._sum(row for row in due if row.opening_until == COMMITTING)
        some = [row for row in ahead if row.opening_until is None]
        for row in sorted(some, key=lambda row: (-self.at_stake(row.task), row.task)):
            bond = _bond_now(client, row)
            if bond is not None and needed + bond <= tokens:
                needed += bond
        return needed

    def _sum(self, rows: Iterable[Challenge]) -> int:
        return sum(self._terms(row.task).bond for row in rows)

    def _before(self, one: int, other: int) -> bool:
        return (self.at_stake(one), -one) > (self.at_stake(other), -other)


def _bond_now(client: Client, challenge: Challenge) -> int | None:
    """The bond in token units that a challenge would lock now; None if its task cannot be challenged now.
    Raises ChainError.
    """
    for seat in dict.fromkeys((challenge.seat, NO_SEAT)):  # the seat may have been drawn again
        try:
            return client.commitments.bond(challenge.task, seat)
        except Reverted:
            continue
    return None
