"""One accusation, from the priority commitment to the end of its game (dispute.md section 6).

Which move to make is `Strategy.challenger`; here it is sent, once, whatever is restarted. `advance` does at most one
thing and never waits for the solver, so that many games go on side by side.
"""

from __future__ import annotations

import secrets

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.game_view import GameReader
from protocol.commitments import segment_tree
from protocol.dispute.errors import NothingToChallenge
from protocol.dispute.keys import SEGMENT_UNKNOWN, priority_commitment
from protocol.dispute.openings import open_leaf
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import GameView, Phase
from protocol.node import logs
from protocol.node.party.funds import require_free
from protocol.tasks.task import least_clock
from verifier.database import COMMITTING, Accusation, Database
from verifier.material import Material
from verifier.strategy import Challenger


class Challenge:
    """Drives one accusation. Made anew after a restart; what it needs is in the database and on the chain."""

    def __init__(
        self,
        client: Client,
        database: Database,
        material: Material,
        task: int,
        challenger: Challenger,
        operations_a_second: float,
    ) -> None:
        self._client = client
        self._database = database
        self._material = material
        self._task = task
        self._challenger = challenger
        self._least_clock = least_clock(material.terms, operations_a_second)
        self._revealed = Revealed()
        self._reader: GameReader | None = None
        self._first = client.deployment.block
        self._run = material.run(self._accusation())
        self._log = logs.get("verifier.challenging").bind(task=task)
        self.own_turn = True
        """Whether the next move is this side's: a process that is to stop makes it first."""

    def advance(self) -> None:
        """The next thing that is due. Raises ChainError, BundleError, CommitmentError, VerifierError."""
        accusation = self._accusation()
        if accusation.game is not None:
            self._play(accusation.game)
        elif accusation.reclaimable in (None, COMMITTING):
            self._commit(accusation)
        else:
            self._open(accusation)

    def _accusation(self) -> Accusation:
        found = self._database.accusation(self._task)
        assert found is not None, "a challenge is made of an accusation"
        return found

    def _commit(self, accusation: Accusation) -> None:
        game, commitment = self._client.game, self._commitment(accusation)
        # What was sent before is looked up, whatever has become of the task and the tokens since.
        if not game.committing(commitment) and not self._may_commit():
            self.own_turn = False
            return
        receipt = game.commit(commitment)
        period = self._client.deployment.parameters.opening_period
        until = self._client.connection.block(receipt.block).time + period
        self._database.update_accusation(self._task, reclaimable=until + 1)
        self.own_turn = True
        self._log.warning("accused", segment=accusation.segment)

    def _may_commit(self) -> bool:
        """Whether a bond is to be locked now: then it is free, and noted as at stake."""
        clock = self._material.terms.challenger_clock
        if clock < self._least_clock:
            # The bond would be lost on time. The solver stands accused here, so it is not attested either.
            self._database.update_accusation(self._task, outcome="clock_too_short")
            self._log.error("not challenged: the clock is too short", clock=clock, due=self._least_clock)
            return False
        view = self._client.market.task(self._task)
        if view.status.is_over:
            self._database.update_accusation(self._task, outcome="needless")
            return False
        if self._client.now() > view.challenge_until:  # a missed draw opens the window again
            return False
        require_free(self._client, self._client.deployment.parameters.challenge_bond)
        self._database.update_accusation(self._task, reclaimable=COMMITTING)
        return True

    def _open(self, accusation: Accusation) -> None:
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
            return
        self._first = receipt.block
        self._database.update_accusation(task, game=game)
        self._log.warning("challenged", game=game, segment=accusation.segment)

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

    def _play(self, game: int) -> None:
        if self._reader is None:
            program = self._material.work.program.program
            self._reader = GameReader(self._client.game, game, program, self._first)
        view = self._reader.view()
        self._reader.reveal_to(self._revealed)
        if view.phase is Phase.CLOSED:
            self._end(view)
        elif self._client.market.task(self._task).status.is_over:
            self._client.game.close_moot(game)
        elif view.solver_to_move:
            self.own_turn = False
            if self._client.now() > self._client.game.game(game).deadline:
                self._client.game.time_out(game)
                self._log.warning("the solver's time is over", game=game)
        else:
            self.own_turn = True
            self._move(view)

    def _move(self, view: GameView) -> None:
        try:
            move = self._challenger(view, self._run, self._revealed, self._material.provider)
        except NothingToChallenge as error:
            self._log.error("no move", game=view.game, reason=str(error))
            move = None
        if move is None:
            self.own_turn = False
            return
        receipt = self._client.game.send_move(move, view.head)
        self._log.info("moved", game=view.game, move=move.function, note=move.note, gas=receipt.gas_used)

    def _end(self, view: GameView) -> None:
        self.own_turn = False
        self._database.update_accusation(self._task, outcome=view.verdict.name.lower())
        self._log.warning("game over", game=view.game, verdict=view.verdict.name.lower())
