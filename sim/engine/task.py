"""One round's task after its training, and the actions of the parties that check it."""

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
"""Seat number of a party without a seat."""


class Task(NamedTuple):
    """One round's task; fields are (rows,). In rows that are not `live`, nothing was submitted, and the other
    fields are undefined.
    """

    live: Flags
    drawn: Flags
    """Whether the beacon delivers a round in time for the draw. If not, the task is never drawn. A live task
    that is never drawn stalls, unless the solver is convicted before.
    """
    solver: Indices
    """Ledger account of the solver."""
    price: Amounts
    work: Work
    own_games: Indices | None
    """Number of challenges by the submitter itself; None if it is honest."""
    prices: Prices
    """The round's prices."""

    @property
    def wrong(self) -> Flags:
        """Whether a submitted task has false segments or is not served."""
        flags: Flags = self.live & ((self.work.false > 0) | ~self.work.serves)
        return flags


class Sitting(NamedTuple):
    """Accounts that one draw found for seats, and their actions; (V, n) each, for the n `rows`."""

    rows: Indices
    accounts: Indices
    """Verifier numbers from 0. NOBODY in seats that this draw was not asked to fill, and in seats that it
    could not fill.
    """
    check: Check


class Silence(NamedTuple):
    """The accounts of all seats at a redraw, and whether each was silent; (V, n) each, for the n `rows`."""

    rows: Indices
    accounts: Indices
    silent: Flags


class Games(NamedTuple):
    """Challenges by some parties; each field is (n, rows) unless stated."""

    accounts: Indices
    """Ledger account numbers."""
    opened: Amounts
    """Number of games that each party opens."""
    right: Flags
    """Whether the challenger's replay has found a false segment."""
    segments: Segments
    """The segment that each party names, if any: the first false segment that it found, or an arbitrary one."""
    seats: Indices
    """Seat that each party was drawn for, (n,); NO_SEAT for parties without a seat."""
    unopened: Amounts
    """Number of further commitments, which are never opened."""

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
        """The challenges of some accounts, (n, rows). `seated` means that account i holds seat i; otherwise
        the accounts have no seats.
        """
        seats = np.arange(len(accounts)) if seated else np.full(len(accounts), NO_SEAT)
        none = np.zeros_like(opened) if unopened is None else unopened
        return cls(accounts, opened, right, segments, seats, none)

    @property
    def held(self) -> Amounts:
        """Number of the task's bonds that are held before each party makes its first commitment, (n, rows)."""
        made = self.opened + self.unopened
        return np.asarray(made.cumsum(axis=0) - made)

    @classmethod
    def joined(cls, parts: Sequence[Games]) -> Games:
        """Concatenate the parts in order."""
        return cls(*(np.concatenate(field) for field in zip(*parts)))


class Looks(NamedTuple):
    """Segments replayed and games played by bystanders; each field is (bystanders, rows). The arrays are
    updated in place.
    """

    replays: Indices
    games: Indices
    segment: Indices
    """The segment that each bystander has drawn for itself."""
    view: Passing
    """What the bystanders see."""


class Checks(NamedTuple):
    """How a task was checked, by row; fields by seat are (V, rows)."""

    accounts: Indices
    """The final holder of each seat, NOBODY for an empty one."""
    drawn: Indices
    """Every account that had a seat or look, including silent ones, (m, rows), padded with NOBODY."""
    attested: Flags
    segments: Segments
    """The seats' segments, (q, V, rows)."""
    sittings: Sequence[Sitting]
    silences: Sequence[Silence]
    games: Games
    named: Segments
    """Segment named by each game, (n, rows); NO_SEGMENT if it names none."""
    won: Flags
    """Whether each game's challenger won, (n, rows)."""
    early: int
    """Number of entries of `games` that were made before the task could stall. They come first in `games`."""
    looks: Looks | None
    """What the bystanders did; None if there are no bystanders."""
    escrow_draws: Amounts
    """Number of seat draws whose fee the escrow pays."""
    stalled: Flags
    """Tasks that were never drawn, or that were not fully attested by the end of the stall period."""
    second: SecondLooks | None
    """The second looks; None if the terms have no looks."""

    @property
    def paid(self) -> Flags:
        """Seats that are attested and have kept their locks, (V, rows)."""
        flags: Flags = self.attested if self.second is None else self.attested & ~self.second.lost
        return flags

    @property
    def convicted(self) -> Flags:
        """Rows in which some challenger won."""
        flags: Flags = np.logical_or.reduce(self.won, axis=0)
        return flags

    @property
    def late(self) -> Flags:
        """Rows convicted after the task had stalled."""
        early: Flags = np.logical_or.reduce(self.won[: self.early], axis=0)
        return self.convicted & ~early

    @property
    def first(self) -> Indices:
        """The first game that wins, which convicts the solver, (rows,). Meaningful only in rows in which a
        game wins.
        """
        return np.asarray(self.won.argmax(axis=0))

    def spoke(self, in_ledger: Callable[[Indices], Indices]) -> Flags:
        """Seats whose accounts have opened a game that was not dismissed, (V, rows). The games of a seat's
        account name a segment of that seat, or no segment.
        """
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
        """Lost games, (n, rows). Early games are lost if no early game won; late games are lost if no game won."""
        late = np.arange(len(self.won)) >= self.early
        before: Flags = ~np.logical_or.reduce(self.won[: self.early], axis=0)
        flags: Flags = np.where(late[:, None], ~self.convicted, before)
        return flags

    @property
    def full(self) -> Flags:
        """Whether every seat is attested, (rows,)."""
        flags: Flags = np.logical_and.reduce(self.attested, axis=0)
        return flags
