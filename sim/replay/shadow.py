"""The engine's own market of one row, played beside the chain: it decides, and books in its own units.

Bids, work, seats, challenges and ends are `sim.engine`'s; only draws are taken from the chain instead of from a
stream, and seats attest there as soon as they do here. What else the market decided is carried out afterwards.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from sim.agents.verifiers import Check, Seats
from sim.engine.checking import Checker
from sim.engine.market import Market
from sim.engine.streams import Stream, streams
from sim.engine.task import Checks, Task
from sim.errors import StudyError
from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.auctions import Assignment, Auction, descending, late
from sim.mechanism.draw import NOBODY, Draw
from sim.replay.auditing import Auditing
from sim.replay.scenarios import Scenario

_TASKS: Final = {"arrival_rate": 1, "solver_capital": 0}
"""What parameters must be: others would leave the chain without a task."""
_ENDS: Final = ("unsold", "expired", "convicted", "void", "stalled", "settled")


class Challenge(NamedTuple):
    """One game that somebody opens, as the engine sees it."""

    account: int
    seat: int | None
    """Number of the seat, None for a challenger that was not drawn."""
    wins: bool
    late: bool
    """Opened when the task has stalled."""


class _Seated(Checker):
    """Seats whoever the chain has drawn; what they do is done there."""

    auditing: Auditing
    drawn: Draw

    def draw(self) -> Draw:
        """The chain's; nobody before it."""
        return self.drawn

    def again(self, rows: Indices, asked: Flags, bound: Indices, luck: Stream) -> Indices:
        """The chain's, once more."""
        del rows, bound, luck
        return self.auditing.redraw(asked)

    def act(self, seats: Seats, accounts: Indices, there: Flags, others: Flags) -> Check:
        """As they do in the engine."""
        check = super().act(seats, accounts, there, others)
        if there.any():
            self.auditing.attest(accounts, check)
        return check


class Shadow(Market):
    """The market of a scenario, a task at a time: `begin`, then `end` with the chain's draws where it was submitted."""

    def __init__(self, scenario: Scenario) -> None:
        """Raises StudyError when parameters or submitter ask for what the contracts or a replay do not have."""
        for name, due in _TASKS.items():
            if getattr(scenario.parameters, name) != due:
                raise StudyError(
                    f"scenario {scenario.name!r}, {name}: expected {due}, for every task of a replay is posted, "
                    f"got {getattr(scenario.parameters, name)}; leave it out of a replay"
                )
        submitter = scenario.population.submitter
        if submitter.preempts:
            raise StudyError(
                f"scenario {scenario.name!r}, submitter: expected one that lets challengers come first, for a replay "
                f"plays their games as they are, got {submitter.name!r}; choose another"
            )
        random = streams(np.random.SeedSequence(scenario.seed), rows=1)
        self._auction: Auction = late if scenario.late else descending
        self.asks: Amounts
        """Of the last auction, (solvers, 1) units of the engine; one more when the submitter bids itself."""
        super().__init__(scenario.parameters, scenario.population, 1, scenario.tasks, random, self._record)
        self._seated = _Seated(self.parameters, self.population, random)
        self._last: Checks
        self.checker = self._seated

    def end(self, task: Task, auditing: Auditing) -> Checks:
        """Whoever is drawn acts, and the task ends."""
        self._seated.auditing = auditing
        self._seated.drawn = auditing.first() if task.drawn[0] else auditing.nobody()
        self._last = self._seated.check(task)
        self.closer.end(task, self._last)
        return self._last

    def ends(self) -> dict[str, int]:
        """How many tasks ended in which way so far."""
        return {name: int(getattr(self.books.tally, name)[0]) for name in _ENDS}

    def challenges(self) -> list[Challenge]:
        """All games of the task that ended last, in the engine's order."""
        games, won = self._last.games, self._last.won
        seats = {
            self.books.verifiers.start + int(account): seat
            for sitting in self._last.sittings
            for seat, account in enumerate(sitting.accounts[:, 0])
            if account != NOBODY
        }
        first = self.books.bystanders.start
        late = {
            first + number
            for group in self.population.bystanders
            if group.strategy.late
            for number in range(group.first, group.first + group.size)
        }
        return [
            Challenge(int(account), seats.get(int(account)), bool(wins), int(account) in late)
            for account, opened, wins in zip(games.accounts[:, 0], games.opened[:, 0], won[:, 0])
            for _ in range(int(opened))
        ]

    def _record(self, asks: Amounts, budget: Amounts) -> Assignment:
        self.asks = asks
        return self._auction(asks, budget)
