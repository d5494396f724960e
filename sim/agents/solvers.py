"""What solvers do: bid, then train honestly or not (tests/attacks/README.md, 1 to 17).

A strategy is a frozen dataclass with two methods over arrays: `bid` for all its members at once, `work` for the rows in
which one of them has won. To add one, subclass `Solver` and override what differs (docs/guide/studies.md).
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
    """What bidders see: the parameters, each one's cost of honest training (members, rows), and the markup's share
    drawn for each, 0 to 2 with mean 1."""

    parameters: MarketParameters
    cost: Floats
    uniform: Floats


class Won(NamedTuple):
    """What a winner sees: the parameters, one uniform number of 0 to 1 for each row. A strategy answers for all rows,
    also for those in which another one has won."""

    parameters: MarketParameters
    uniform: Floats


class Work(NamedTuple):
    """What a winner did, by row."""

    false: Segments
    """m: segments whose checkpoint is not what the program gives."""
    effort: Floats
    """Share of the training's cost that was spent."""
    submits: Flags
    """A whole tree before the deadline."""
    serves: Flags
    """Checkpoints and moves of a game are given out."""
    knows: Flags
    """The solver itself knows what is false, and gains when it is accepted."""

    @classmethod
    def of_kinds(cls, works: Sequence[Work], kinds: Indices) -> Work:
        """Each row's work out of those of all kinds."""
        if len(works) == 1:
            return works[0]
        rows = len(kinds)
        places = kinds * rows + np.arange(rows)
        return cls(*(np.concatenate(field).take(places) for field in zip(*works)))


@dataclass(frozen=True)
class Solver:
    """An honest solver, and the base of all others."""

    name: ClassVar[str] = "honest"

    def bid(self, view: Bidding) -> Floats:
        """What each member asks, in token units, (members, rows). Above the budget: no bid."""
        effort = self.expected_effort(view.parameters)
        return (effort + effort * view.parameters.markup * view.uniform) * view.cost

    def expected_effort(self, parameters: MarketParameters) -> float:
        """Share of the honest cost that the strategy expects to spend."""
        del parameters
        return 1.0

    def work(self, view: Won) -> Work:
        """What the winner does, (rows,)."""
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
    """Invents the share `share` of all segments and saves their cost."""

    name: ClassVar[str] = "lazy"
    share: float = 0.1

    def false(self, parameters: MarketParameters) -> int:
        """m, at least one segment."""
        return min(parameters.segments, max(1, round(self.share * parameters.segments)))

    def expected_effort(self, parameters: MarketParameters) -> float:
        """All but what is invented."""
        return 1 - self.false(parameters) / parameters.segments

    def work(self, view: Won) -> Work:
        """m false segments."""
        effort = self.expected_effort(view.parameters)
        return self._work(view, self.false(view.parameters), effort=effort)


@dataclass(frozen=True)
class Skipper(Lazy):
    """Submits one old checkpoint again: one false segment."""

    name: ClassVar[str] = "skipper"

    def false(self, parameters: MarketParameters) -> int:
        """One."""
        del parameters
        return 1


@dataclass(frozen=True)
class Withholder(Solver):
    """Commits an invented run and serves nothing, in the hope of an unaudited settlement."""

    name: ClassVar[str] = "withholder"

    def expected_effort(self, parameters: MarketParameters) -> float:
        """Random roots cost nothing."""
        del parameters
        return 0.0

    def work(self, view: Won) -> Work:
        """Every segment is false, none is served."""
        return self._work(view, view.parameters.segments, effort=0.0, serves=False)


@dataclass(frozen=True)
class Crashing(Solver):
    """Means well and fails at the given rate, on top of the market's."""

    name: ClassVar[str] = "crashing"
    rate: float = 0.1

    def work(self, view: Won) -> Work:
        """A missed deadline is booked with the whole cost: the device was taken."""
        return self._work(view, 0, submits=view.uniform >= self.rate)


@dataclass(frozen=True)
class Noisy(Solver):
    """Honest on a device that corrupts a segment now and then, and does not know it."""

    name: ClassVar[str] = "noisy"
    rate: float = 0.01

    def work(self, view: Won) -> Work:
        """At most one corrupted segment; all later ones are right again, as seen from it."""
        return self._work(view, (view.uniform < self.rate).astype(np.int32), knows=False)


@dataclass(frozen=True)
class Late(Solver):
    """Asks for nothing at the rate `rate`, so that it wins, and lets the deadline pass: a griefer with a stake."""

    name: ClassVar[str] = "late"
    rate: float = 1.0

    def bid(self, view: Bidding) -> Floats:
        """A markup's share of 0 to 2 is its coin."""
        bids: Floats = np.where(view.uniform < 2 * self.rate, 0.0, np.inf)
        return bids

    def work(self, view: Won) -> Work:
        """None."""
        return self._work(view, 0, effort=0.0, submits=False)
