"""The work that a task's terms may require of a party, as engagements for `admission`: games, seats, and
answers to looks. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from protocol.dispute.view import Phase
from protocol.tasks.admission import Engagement, Work
from protocol.tasks.task import DEMANDS, GAMES_AT_ONCE, MOST_MOVES, SPLITS, STEP_TREES, TRACES, Terms

if TYPE_CHECKING:
    from protocol.program.cost import Cost

REPLAYS: Final = 2
"""How often one side of a game replays a segment: once for its step tree, and once for the traces of its steps."""
VALUES: Final = DEMANDS + 2 * SPLITS
"""The most values that a solver must hash or read in one game. Each demand needs one, because only the last
value's tree is kept, and a challenger may alternate between nodes of two values. Each round of a split needs
at most two more. The time to compute the words of a split is not counted separately, because hashing the
values from which the words are computed takes longer.
"""
HASHED: Final = 7
"""A step has at least this many operations for each byte of a path of frames. Equal to
`protocol.program.cost.HASHED`, which is not used here because it needs torch.
"""


@dataclass(frozen=True, slots=True)
class Traces:
    """What one game needs besides replays: the traces of one path of frames, and answers about the values of
    these frames. A replay does none of this work.

    `eager` and `called` are numbers of operations: `Cost.eager_operations` and `Cost.called_operations`.
    Calls run in the same way as in a step, so the speed of steps tells how long the `called` operations take.
    It does not tell how long the rest of the work takes. `hashed_bytes` is `Cost.path_bytes`, and
    `value_bytes` is the size of the largest value.
    """

    eager: int = 0
    called: int = 0
    hashed_bytes: int = 0
    value_bytes: int = 0

    @classmethod
    def of(cls, cost: Cost) -> Traces:
        """The traces of a program with this cost."""
        return cls(cost.eager_operations, cost.called_operations, cost.path_bytes, cost.value_bytes)

    @classmethod
    def at_most(cls, terms: Terms) -> Traces:
        """The largest traces that the terms allow, for a task whose program is not known. They belong to a
        path of one frame that runs as many operations as the step. The path has the most bytes that the
        step's operations allow (one for every `HASHED` operations), and all of these bytes belong to one
        value.
        """
        bytes_ = terms.step_operations // HASHED
        return cls(terms.step_operations, 0, bytes_, bytes_)

    @property
    def answer(self) -> Work:
        """The longest answer: to trace the path again and read two values."""
        return Work(self.called, self.hashed_bytes + 2 * self.value_bytes, eager=self.eager)

    def in_games(self, count: int) -> Work:
        """The work in this many games."""
        hashed = self.hashed_bytes + VALUES * self.value_bytes
        return Work(count * self.called, count * hashed, eager=count * self.eager)


def games(name: str, terms: Terms, traces: Traces | None = None) -> Engagement:
    """A solver's defence in as many games of a task as can be played at once. For each game, the work has one
    replay and the `traces` of the task's program; by default, these traces are the most that the terms allow.
    A game may also need a second replay, of the steps up to the traced one. The work does not include it, but
    there is time for it, because admission uses only a third of the rates. All answers that one game may
    request are sent one after the other, and each may wait for a running step or answer.
    """
    known = Traces.at_most(terms) if traces is None else traces
    replays, answers = _replays(terms, GAMES_AT_ONCE, MOST_MOVES), known.in_games(GAMES_AT_ONCE)
    work = Work(
        replays.operations + answers.operations,
        replays.hashed_bytes + answers.hashed_bytes,
        MOST_MOVES,
        answers.eager,
    )
    return Engagement(
        name,
        work,
        terms.game_time,
        _step(terms),
        MOST_MOVES,
        program=terms.program_id,
        answer=known.answer,
    )


def game(name: str, terms: Terms) -> Engagement:
    """A challenger's side of one game: its replays, and the trace of one path of frames. The trace takes at
    most as many operations as a step. Its time is computed with the speed that is assumed for any program
    (`Rates.operations`).
    """
    work = replace(_replays(terms, REPLAYS, MOST_MOVES), eager=terms.step_operations)
    return Engagement(
        name,
        work,
        terms.game_time,
        _step(terms),
        MOST_MOVES,
        program=terms.program_id,
        answer=Work(eager=terms.step_operations),
    )


def seat(name: str, terms: Terms, segments: int, until: int) -> Engagement:
    """A seat's work: replay `segments` segments, digest each state and the result, and attest by `until`."""
    replays = _replays(terms, segments, 1)
    # The last state of each segment and the result are also hashed whole; the former gives the solver's root.
    hashed = replays.hashed_bytes // terms.thinning + (segments + 1) * terms.state_bytes
    work = Work(replays.operations, hashed, 1)
    waits, since = segments + 1, until - terms.attest_period
    return Engagement(name, work, terms.attest_period, _step(terms), waits, since, terms.program_id)


def answers(name: str, terms: Terms) -> Engagement:
    """A seat's answers if looks accuse all of its segments at the same time."""
    segments = terms.segments_per_verifier
    work = _replays(terms, segments, 1)
    return Engagement(name, work, terms.move_time, _step(terms), segments, program=terms.program_id)


def moves_left(phase: Phase, depth: int, demands: int) -> int:
    """Maximum number of answers that a solver may still owe in a game. The game is in this phase, has
    descended `depth` frames below the top frame, and has had `demands` demands so far.
    """
    if phase in (Phase.SPLIT, Phase.BLOCK):
        return SPLITS
    below = TRACES - depth + SPLITS
    return DEMANDS - demands + below + (0 if phase is Phase.FRAME else STEP_TREES)


def _step(terms: Terms) -> Work:
    """The work of one step and of hashing its state, which is the longest part that is not interrupted."""
    return Work(terms.step_operations, terms.state_bytes)


def _replays(terms: Terms, count: int, transactions: int) -> Work:
    """The work of replaying `count` segments, hashing all of their states, and sending the given number of
    transactions.
    """
    steps = terms.segment_steps
    return Work(count * steps * terms.step_operations, count * (steps + 1) * terms.state_bytes, transactions)
