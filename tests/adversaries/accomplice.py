"""An accomplice of a cheating solver. It opens a game itself, and convicts the solver in it once an honest
seat has committed.

The accomplice has no seat. It plays by the rules, but holds its judgment back until another challenger has
committed to the task, or until its patience ends. Once the honest seat has committed, its bond is locked, but
the game that convicts is the accomplice's. The accomplice gets only the reward.
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
"""Prefix of the names of the contract functions that convict."""
POLL_SECONDS = 0.1


class Accomplice:
    """A `verifier.strategy.Challenger` that holds a judgment back for at most `patience` seconds."""

    def __init__(self, client: Client, patience: float) -> None:
        self._client = client
        self._patience = patience

    def __call__(self, game: GameView, run: Run, revealed: Revealed, provider: Provider) -> Move | None:
        """The honest next move. If the move is a judgment, waits until another challenger has committed to
        the task, or until the patience ends, before returning it.
        """
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
