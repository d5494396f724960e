"""Second looks: other accounts replay some segments of attested seats, and an account that cannot open its
digest loses its lock (audit.md section 6).

A look is picked, drawn and attested, and can itself be looked at on the next level. This module makes all
decisions; `sim.engine.look_ends` books them. Arrays are (V q, rows): a slot for each segment of each seat, in
the seats' order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from protocol.dispute.looks import LEVELS
from sim.agents.verifiers import Check, Seats
from sim.engine.streams import Stream
from sim.mechanism.arrays import Flags, Indices
from sim.mechanism.draw import NOBODY, Segments

if TYPE_CHECKING:
    from sim.engine.checking import Checker
    from sim.engine.task import Task

LOOK_TRIES: Final = 3
"""Maximum number of draws for the looks of a level. A look whose account is still silent after the last draw
lapses.
"""


class Board(NamedTuple):
    """A task's state after its last attestation."""

    asked: Flags
    """Whether every seat is attested, (rows,). If so, a draw of looks is requested. The draw is paid for, no
    matter how the task ends.
    """
    open: Flags
    """Whether every seat is attested and nobody has won a game, (rows,)."""
    holders: Indices
    """Accounts of the seats, (V, rows)."""
    replayed: Flags
    """Whether each holder has replayed its segments, (V, rows). Only a holder that has replayed can open its
    digest.
    """
    segments: Segments
    """The seats' segments, (q, V, rows)."""
    bound: Indices
    """All accounts that the task has drawn, (m, rows)."""


class Attempt(NamedTuple):
    """One draw of a level's lookers."""

    accounts: Indices
    """The accounts drawn. NOBODY in slots that this draw was not asked to fill, and in slots that it could
    not fill.
    """
    check: Check
    """The accounts' actions."""

    @property
    def acts(self) -> Flags:
        """Accounts that were not silent."""
        acts: Flags = self.check.attests | self.check.challenges
        return acts

    @property
    def silent(self) -> Flags:
        """Accounts that were silent."""
        silent: Flags = (self.accounts != NOBODY) & ~self.acts
        return silent


class Level(NamedTuple):
    """All looks of one level."""

    drawn: Flags
    """Tasks that had a draw for this level, (rows,)."""
    attempts: Sequence[Attempt]
    lookers: Indices
    """For each look, the account that attested or challenged in one of the draws; NOBODY if none did."""
    targets: Indices
    """The account that each look checks; arbitrary in slots without a look."""
    revealed: Flags
    """Targets that showed their secrets."""
    accused: Flags
    """Targets that could not answer an accusation; their locks are lost."""
    answered: Flags
    """Targets that were accused and could answer; they receive the accusation's bond."""
    hidden: Flags
    """Targets that did not reveal; their locks are lost."""
    segments: Segments
    """The looks' segments."""
    opened: Flags
    """Looks in which the looker opened a game against the solver."""
    right: Flags
    """Looks in which the looker found a false segment and opened a game."""


class SecondLooks(NamedTuple):
    """All looks of a round's tasks."""

    levels: Sequence[Level]
    lost: Flags
    """Seats that lost their lock and fee, (V, rows)."""

    @property
    def accounts(self) -> Indices:
        """All drawn accounts, (m, rows)."""
        drawn = [attempt.accounts for level in self.levels for attempt in level.attempts]
        return np.concatenate([np.empty((0, self.lost.shape[1]), dtype=np.int64), *drawn])


