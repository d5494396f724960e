"""What one round's task is to those that come after its training."""

from __future__ import annotations

from typing import NamedTuple

from sim.agents.solvers import Work
from sim.agents.verifiers import Check
from sim.engine.prices import Prices
from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.draw import Draw


class Task(NamedTuple):
    """One round's task, (rows,) each. Where it is not `live` nothing was submitted and the rest means nothing."""

    live: Flags
    solver: Indices
    """Accounts."""
    price: Amounts
    work: Work
    own_games: Indices | None
    """Challenges by the submitter itself."""
    prices: Prices
    """Of the round."""

    @property
    def wrong(self) -> Flags:
        """Submitted with false segments, or withheld."""
        flags: Flags = self.live & ((self.work.false > 0) | ~self.work.serves)
        return flags


class Looks(NamedTuple):
    """What bystanders did, (bystanders, rows) each."""

    replays: Flags
    games: Indices
    """Challenges."""
    hit: Flags
    """A replay of the bystander's segment would differ."""


class Checks(NamedTuple):
    """What was done about it. Flags are clear in rows that are not live."""

    drawn: Draw
    hit: Flags
    """A replay of the seat's duties would differ, (V, rows)."""
    check: Check
    """By seat, (V, rows)."""
    looks: Looks | None
    """None when there are no bystanders."""
