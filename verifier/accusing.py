"""From a difference that was found to an open game: the priority commitment, and its opening (dispute.md section 6).

It needs the accusation's row and the chain, no bundle and no tree: so it never waits for memory, and the commitment is
the first thing that goes out. Each call is sent once, whatever is restarted.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.receipts import Receipt
from protocol.commitments import segment_tree
from protocol.dispute.keys import SEGMENT_UNKNOWN, priority_commitment
from protocol.dispute.openings import open_leaf
from protocol.node import logs
from protocol.node.party.funds import require_coin, require_free
from protocol.tasks.task import Terms, least_game_time
from verifier.database import COMMITTING, Accusation, Database


class Bonds:
    """The bonds of commitments that are about to be sent: free in the vault, for all of them by one deposit.

    Where the tokens do not reach for all, they are for the tasks of which `at_stake` gives the most.
    """

    def __init__(self, client: Client, database: Database, at_stake: Callable[[int], int]) -> None:
        self._client = client
        self._database = database
        self._at_stake = at_stake
        self._lock = threading.Lock()

    def require(self, task: int) -> None:
        """Note that a bond for this task is at stake, and have it free. There must be coin for every game at stake,
        however long. Raises NotEnoughTokens, NotEnoughCoin, ChainError.
        """
        client, bond = self._client, self._client.deployment.parameters.challenge_bond
        with self._lock:
            rows = self._database.open_accusations()
            require_coin(client, 1 + sum(row.task != task and row.reclaimable is not None for row in rows))
            due = [row for row in rows if row.game is None and row.reclaimable in (None, COMMITTING)]
            ahead = sum(
                row.task != task and (row.reclaimable == COMMITTING or self._before(row.task, task))
                for row in due
            )
            free = client.vault.free(client.address)
            if free < (ahead + 1) * bond:
                wealth = free + client.token.balance_of(client.address)
                require_free(client, max(ahead + 1, min(len(due), wealth // bond)) * bond, "for bonds")
            self._database.update_accusation(task, reclaimable=COMMITTING)

    def _before(self, one: int, other: int) -> bool:
        return (self._at_stake(one), -one) > (self._at_stake(other), -other)


class Accuser:
    """Commits to one accusation and opens it. Made anew after a restart."""

    def __init__(
        self, client: Client, database: Database, bonds: Bonds, terms: Terms, task: int, speed: float
    ) -> None:
        self._client = client
        self._database = database
        self._bonds = bonds
        self._time = terms.game_time
        self._least_time = least_game_time(terms, speed, client.connection.block_time)
        self._task = task
        self._log = logs.get("verifier.accusing").bind(task=task)
        self.own_turn = True
        """Whether something is to be sent before a process may stop."""

    def advance(self, accusation: Accusation) -> Receipt | None:
        """The next thing that is due before the game; the receipt of the transaction that opened it. Raises ChainError,
        NotEnoughTokens.
        """
        if accusation.reclaimable not in (None, COMMITTING):
            return self._open(accusation)
        self._commit(accusation)
        return None

    def _commit(self, accusation: Accusation) -> None:
        game, commitment = self._client.game, self._commitment(accusation)
        # What was sent before is looked up, whatever has become of the task and the tokens since.
        if not game.committing(commitment):
            self.own_turn = False  # nothing is at stake yet
            if not self._may_commit():
                return
        self.own_turn = True
        receipt = game.commit(commitment)
        period = self._client.deployment.parameters.opening_period
        until = self._client.connection.block(receipt.block).time + period
        self._database.update_accusation(self._task, reclaimable=until + 1)
        self._log.warning("accused", segment=accusation.segment)

    def _may_commit(self) -> bool:
        """Whether a bond is to be locked now: then it is free, and noted as at stake."""
        if self._time < self._least_time:
            # The bond would be lost on time. The solver stands accused here, so it is not attested either.
            self._database.update_accusation(self._task, outcome="clock_too_short")
            self._log.error("not challenged: the clock is too short", clock=self._time, due=self._least_time)
            return False
        view = self._client.market.task(self._task)
        if view.status.is_over:
            self._database.update_accusation(self._task, outcome="needless")
            return False
        if self._client.now() > view.challenge_until:  # a redraw opens the window again
            return False
        self._bonds.require(self._task)
        return True

    def _open(self, accusation: Accusation) -> Receipt | None:
        client, task = self._client, self._task
        # The call comes before any look at the clock: a game that an earlier process opened is found by it.
        try:
            if accusation.segment is None:
                game, receipt = client.game.challenge_blind(task, accusation.salt)
            else:
                i, roots = accusation.segment, accusation.checkpoint_roots()
                tree = segment_tree(roots)
                before, after = open_leaf(tree, i - 1, roots[i - 1]), open_leaf(tree, i, roots[i])
                game, receipt = client.game.challenge(task, i, accusation.salt, before, after)
        except Reverted:
            if not self._take_back(accusation):
                raise
            return None
        self._database.update_accusation(task, game=game)
        self._log.warning("challenged", game=game, segment=accusation.segment)
        return receipt

    def _take_back(self, accusation: Accusation) -> bool:
        """The contract opens no game: the bond comes back after the opening period, to be locked anew while the task
        is not over. False if the game may still be opened.
        """
        client, reclaimable = self._client, accusation.reclaimable
        assert reclaimable is not None
        now, view = client.now(), client.market.task(self._task)
        if now < reclaimable:
            self.own_turn = not view.status.is_over and now <= view.challenge_until
            return not self.own_turn
        self.own_turn = False
        client.game.reclaim(self._commitment(accusation))
        self._log.info("bond taken back")
        if view.status.is_over:
            self._database.update_accusation(self._task, outcome="unopened")
        else:
            self._database.renew_accusation(self._task, secrets.token_bytes(32))
        return True

    def _commitment(self, accusation: Accusation) -> bytes:
        client = self._client
        segment = SEGMENT_UNKNOWN if accusation.segment is None else accusation.segment
        chain = client.deployment.chain_id
        return priority_commitment(
            chain, client.game.address, accusation.task, segment, client.address, accusation.salt
        )
