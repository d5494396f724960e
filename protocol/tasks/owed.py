"""The work that a task's terms may require of a party, as engagements for `admission`: games, seats, and answers to
looks. Pure.
"""

from __future__ import annotations

from typing import Final

from protocol.dispute.view import Phase
from protocol.tasks.admission import Engagement, Work
from protocol.tasks.task import DEMANDS, GAMES_AT_ONCE, MOST_MOVES, SPLITS, STEP_TREES, TRACES, Terms

REPLAYS: Final = 2
"""Replays of a segment by one side of a game: one for its step tree, one for the traces of its steps."""


def games(name: str, terms: Terms) -> Engagement:
    """A solver's defence in all games of a task that can be played at once. Each game needs one replay; the
    traces fit because admission counts on a third of the rates. All answers that one game may request are
    sent one after the other, and each may wait for a running step.
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
    """A seat's work: replay `segments` segments, digest each state and the result, and attest by `until`."""
    replays = _replays(terms, segments, 1)
    # The last state of each segment and the result are also hashed whole; the former gives the solver's root.
    hashed = replays.hashed_bytes // terms.thinning + (segments + 1) * terms.state_bytes
    work = Work(replays.operations, hashed, 1)
    waits, since = segments + 1, until - terms.attest_period
    return Engagement(name, work, terms.attest_period, _step(terms), waits, since, terms.program_id)


def answers(name: str, terms: Terms) -> Engagement:
    """A seat's answers if looks accuse each of its segments at the same time."""
    segments = terms.segments_per_verifier
    work = _replays(terms, segments, 1)
    return Engagement(name, work, terms.move_time, _step(terms), segments, program=terms.program_id)


def moves_left(phase: Phase, depth: int, demands: int) -> int:
    """Maximum number of answers that a solver may still owe in a game that is in this phase, `depth` frames
    down, after `demands` demands."""
    if phase in (Phase.SPLIT, Phase.BLOCK):
        return SPLITS
    below = TRACES - depth + SPLITS
    return DEMANDS - demands + below + (0 if phase is Phase.FRAME else STEP_TREES)


def _step(terms: Terms) -> Work:
    """The work of one step and of hashing its state: the longest part that is not interrupted."""
    return Work(terms.step_operations, terms.state_bytes)


def _replays(terms: Terms, count: int, transactions: int) -> Work:
    """The work of replaying `count` segments and hashing all of their states, with `transactions` transactions."""
    steps = terms.segment_steps
    return Work(count * steps * terms.step_operations, count * (steps + 1) * terms.state_bytes, transactions)
