"""Strategies of solvers: bid, then train honestly or not. See lines 1 to 17 of the table in
tests/attacks/README.md.

A strategy is a frozen dataclass with two methods over arrays: `bid` for all its members at once, and `work`
for all rows. The engine uses the work only in the rows that a member of the strategy has won. To add a
strategy, subclass `Solver` and override what differs (docs/guide/studies.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from sim.mechanism.arrays import Flags, Floats, Indices
from sim.mechanism.draw import Segments
from sim.parameters import MarketParameters


class Bidding(NamedTuple):
    """What bidders see: the parameters; `cost`, each bidder's cost of honest training; and `uniform`, each
    bidder's random share of the markup, from 0 to 2 with mean 1. Both arrays have the shape (members, rows).
    """

    parameters: MarketParameters
    cost: Floats
    uniform: Floats


class Won(NamedTuple):
    """What a winner sees: the parameters, and a uniform number in [0, 1) for each row."""

    parameters: MarketParameters
    uniform: Floats


class Work(NamedTuple):
    """The work of the winner, by row."""

    false: Segments
    """m: number of segments whose checkpoint is not the program's result."""
    effort: Floats
    """Share of the training's cost that was spent."""
    submits: Flags
    """Whether the solver submits a complete tree before the deadline."""
    serves: Flags
    """Whether the solver gives out checkpoints and makes the moves of games."""
    knows: Flags
    """Whether the solver knows which segments are false, and gains if they are accepted."""

    @classmethod
    def of_kinds(cls, works: Sequence[Work], kinds: Indices) -> Work:
        """For each row, pick the work of its winner's strategy. `kinds` gives, for each row, the strategy's
        place in `works`.
        """
        if len(works) == 1:
            return works[0]
        rows = len(kinds)
        places = kinds * rows + np.arange(rows)
        return cls(*(np.concatenate(field).take(places) for field in zip(*works)))


@dataclass(frozen=True)
class Solver:
    """An honest solver, and the base class of all solvers."""

    name: ClassVar[str] = "honest"

    def bid(self, view: Bidding) -> Floats:
        """The asks of all members in token units, as an array (members, rows). An ask above the budget is not
        a bid.
        """
        effort = self.expected_effort(view.parameters)
        return (effort + effort * view.parameters.markup * view.uniform) * view.cost

    def expected_effort(self, parameters: MarketParameters) -> float:
        """Share of the honest cost that the strategy expects to spend."""
        del parameters
        return 1.0

    def work(self, view: Won) -> Work:
        """The work of the winner, (rows,)."""
        return self._work(view, 0)

    def _work(
        self,
        view: Won,
        false: Segments | int,
        *,
        effort: float = 1.0,
        submits: Flags | bool = True,
        serves: bool = True,
        knows: bool = True,
    ) -> Work:
        rows = view.uniform.shape
        return Work(
            np.full(rows, false, dtype=np.int32),
            np.full(rows, effort),
            np.full(rows, submits),
            np.full(rows, serves),
            np.full(rows, knows),
        )


@dataclass(frozen=True)
class Lazy(Solver):
    """Invents some of the segments, and saves the cost of training them. `share` is their share of all segments."""

    name: ClassVar[str] = "lazy"
    share: float = 0.1

    def false(self, parameters: MarketParameters) -> int:
        """m: number of invented segments, at least one."""
        return min(parameters.segments, max(1, round(self.share * parameters.segments)))

    def expected_effort(self, parameters: MarketParameters) -> float:
        """The share of the segments that the solver trains."""
        return 1 - self.false(parameters) / parameters.segments

    def work(self, view: Won) -> Work:
        """m false segments."""
        effort = self.expected_effort(view.parameters)
        return self._work(view, self.false(view.parameters), effort=effort)


@dataclass(frozen=True)
class Skipper(Lazy):
    """Submits an old checkpoint a second time: one false segment."""

    name: ClassVar[str] = "skipper"

    def false(self, parameters: MarketParameters) -> int:
        """Always one."""
        del parameters
        return 1


@dataclass(frozen=True)
class Withholder(Solver):
    """Commits to an invented run and serves nothing, hoping that the task settles without a challenge."""

    name: ClassVar[str] = "withholder"

    def expected_effort(self, parameters: MarketParameters) -> float:
        """0, because the solver's random roots cost nothing."""
        del parameters
        return 0.0

    def work(self, view: Won) -> Work:
        """Every segment is false and none is served."""
        return self._work(view, view.parameters.segments, effort=0.0, serves=False)


@dataclass(frozen=True)
class Crashing(Solver):
    """An honest solver that misses its deadline with chance `rate`, in addition to the market's failures."""

    name: ClassVar[str] = "crashing"
    rate: float = 0.1

    def work(self, view: Won) -> Work:
        """Honest work, or a missed deadline. A missed deadline costs the full training too, because the
        device was occupied.
        """
        return self._work(view, 0, submits=view.uniform >= self.rate)


@dataclass(frozen=True)
class Noisy(Solver):
    """An honest solver on a device that sometimes corrupts a segment without the solver noticing."""

    name: ClassVar[str] = "noisy"
    rate: float = 0.01

    def work(self, view: Won) -> Work:
        """At most one corrupted segment; later segments are right, given the corrupted checkpoint."""
        return self._work(view, (view.uniform < self.rate).astype(np.int32), knows=False)


@dataclass(frozen=True)
class Late(Solver):
    """A griefer with a stake: with chance `rate`, it bids 0 in order to win, and then lets the deadline pass."""

    name: ClassVar[str] = "late"
    rate: float = 1.0

    def bid(self, view: Bidding) -> Floats:
        """With chance `rate`, bid 0; otherwise do not bid. Each bidder's random share of the markup, which is
        uniform from 0 to 2, decides this.
        """
        bids: Floats = np.where(view.uniform < 2 * self.rate, 0.0, np.inf)
        return bids

    def work(self, view: Won) -> Work:
        """Do no work and submit nothing."""
        return self._work(view, 0, effort=0.0, submits=False)
