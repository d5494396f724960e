"""An accomplice of a cheat: it convicts the solver in its own game, as soon as an honest seat speaks up.

It plays by the rules, without a seat, down to the judgment, and keeps that until somebody else commits: so the honest
seat's commitment is locked, and its game, if there is one, is not won. What it gets is the reward and nothing else.
"""

from __future__ import annotations

from time import monotonic, sleep

from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.dispute import challenger
from protocol.dispute.moves import Move
from protocol.dispute.provider import Provider, Run
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import GameView

JUDGMENT = "judge"
"""How the functions that convict begin."""
POLL_SECONDS = 0.1


class Accomplice:
    """A `verifier.strategy.Challenger` for this account; it keeps a judgment for `patience` seconds at most."""

    def __init__(self, client: Client, patience: float) -> None:
        self._client = client
        self._patience = patience

    def __call__(self, game: GameView, run: Run, revealed: Revealed, provider: Provider) -> Move | None:
        """The honest move; a judgment after somebody else's commitment."""
        move = challenger.next_move(game, run, revealed, provider)
        if move is not None and move.function.startswith(JUDGMENT):
            self._wait(game.task)
        return move

    def _wait(self, task: int) -> None:
        client, calls = self._client, self._client.commitments
        topics = [None, task.to_bytes(32)]
        told = Follower(
            client.connection, {calls.address: calls.contract}, client.deployment.block, topics=topics
        )
        end = monotonic() + self._patience
        while monotonic() < end:
            made = [event for event in told.poll().events if event.name == "Committed"]
            if any(event.arguments["challenger"].lower() != client.address.lower() for event in made):
                return
            sleep(POLL_SECONDS)
