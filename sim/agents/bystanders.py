"""Strategies of parties without a seat. Anybody may challenge, drawn or not. See lines 18 to 26 of the table
in tests/attacks/README.md.

A strategy is a frozen dataclass with one method, `look`, which acts for all members in all rows at once, on
arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from sim.mechanism.arrays import Flags, Floats, Indices
from sim.parameters import MarketParameters


class Passing(NamedTuple):
    """What the members see of a task; each array is (members, rows)."""

    parameters: MarketParameters
    served: Flags
    """Whether the solver gives out its checkpoints."""
    hit: Flags
    """Whether a replay of the one segment that the bystander has drawn for itself would differ from the
    result. Only agents that replay may use this value.
    """
    wrong: Flags
    """Whether a replay of all segments would differ from the result. Only agents that replay may use this value."""
    uniform: Floats
    """A uniform random number from 0 to 1."""


class Look(NamedTuple):
    """The actions of each member; each array is (members, rows)."""

    replays: Indices
    """Number of segments replayed."""
    games: Indices
    """Number of challenges. A challenge wins if the bystander's replay differs, if nothing is served, or if
    the solver is silent.
    """
    unopened: Indices | None = None
    """Number of commitments that are never opened; None if no member makes such commitments."""


@dataclass(frozen=True)
class Bystander:
    """A whistleblower, and the base class of all bystanders. With chance `chance`, it replays one random segment."""

    name: ClassVar[str] = "whistleblower"
    late: ClassVar[bool] = False
    """Whether the bystander acts only on stalled tasks."""
    chance: float = 0.1

    def look(self, view: Passing) -> Look:
        """With chance `chance`, act. If the solver serves its checkpoints, replay the segment and challenge
        if the replay differs. If the solver serves nothing, challenge without a replay.
        """
        looks = view.uniform < self.chance
        return Look(
            (looks & view.served).astype(np.int64), (looks & (view.hit | ~view.served)).astype(np.int64)
        )

    @property
    def most_games(self) -> int:
        """Number of bonds that the bystander needs for one task."""
        return 1


@dataclass(frozen=True)
class Griefer(Bystander):
    """With chance `chance`, opens several games (`games`) against a result without having replayed it, and
    usually loses them.
    """

    name: ClassVar[str] = "griefer"
    games: int = 1

    def look(self, view: Passing) -> Look:
        """Open the games, without a replay."""
        acts = view.uniform < self.chance
        return Look(np.zeros(acts.shape, dtype=np.int64), np.where(acts, self.games, 0))

    @property
    def most_games(self) -> int:
        """Number of bonds: one for each game, because all games are open at once."""
        return self.games


@dataclass(frozen=True)
class Forgetful(Bystander):
    """With chance `chance`, commits to `commitments` challenges and opens none of them, so that their bonds burn."""

    name: ClassVar[str] = "forgetful"
    commitments: int = 1

    def look(self, view: Passing) -> Look:
        """Make the commitments, without a replay or a game."""
        acts = view.uniform < self.chance
        nothing = np.zeros(acts.shape, dtype=np.int64)
        return Look(nothing, nothing, np.where(acts, self.commitments, 0))

    @property
    def most_games(self) -> int:
        """One bond per commitment."""
        return self.commitments


@dataclass(frozen=True)
class Retrainer(Bystander):
    """With chance `chance`, replays all segments of a stalled task while the solver's stake is locked."""

    name: ClassVar[str] = "retrainer"
    late: ClassVar[bool] = True
    chance: float = 1.0

    def look(self, view: Passing) -> Look:
        """With chance `chance`, act. If the solver serves its checkpoints, replay all segments and challenge
        if the replay differs. If the solver serves nothing, challenge without a replay.
        """
        looks = view.uniform < self.chance
        replays = np.where(looks & view.served, view.parameters.segments, 0)
        return Look(replays, (looks & (view.wrong | ~view.served)).astype(np.int64))
