"""The report of `assay status` on a task, as text and as data. `status` fills it from the chain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from protocol.chain.views import TaskStatus
from protocol.dispute.looks import is_look
from protocol.node.addresses import parsed
from protocol.node.words import amount, duration, tokens

UNTIL: Final = {
    "bidding": ("ends", "ended"),
    "training": ("due", "was due"),
    "submitted": ("challenges end", "challenges ended"),
    "unpaid": ("challenges end", "challenges ended"),
}
"""For each status, the words that introduce its deadline: first those for a deadline that is still ahead,
then those for one that has passed.
"""
OVER: Final = {
    "settled": "the solver is paid",
    "void": "not paid, for its seats or its data failed",
    "slashed": "a number of the solver's was wrong",
    "unpaid": "may be challenged still, and is not paid",
}
"""Explanations of statuses whose names do not suffice."""


@dataclass(frozen=True)
class GameStatus:
    """One game. `path` holds the call instructions that the game descended into; `phase` is "waiting" while
    no clock runs.
    """

    game: int
    challenger: str
    phase: str
    verdict: str
    segment: int
    step: int
    path: tuple[int, ...]
    seconds_left: int | None


@dataclass(frozen=True)
class SeatStatus:
    """One seat or look. `account` is None if no account has it now: nobody was found for it, its account was
    silent and the next draw is not executed yet, or its salt was shown. `caught` says whether its lock is
    lost. `seconds_left` is None once nothing more is awaited from the seat or look.
    """

    seat: int
    account: str | None
    segments: tuple[int, ...]
    attested: bool
    caught: bool
    seconds_left: int | None

    @property
    def name(self) -> str:
        """The name of the seat or look in printed lines."""
        return f"{'look' if is_look(self.seat) else 'seat'} {self.seat}"

    def line(self) -> str:
        """The seat in words."""
        left = self.seconds_left
        if self.attested:
            state = "attested, and its lock lost" if self.caught else "attested"
        elif left is None:
            state = "not attested"
        else:
            state = f"{duration(left)} left" if left >= 0 else "to be drawn again"
        segments = ", ".join(map(str, self.segments))
        return f"{self.name}: {self.account or 'nobody found'}, segments {segments}; {state}"


class JuryStep(StrEnum):
    """What an open jury waits for."""

    DRAW = "draw"
    VOTES = "votes"
    OBJECTION = "objection"
    OPENINGS = "openings"
    VERDICT = "verdict"


@dataclass(frozen=True)
class JuryStatus:
    """A claim on which a jury votes: a seat or look says that it cannot fetch an item. `jurors` is the size
    of the jury. The item is the state with number `state`, or the constants if `state` is None.
    `seconds_left` is the time left for what is `awaited`; it is None while a draw or the verdict is awaited.
    """

    seat: int
    state: int | None
    jurors: int
    yes: int
    no: int
    awaited: JuryStep
    seconds_left: int | None

    def line(self) -> str:
        """The claim in words."""
        item = "the constants" if self.state is None else f"state {self.state}"
        left = duration(self.seconds_left or 0)
        votes = f"{self.yes} of {self.jurors} jurors have it, {self.no} do not"
        state = {
            JuryStep.DRAW: "a jury is to be drawn",
            JuryStep.VOTES: f"{votes}; {left} left to vote",
            JuryStep.OBJECTION: f"{votes}; {left} left for the claimant to object",
            JuryStep.OPENINGS: f"{votes}; {left} left to open a chunk",
            JuryStep.VERDICT: f"{votes}; the verdict is due",
        }[self.awaited]
        name = "look" if is_look(self.seat) else "seat"
        return f"{name} {self.seat} claims that it cannot fetch {item}: {state}"


@dataclass(frozen=True)
class TaskStatusReport:
    """One task. Times are seconds from now, or None if they do not matter; amounts are token units.
    `most_bid` is the highest possible next bid; None if no more bids are taken. `awaited_round` is the
    beacon's round for which a draw waits. `market` is the address of a market contract, and `task` is the
    task's number in this market; each market numbers its tasks from 1. `name` is the submitter's name for the
    task; None if the task's bundle is not in the home folder. For a task that is over, seats, looks and games
    may be left out.
    """

    market: str
    task: int
    name: str | None
    status: str
    submitter: str
    solver: str | None
    endpoint: str | None
    price: int | None
    most_bid: int | None
    budget: int
    checkpoints: int
    segments: int
    segment_steps: int
    seconds_left: int | None
    result: bytes | None
    awaited_round: int | None
    seats: tuple[SeatStatus, ...]
    looks: tuple[SeatStatus, ...]
    jury: JuryStatus | None
    games: tuple[GameStatus, ...]

    def lines(self) -> Iterator[str]:
        """The task in words."""
        yield f"{self._title}{self._until}; checkpoint {self.checkpoints} of {self.segments}"
        yield f"  {self._price}; submitter {self.submitter}"
        if self.most_bid is not None:
            yield f"  the next bid must be at most {tokens(self.most_bid, at_most=True)}"
        if self.solver is not None:
            yield f"  solver {self.solver} at {parsed(self.endpoint or '') or 'no announced address'}"
        if self.awaited_round is not None:
            yield f"  a draw waits for round {self.awaited_round} of the beacon, and for the draws before it"
        for seat in (*self.seats, *self.looks):
            yield f"  {seat.line()}"
        if self.jury is not None:
            yield f"  {self.jury.line()}"
        for game in self.games:
            where = f"segment {game.segment or '?'}, step {game.step or '?'}"
            calls = f", calls {'/'.join(map(str, game.path))}" if game.path else ""
            end = f", {game.verdict}" if game.phase == "closed" else f", {game.phase}"
            left = "" if game.seconds_left is None else f", {duration(game.seconds_left)} left"
            yield f"  game {game.game}: {where}{calls}{end}{left}; challenger {game.challenger}"

    @property
    def is_over(self) -> bool:
        """Whether the task has ended, so that its status no longer changes."""
        return TaskStatus[self.status.upper()].is_over

    def brief(self) -> str:
        """One line for a task that is over."""
        return f"{self._title}; {self._price}"

    @property
    def _title(self) -> str:
        name = "" if self.name is None else f" ({self.name})"
        why = OVER.get(self.status, "")
        if self.status == "refunded":
            why = "nobody has bid" if self.solver is None else "the solver missed its deadline"
        return f"task {self.task}{name}: {self.status}" + (f", {why}" if why else "")

    @property
    def _until(self) -> str:
        """The deadline of the present status in words; empty if there is none."""
        left = self.seconds_left
        if left is None or self.status not in UNTIL:
            return ""
        ahead, behind = UNTIL[self.status]
        return f", {ahead} in {duration(left)}" if left >= 0 else f", {behind} {duration(-left)} ago"

    @property
    def _price(self) -> str:
        if self.price is not None:
            return f"price {amount(self.price)} of {tokens(self.budget)}"
        waits = self.status == "bidding" and (self.seconds_left or 0) >= 0
        return f"{'no bid yet' if waits else 'no bid'} for {tokens(self.budget)}"
