"""Compares the outcomes of challenges with the chain until their task is over for good. An outcome is dropped
if the chain does not agree with it any more.

A re-organisation can take back the block that closed a game, or the conviction that made a challenge
needless. The challenge is then driven again (`games`), which also notes its new outcome.
"""

from __future__ import annotations

from protocol.chain.views import TaskStatus, TaskView
from protocol.dispute.view import Phase
from protocol.node.party.exits import Observation
from verifier.challenge_commitment import FORFEITED, NEEDLESS, OPENED_LATE, is_answered
from verifier.context import Context
from verifier.database import Challenge


class Outcomes:
    """The outcomes of the challenges of one deployment. Used by the loop's thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[tuple[int, int], str] = {}
        """The outcomes that earlier looks have seen, by task and seat. Another thread may note an outcome
        from a block that is newer than the block of the present look. So the first look that sees an outcome
        only stores it here, and the next look compares it with the chain.
        """

    def see(self, seen: Observation) -> None:
        """Reopen the task's challenges whose outcomes do not agree with the chain any more. Raises ChainError."""
        context = self._context
        for row in context.database.all_challenges(seen.view.task):
            if row.outcome is None:
                self._known.pop(row.key, None)
            elif self._known.get(row.key) != row.outcome:
                self._known[row.key] = row.outcome
            elif not self._stands(seen.view, row, row.outcome):
                context.database.reopen_challenge(row.key)
                context.log.warning(
                    "taken back by a re-organisation", task=row.task, seat=row.seat, outcome=row.outcome
                )

    def forget(self, task: int) -> None:
        """Drop the outcomes of a task that is over for good."""
        self._known = {key: outcome for key, outcome in self._known.items() if key[0] != task}

    def _stands(self, view: TaskView, row: Challenge, outcome: str) -> bool:
        """Whether an outcome is the one that the chain shows, or does not depend on the chain."""
        if row.game is not None:
            state = self._context.client.game.game(row.game)
            ours = (state.task, state.challenger) == (row.task, row.account)
            return ours and state.phase is Phase.CLOSED and state.verdict.name.lower() == outcome
        if outcome == OPENED_LATE:
            return view.status is TaskStatus.SLASHED
        if outcome == NEEDLESS:
            if view.status.is_over or not row.asks:
                return view.status.is_over
            return view.status is not TaskStatus.SUBMITTED or is_answered(self._context.client, row)
        return outcome != FORFEITED or view.status.is_over