def look(checker: Checker, task: Task, board: Board, luck: Stream) -> SecondLooks:
    """Play the looks level by level, at most `LEVELS` levels. In each row, no more looks are picked once a
    level has no attested look, once V q looks are picked, or once a looker has opened a game against the
    solver.
    """
    each = checker.parameters.segments_per_verifier
    targets = np.repeat(board.holders, each, axis=0)
    skipped = np.repeat(~board.replayed, each, axis=0)
    segments = board.segments.transpose(1, 0, 2).reshape(targets.shape)
    levels: list[Level] = []
    bound, goes_on = board.bound, board.open
    candidates = np.broadcast_to(board.asked, targets.shape)
    left = np.full(board.open.shape, len(targets))
    lost = np.zeros_like(targets, dtype=np.bool_)
    for number in range(LEVELS):
        if not candidates.any():
            break
        numbers = luck.of(number)
        picked = checker.picks(candidates & goes_on, left, numbers)
        left = left - picked.sum(axis=0)
        attempts = _staff(checker, task, picked, segments, bound, numbers)
        drawn: Flags = np.logical_or.reduce(candidates, axis=0)
        level = _judge(checker, task, attempts, targets, skipped, segments)._replace(drawn=drawn)
        if not levels:
            level = _once(level, each)
            lost = level.accused | level.hidden
        levels.append(level)
        bound = np.concatenate([bound, *(attempt.accounts for attempt in attempts)])
        candidates = (level.lookers != NOBODY) & (left > 0)
        goes_on = goes_on & ~level.opened.any(axis=0)
        targets, skipped = level.lookers, ~_replayed(attempts, targets.shape)
    seats: Flags = np.logical_or.reduce(lost.reshape(-1, each, lost.shape[1]), axis=1)
    return SecondLooks(levels, seats)


def _staff(
    checker: Checker, task: Task, picked: Flags, segments: Segments, bound: Indices, luck: Stream
) -> list[Attempt]:
    """Draw lookers, and redraw silent ones. A look for which nobody is found lapses at once."""
    attempts: list[Attempt] = []
    asked = picked
    served = np.broadcast_to(task.work.serves, picked.shape)
    while asked.any() and len(attempts) < LOOK_TRIES:
        accounts = checker.lookers(asked, bound, luck)
        there = (accounts != NOBODY) & checker.online(luck.uniform(len(picked)))
        view = Seats(
            checker.parameters,
            served,
            segments <= task.work.false,
            np.ones_like(picked),
            luck.uniform(len(picked)),
            task.prices.gas,
            task.prices.work,
        )
        attempts.append(Attempt(accounts, checker.looks(view, accounts, there)))
        asked = attempts[-1].silent
        bound = np.concatenate([bound, accounts])
    return attempts


def _judge(
    checker: Checker,
    task: Task,
    attempts: Sequence[Attempt],
    targets: Indices,
    skipped: Flags,
    segments: Segments,
) -> Level:
    """Decide which account acted in each look, and which targets lose a lock to their looker.

    If the solver's states are right and the target reveals, a looker that replays recognises a made-up digest
    and accuses the target. If the states are wrong, nobody is accused, because the solver is convicted
    instead. Every accusation shows a chunk, so only a looker that replays can accuse, rightly or wrongly. A
    wrongly accused target has replayed, so it can answer.
    """
    shape = targets.shape
    lookers = np.full(shape, NOBODY, dtype=np.int64)
    opened, right = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    false = segments <= task.work.false
    for accounts, check in attempts:
        acts = check.attests | check.challenges
        lookers[acts] = accounts[acts]
        opened |= check.challenges
        right |= check.challenges & check.replays & false
    looked = lookers != NOBODY
    shows = checker.reveals(targets)
    shown = looked & shows & _replayed(attempts, shape) & ~false & ~opened
    return Level(
        drawn=np.zeros(shape[1], dtype=np.bool_),
        attempts=attempts,
        lookers=lookers,
        targets=targets,
        revealed=looked & shows,
        accused=shown & skipped,
        answered=shown & ~skipped & checker.accuses(lookers),
        hidden=looked & ~shows,
        segments=segments,
        opened=opened,
        right=right,
    )


def _replayed(attempts: Sequence[Attempt], shape: tuple[int, ...]) -> Flags:
    """Looks whose attesting account replayed."""
    replayed: Flags = np.zeros(shape, dtype=np.bool_)
    for _, check in attempts:
        replayed |= check.attests & check.replays
    return replayed


def _once(level: Level, each: int) -> Level:
    """For each seat, keep only the first look that takes the seat's lock. A seat has only one lock, so later
    looks at the seat get nothing.
    """
    wanted = (level.accused | level.hidden).reshape(-1, each, level.accused.shape[1])
    first = (wanted & (wanted.cumsum(axis=1) == 1)).reshape(level.accused.shape)
    return level._replace(accused=level.accused & first, hidden=level.hidden & first)
