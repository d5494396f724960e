"""All accusations of one verifier: accused at once, played within its memory, the earliest deadline first.

To commit, to open a game and to look whose turn it is takes neither memory nor one of the replays' workers, so it is
done for every accusation, the largest stake first. Only `games` of them have their trees open.
"""

from __future__ import annotations

from functools import partial

from verifier.accusing import Accuser, Bonds
from verifier.challenging import Challenge
from verifier.context import Context
from verifier.jobs import Failure, Job, Jobs

TURNS = 64
"""Transactions and looks side by side: threads that wait for receipts, started when they are needed."""
LONGEST_REST = 4.0
"""Seconds. A move waits for nothing but its own clock."""

TURN, TREES = "turn", "trees"


class Games:
    """For the loop's thread. `fetches` brings bundles that are not on this machine any more."""

    def __init__(self, context: Context, fetches: Jobs) -> None:
        self._context = context
        self._limit = context.settings.games
        self._fetches = fetches
        self._turns = Jobs(TURNS, LONGEST_REST)
        self._opening = Jobs(self._limit, LONGEST_REST)
        self._bonds = Bonds(context.client, context.database, self._at_stake)
        self._challenges: dict[int, Challenge] = {}

    def __len__(self) -> int:
        return len(self._challenges)

    @property
    def moves_due(self) -> bool:
        """Whether one's own clock runs in a game, or a commitment is still to be opened."""
        return bool(self._opening.busy) or any(game.own_turn for game in self._challenges.values())

    def is_busy(self, task: int) -> bool:
        """Whether something is being done about the accusation of this task."""
        return (task, TURN) in self._turns or (task, TREES) in self._opening

    def begin(self) -> None:
        """Begin with what was found different since the last call: its commitment goes out now."""
        database = self._context.database
        client, speed = self._context.client, self._context.settings.speed
        new = [row.task for row in database.open_accusations() if row.task not in self._challenges]
        for task in sorted(new, key=self._at_stake, reverse=True):
            accuser = Accuser(client, database, self._bonds, self._context.terms(task), task, speed)
            self._challenges[task] = Challenge(client, database, accuser, task)
            self._offer_turn(task)

    def play(self) -> int:
        """Offer the next thing in every accusation; how many are open."""
        rows = {row.task: row for row in self._context.database.open_accusations()}
        self._challenges = {
            task: game for task, game in self._challenges.items() if task in rows or self.is_busy(task)
        }
        self._open_trees()
        self.begin()
        unopened = [task for task, row in rows.items() if row.game is None]
        for task in sorted(unopened, key=self._at_stake, reverse=True):
            self._offer_turn(task)
        for task in sorted(self._challenges, key=lambda task: self._challenges[task].deadline):
            self._offer_turn(task)
        return len(rows)

    def collect(self) -> list[Failure]:
        """What failed since the last call."""
        return [*self._turns.collect(), *self._opening.collect()]

    def forget(self, task: int) -> None:
        """The task is over."""
        self._turns.rests.forget(task)
        self._opening.rests.forget(task)

    def close(self) -> None:
        """Until nothing is being done."""
        self._turns.close()
        self._opening.close()

    def _at_stake(self, task: int) -> int:
        """What the solver loses if it is convicted, and gains at most if it is not. Token units."""
        terms = self._context.terms(task)
        return terms.stake + terms.budget

    def _offer_turn(self, task: int) -> None:
        game = self._challenges.get(task)
        if game is not None and (task, TREES) not in self._opening:
            self._turns.offer(Job(task, TURN, game.advance))

    def _open_trees(self) -> None:
        """Open trees where a move is due, the earliest deadline first; a game that waits for its solver makes room."""
        idle = {task: game for task, game in self._challenges.items() if not self.is_busy(task)}
        due = sorted((game.deadline, task) for task, game in idle.items() if game.needs_trees)
        waiting = [game for game in idle.values() if game.holds_trees and not game.own_turn]
        held = self._opening.busy + sum(game.holds_trees for game in self._challenges.values())
        for _, task in due:
            terms = self._context.terms(task)
            if not self._context.materials.has_bundle(terms):
                self._fetches.offer(
                    Job(task, "fetch", partial(self._context.fetch, task, self._fetches.rests.lost(task)))
                )
                continue
            if held >= self._limit and waiting:
                waiting.pop().let_go()
                held -= 1
            if held < self._limit and self._opening.offer(Job(task, TREES, partial(self._open, task))):
                held += 1

    def _open(self, task: int) -> None:
        material = self._context.load(task)
        self._challenges[task].open_trees(material, self._context.strategy.challenger)
