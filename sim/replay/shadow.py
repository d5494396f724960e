"""The engine's own market of one row, played beside the chain: it decides, and books in its own units.

Bids, work, seats, challenges and ends are `sim.engine`'s; only the draw is taken from the chain instead of from a
stream. What the market decided is kept, so that it can be carried out by transactions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from sim.engine.checking import Checker
from sim.engine.ending import Closer, Games
from sim.engine.market import Market
from sim.engine.streams import streams
from sim.engine.task import Checks, Task
from sim.errors import StudyError
from sim.mechanism.arrays import Amounts, Indices
from sim.mechanism.auctions import Assignment, Auction, descending, late
from sim.mechanism.draw import Draw
from sim.replay.scenarios import Scenario

_CONTRACTS: Final = {"forced_error_rate": 0, "redraws": 0, "arrival_rate": 1, "solver_capital": 0}
"""What parameters must be: the first two are not in the contracts, the others would leave the chain without a task."""
_ENDS: Final = ("unsold", "expired", "convicted", "void", "settled")


class Challenge(NamedTuple):
    """One game that somebody opens, as the engine sees it."""

    account: int
    seat: int | None
    """Number of the seat, None for a challenger that was not drawn."""
    wins: bool


class _Drawn(Checker):
    """Seats whoever the chain has drawn."""

    drawn: Draw

    def draw(self) -> Draw:
        """The chain's."""
        return self.drawn


class _Recorded(Closer):
    """Keeps the games of the task that ended last, (n, 1) each."""

    last: Games

    def games(self, task: Task, checks: Checks, seats: Indices) -> Games:
        """The engine's."""
        self.last = super().games(task, checks, seats)
        return self.last


class Shadow(Market):
    """The market of a scenario, a task at a time: `begin`, then `end` with the chain's draw where it was submitted."""

    def __init__(self, scenario: Scenario) -> None:
        """Raises StudyError when parameters or submitter ask for what the contracts or a replay do not have."""
        for name, due in _CONTRACTS.items():
            if getattr(scenario.parameters, name) != due:
                raise StudyError(
                    f"scenario {scenario.name!r}, {name}: expected {due}, for the contracts have nothing else, "
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
        self._drawn = _Drawn(self.parameters, self.population, random)
        self._recorded = _Recorded(self.parameters, self.books, self.prices, random)
        self.checker, self.closer = self._drawn, self._recorded

    def loses_draw(self, task: Task) -> bool:
        """Whether nobody ever proves the draw of a submitted task: it is void then."""
        return bool(self.parameters.draw_missed) and not self.await_draw(task).live[0]

    def end(self, task: Task, drawn: Draw) -> Checks:
        """Whoever was drawn acts, and the task ends."""
        self._drawn.drawn = drawn
        checks = self._drawn.check(task)
        self._recorded.end(task, checks)
        return checks

    def ends(self) -> dict[str, int]:
        """How many tasks ended in which way so far."""
        return {name: int(getattr(self.books.tally, name)[0]) for name in _ENDS}

    def challenges(self, seats: int) -> list[Challenge]:
        """All games of the task that ended last, in the engine's order."""
        games = self._recorded.last
        return [
            Challenge(int(account), place if place < seats else None, bool(won))
            for place, (account, opened, won) in enumerate(
                zip(games.accounts[:, 0], games.opened[:, 0], games.won[:, 0])
            )
            for _ in range(int(opened))
        ]

    def _record(self, asks: Amounts, budget: Amounts) -> Assignment:
        self.asks = asks
        return self._auction(asks, budget)
