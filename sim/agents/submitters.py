"""Strategies of the submitter: what it does besides paying. A market has one submitter, so one strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from sim.mechanism.arrays import Flags, Floats, Indices
from sim.parameters import MarketParameters


class Posting(NamedTuple):
    """What a submitter sees: the parameters, and a uniform number in [0, 1) for each row, (rows,)."""

    parameters: MarketParameters
    uniform: Floats


class Actions(NamedTuple):
    """The actions of a submitter in each row."""

    asks: Floats
    """The submitter's own bid under another name, in token units; infinite if it does not bid."""
    gone: Flags
    """Whether the bundle is taken down before the winner fetches it, so that the deadline passes without a
    result."""
    games: Indices
    """Number of challenges made without a replay."""


@dataclass(frozen=True)
class Submitter:
    """An honest submitter, and the base class of all submitters."""

    name: ClassVar[str] = "honest"
    preempts: ClassVar[bool] = False
    """Whether the submitter forestalls every challenger that would win: it challenges just before that
    challenger, and takes its reward.
    """

    def act(self, view: Posting) -> Actions:
        """Do nothing besides paying."""
        return self._actions(view)

    @property
    def most_games(self) -> int:
        """Number of bonds that the submitter may need for one task."""
        return 0

    def _actions(
        self, view: Posting, *, asks: Floats | float = np.inf, gone: Flags | bool = False, games: int = 0
    ) -> Actions:
        rows = view.uniform.shape
        return Actions(
            np.broadcast_to(asks, rows), np.broadcast_to(gone, rows), np.broadcast_to(np.int64(games), rows)
        )


@dataclass(frozen=True)
class Shill(Submitter):
    """Bids on its own tasks in order to lower the price of a second-price auction. A bid lies between the
    shares `low` and `high` of the budget.

    If its own bid wins, nobody trains: its stake pays the delay penalty, and its task is refunded.
    """

    name: ClassVar[str] = "shill"
    low: float = 0.6
    high: float = 0.9

    def act(self, view: Posting) -> Actions:
        """Bid a random amount, uniform between the two shares of the budget."""
        return self._actions(
            view, asks=(self.low + (self.high - self.low) * view.uniform) * view.parameters.budget
        )


@dataclass(frozen=True)
class Vanishing(Submitter):
    """A submitter that takes down a task's bundle after bidding has closed, with chance `rate`. The deadline
    then passes, and the solver pays the penalty.
    """

    name: ClassVar[str] = "vanishing"
    rate: float = 0.1

    def act(self, view: Posting) -> Actions:
        """Decide at random for each task whether to take down its bundle."""
        return self._actions(view, gone=view.uniform < self.rate)


@dataclass(frozen=True)
class Challenging(Submitter):
    """Makes `games` challenges against each result of its tasks, hoping that the solver is silent."""

    name: ClassVar[str] = "challenging"
    games: int = 1

    def act(self, view: Posting) -> Actions:
        """Challenge every result."""
        return self._actions(view, games=self.games)

    @property
    def most_games(self) -> int:
        """Number of bonds: one for each game, because all games are open at once."""
        return self.games


@dataclass(frozen=True)
class Insider(Submitter):
    """Colludes with its solver. It forestalls every challenge that would convict the solver, and so collects
    the reward and the restitution.
    """

    name: ClassVar[str] = "insider"
    preempts: ClassVar[bool] = True
