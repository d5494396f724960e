"""What one round's task is to those that come after its training, and what they do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from sim.agents.bystanders import Passing
from sim.agents.solvers import Work
from sim.agents.verifiers import Check
from sim.engine.looking import SecondLooks
from sim.engine.prices import Prices
from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.draw import NOBODY, Segments

NO_SEAT: Final = -1
"""In place of a seat's number."""


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
    segments: Segments
    """What it names where it names one: the least false one that it saw, or any."""
    seats: Indices
    """Number of the seat that each was drawn for, (n,); NO_SEAT for the others."""
    unopened: Amounts
    """Commitments beside the games, which are never opened."""

    @classmethod
    def of(
        cls,
        accounts: Indices,
        opened: Amounts,
        right: Flags,
        segments: Segments,
        *,
        seated: bool = False,
        unopened: Amounts | None = None,
    ) -> Games:
        """One of each account, (n, rows); `seated`: of the seats, in their order."""
        seats = np.arange(len(accounts)) if seated else np.full(len(accounts), NO_SEAT)
        none = np.zeros_like(opened) if unopened is None else unopened
        return cls(accounts, opened, right, segments, seats, none)

    @property
    def held(self) -> Amounts:
        """Bonds of the task that are held before each one's first, (n, rows)."""
        made = self.opened + self.unopened
        return np.asarray(made.cumsum(axis=0) - made)

    @classmethod
    def joined(cls, parts: Sequence[Games]) -> Games:
        """All of them, in the order of the parts."""
        return cls(*(np.concatenate(field) for field in zip(*parts)))


class Looks(NamedTuple):
    """What bystanders spent on looking, (bystanders, rows) each: segments that they replayed, and games. Written to."""

    replays: Indices
    games: Indices
    segment: Indices
    """The one that each has drawn itself."""
    view: Passing
    """What they see."""


class Checks(NamedTuple):
    """What was done about a task, by row; by seat (V, rows)."""

    accounts: Indices
    """The final holder of each seat, NOBODY for an empty one."""
    drawn: Indices
    """Everybody who had one, silent accounts too, (m, rows); NOBODY fills up."""
    attested: Flags
    segments: Segments
    """Of the seats, (q, V, rows)."""
    sittings: Sequence[Sitting]
    silences: Sequence[Silence]
    games: Games
    named: Segments
    """By each game, (n, rows); NO_SEGMENT by one that begins without."""
    won: Flags
    """Of each game's challenger, (n, rows)."""
    early: int
    """How many of them came before the task stalled, if it did: the first ones."""
    looks: Looks | None
    """None when there are not bystanders."""
    escrow_draws: Amounts
    """Draws that the escrow pays."""
    stalled: Flags
    """Not drawn, or not attested when the stall period was over."""
    second: SecondLooks | None
    """None where the terms have none."""

    @property
    def paid(self) -> Flags:
        """Seats that are attested and have kept their locks, (V, rows)."""
        flags: Flags = self.attested if self.second is None else self.attested & ~self.second.lost
        return flags

    @property
    def convicted(self) -> Flags:
        """Somebody won."""
        flags: Flags = np.logical_or.reduce(self.won, axis=0)
        return flags

    @property
    def late(self) -> Flags:
        """Convicted when the task had stalled."""
        early: Flags = np.logical_or.reduce(self.won[: self.early], axis=0)
        return self.convicted & ~early

    @property
    def first(self) -> Indices:
        """The game that convicts, where one does: of those that win the first, (rows,)."""
        return np.asarray(self.won.argmax(axis=0))

    def spoke(self, in_ledger: Callable[[Indices], Indices]) -> Flags:
        """Seats whose accounts have a game that was not dismissed, (V, rows): on their own segment, or none."""
        spoke = np.zeros_like(self.attested)
        open_games = (self.games.opened > 0) & ~self.lost
        holders = in_ledger(self.accounts)
        for number, seat in enumerate(self.games.seats):
            if seat != NO_SEAT:
                holds = (self.accounts[seat] != NOBODY) & (holders[seat] == self.games.accounts[number])
                spoke[seat] |= open_games[number] & holds
        return spoke

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
