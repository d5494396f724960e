"""One challenge: finds whose turn it is in its game, which needs only the chain, and makes our own moves,
which need the task's trees.

`Strategy.challenger` chooses each move. This module sends the move once, even across restarts. Nothing here
waits for the solver's move, so many games run side by side; only games with open trees use much memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from protocol.chain.client import Client
from protocol.chain.views import GameState
from protocol.dispute.errors import NothingToChallenge
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import GameView, Phase
from protocol.node import logs
from protocol.tasks.admission import Clocks, seconds_beside
from protocol.tasks.owed import moves_left
from verifier.challenge_commitment import ChallengeCommitment
from verifier.database import Challenge, Database
from verifier.material import Material
from verifier.strategy import Challenger


class Trees:
    """The data from which moves are made: our own run of the task, and what the solver has served and
    revealed. They take most of a game's memory. If they are released and opened again, they are the same: the
    run is computed again, served traces are in the task's folder, and reveals are read from the chain.
    """

    def __init__(
        self, client: Client, material: Material, challenge: Challenge, first: int, challenger: Challenger
    ) -> None:
        assert challenge.game is not None, "trees are opened for a game"
        self._material = material
        self._run = material.run(challenge)
        self._revealed = Revealed(material.traces)
        from protocol.chain.game_view import GameReader

        self._reader = GameReader(client.game, challenge.game, material.work.program.program, first)
        self._challenger = challenger
        self._game = client.game
        self._log = logs.get("verifier.challenging").bind(task=challenge.task)

    def move(self) -> GameView | None:
        """Make this side's move, if it is its turn. Returns the view if no move can be made, which loses the
        game; otherwise None. Raises OSError if a served trace cannot be kept.
        """
        view = self._reader.view()
        self._reader.reveal_to(self._revealed)
        if view.phase is Phase.CLOSED or view.solver_to_move:
            return None
        try:
            move = self._challenger(view, self._run, self._revealed, self._material.provider)
        except NothingToChallenge as error:
            self._log.error("no move", game=view.game, reason=str(error))
            move = None
        if move is None:
            return view
        receipt = self._game.send_move(move, view.head)
        self._log.info("moved", game=view.game, move=move.function, note=move.note, gas=receipt.gas_used)
        return None


class ChallengeDriver:
    """Drives one challenge. Its state is in the database and on the chain, so it can be recreated after a
    restart.

    Called by one thread at a time.
    """

    def __init__(
        self,
        client: Client,
        database: Database,
        commitment: ChallengeCommitment,
        challenge: Challenge,
        look: float = 0.0,
        due: Callable[[float], AbstractContextManager[None]] = lambda _by: nullcontext(),
    ) -> None:
        """`look` is the number of seconds between two looks at the chain. `due(by)` returns a context in
        which computing is scheduled with the deadline `by`.
        """
        self._client = client
        self._look_seconds = look
        self._due = due
        self._database = database
        self._commitment = commitment
        self._key = challenge.key
        self._task = challenge.task
        self._first = client.deployment.block
        self._trees: Trees | None = None
        self._moveless: bytes | None = None
        self._asks = challenge.asks
        self._log = logs.get("verifier.challenging").bind(task=challenge.task)
        self.own_turn = True
        """Whether the next move is ours. A process that is asked to stop makes this move before it stops."""
        self.deadline = math.inf
        """The time by which our next move must be computed; infinite if none is due. A part of the clock is
        reserved for further moves.
        """

    @property
    def holds_trees(self) -> bool:
        """Whether the challenge's trees are in memory."""
        return self._trees is not None

    @property
    def needs_trees(self) -> bool:
        """Whether a move is due for which the trees must be opened."""
        return self._trees is None and self.deadline < math.inf

    def advance(self) -> None:
        """Do the next thing that is due: at most one move or other call. A commitment may need further calls
        first, which bring tokens for its bond or forfeit other commitments. Raises ChainError, BundleError,
        CommitmentError, VerifierError, NotEnoughTokens, NotEnoughCoin, OSError.
        """
        challenge = self._challenge()
        if challenge.game is not None:
            self._asks = challenge.asks
            self._look(challenge.game)
            return
        try:
            opened = self._commitment.advance(challenge)
        finally:
            self.own_turn = self._commitment.own_turn
        if opened is not None:
            self._first = opened.block

    def open_trees(self, material: Material, challenger: Challenger) -> None:
        """Open the trees that moves need, which takes memory, and make the move that is due. Raises the
        errors of `advance`.
        """
        self._trees = Trees(self._client, material, self._challenge(), self._first, challenger)
        self._move()

    def let_go(self) -> None:
        """Release the trees' memory. The trees are opened again for the next move, so nothing is lost."""
        self._trees = None

    def _challenge(self) -> Challenge:
        found = self._database.challenge(*self._key)
        assert found is not None, "it was noted before it is driven"
        return found

    def _look(self, game: int) -> None:
        calls = self._client.game
        block = self._client.connection.block()
        state = calls.game(game, block.number)
        if (state.task, state.challenger) != (self._task, self._client.address):
            # Undone by a re-organisation: the opening transaction may be mined again, or be refused now.
            self._database.begin_again(self._key)
            self._log.warning("the game is not there any more", game=game)
            self.let_go()
            return
        closed = state.phase is Phase.CLOSED
        moot = not closed and self._client.market.task(self._task).status.is_over
        owed = not closed and self._solver_owes(state, block.number)
        late = block.time > state.deadline
        self.own_turn = not (closed or moot or owed or late or state.waits or state.head == self._moveless)
        # A game that only asks is dropped or continued once the step tree was compared (`accusing`).
        due = self.own_turn and not self._asks
        self.deadline = self._compute_by(state) if due else math.inf
        if closed:
            self._end(state)
        elif moot:
            calls.close_moot(game)
        elif owed and late:
            calls.time_out(game)
            self._log.warning("the solver's time is over", game=game)
        elif self.own_turn and self._trees is not None:
            with self._due(self.deadline):
                self._move()

    def _compute_by(self, state: GameState) -> float:
        left = moves_left(state.phase, state.depth, state.demands)
        return state.deadline - left * seconds_beside(Clocks(self._client.inclusion, self._look_seconds))

    def _solver_owes(self, state: GameState, block: int) -> bool:
        if state.demand_open or state.phase is Phase.SPLIT:
            return True
        awaits = state.phase in (Phase.STEP, Phase.FRAME)
        return awaits and self._client.game.claim(state.claim, block).posted(state) is None

    def _move(self) -> None:
        assert self._trees is not None
        lost = self._trees.move()
        self.own_turn, self.deadline = False, math.inf
        if lost is not None:
            self._moveless = lost.head
            self.let_go()

    def _end(self, state: GameState) -> None:
        self.let_go()
        self._database.update_challenge(self._key, outcome=state.verdict.name.lower())
        self._log.warning("game over", game=state.game, verdict=state.verdict.name.lower())
