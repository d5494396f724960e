"""What the terms of a task may require of a party, as engagements for `admission`: games, seats, answers to looks.
Pure.
"""

from __future__ import annotations

from typing import Final

from protocol.dispute.view import Phase
from protocol.tasks.admission import Engagement, Work
from protocol.tasks.task import DEMANDS, GAMES_AT_ONCE, MOST_MOVES, SPLITS, STEP_TREES, TRACES, Terms

REPLAYS: Final = 2
"""Replays of a segment by one side of a game: for its step tree, and for the traces below."""


def games(name: str, terms: Terms) -> Engagement:
    """A solver's defence in all games of a task that are played at once. Each needs a replay (a third of the rates
    leaves time for its traces) and all answers that may be requested, one after the other, each of which may wait for
    a running step.
    """
    return Engagement(
        name,
        _replays(terms, GAMES_AT_ONCE, MOST_MOVES),
        terms.game_time,
        _step(terms),
        MOST_MOVES,
        program=terms.program_id,
    )


def game(name: str, terms: Terms) -> Engagement:
    """A challenger's side of one game."""
    work = _replays(terms, REPLAYS, MOST_MOVES)
    return Engagement(name, work, terms.game_time, _step(terms), MOST_MOVES, program=terms.program_id)


def seat(name: str, terms: Terms, segments: int, until: int) -> Engagement:
    """The replays of that many segments, each state of which is digested, and the result; attested by `until`."""
    replays = _replays(terms, segments, 1)
    # Of each segment's last state the solver's root too, and all of the result.
    hashed = replays.hashed_bytes // terms.thinning + (segments + 1) * terms.state_bytes
    work = Work(replays.operations, hashed, 1)
    waits, since = segments + 1, until - terms.attest_period
    return Engagement(name, work, terms.attest_period, _step(terms), waits, since, terms.program_id)


def answers(name: str, terms: Terms) -> Engagement:
    """Answers to looks that accuse each segment of a seat at the same time."""
    segments = terms.segments_per_verifier
    work = _replays(terms, segments, 1)
    return Engagement(name, work, terms.move_time, _step(terms), segments, program=terms.program_id)


def moves_left(phase: Phase, depth: int, demands: int) -> int:
    """Answers that a solver may still owe in a game of this phase, `depth` frames down, after that many demands."""
    if phase in (Phase.SPLIT, Phase.BLOCK):
        return SPLITS
    below = TRACES - depth + SPLITS
    return DEMANDS - demands + below + (0 if phase is Phase.FRAME else STEP_TREES)


def _step(terms: Terms) -> Work:
    """The uninterruptible part: a step, and the hashing of its state."""
    return Work(terms.step_operations, terms.state_bytes)


def _replays(terms: Terms, count: int, transactions: int) -> Work:
    """A segment's steps, and hashing each of its states that many times."""
    steps = terms.segment_steps
    return Work(count * steps * terms.step_operations, count * (steps + 1) * terms.state_bytes, transactions)
