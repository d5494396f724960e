"""What one round's task is to those that come after its training, and what they do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sim.agents.bystanders import Passing
from sim.agents.solvers import Work
from sim.agents.verifiers import Check
from sim.engine.prices import Prices
from sim.mechanism.arrays import Amounts, Flags, Indices


class Task(NamedTuple):
    """One round's task, (rows,) each. Where it is not `live` nothing was submitted and the rest means nothing."""

    live: Flags
    drawn: Flags
    """The beacon shows a round in time. A live task that is not drawn stalls."""
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


class Sitting(NamedTuple):
    """Accounts that one draw has found for seats, and what they did, (V, n) each, of the n `rows`."""

    rows: Indices
    accounts: Indices
    """Numbers of verifiers from 0; NOBODY for seats that this draw was not asked for, or that stayed empty."""
    check: Check


class Silence(NamedTuple):
    """Accounts that were silent when their seats were drawn again, (V, n), of the n `rows`."""

    rows: Indices
    accounts: Indices
    silent: Flags


class Games(NamedTuple):
    """Challenges of some parties, (n, rows) each."""

    accounts: Indices
    """Of the ledger."""
    opened: Amounts
    """How many games each opens."""
    right: Flags
    """The challenger has seen what is false."""

    @classmethod
    def nothing(cls, shape: tuple[int, ...]) -> Games:
        """Nobody challenges."""
        return cls(
            np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
        )

    @classmethod
    def joined(cls, parts: Sequence[Games]) -> Games:
        """All of them, in the order of the parts."""
        return cls(*(np.concatenate(field) for field in zip(*parts)))


class Looks(NamedTuple):
    """What bystanders spent on looking, (bystanders, rows) each: segments that they replayed, and games. Written to."""

    replays: Indices
    games: Indices
    view: Passing
    """What they see."""


class Checks(NamedTuple):
    """What was done about a task, by row; by seat (V, rows)."""

    accounts: Indices
    """Who has each seat in the end, NOBODY for an empty one."""
    attested: Flags
    sittings: Sequence[Sitting]
    silences: Sequence[Silence]
    games: Games
    won: Flags
    """Of each game's challenger, (n, rows)."""
    early: int
    """How many of them came before the task stalled, if it did: the first ones."""
    looks: Looks | None
    """None when there are no bystanders."""
    escrow_draws: Amounts
    """Draws that the escrow pays."""
    stalled: Flags
    """Not drawn, or not attested when the stall period was over."""

    @property
    def convicted(self) -> Flags:
        """Somebody won."""
        flags: Flags = np.logical_or.reduce(self.won, axis=0)
        return flags

    @property
    def lost(self) -> Flags:
        """Games that end against their challengers, (n, rows): before anybody has won."""
        late = np.arange(len(self.won)) >= self.early
        before: Flags = ~np.logical_or.reduce(self.won[: self.early], axis=0)
        flags: Flags = np.where(late[:, None], ~self.convicted, before)
        return flags

    @property
    def full(self) -> Flags:
        """Every seat is attested."""
        flags: Flags = np.logical_and.reduce(self.attested, axis=0)
        return flags
