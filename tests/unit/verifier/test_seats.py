"""What is due when: actions, duties and segments from a task as the chain shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.chain.views import NOBODY, Duty, TaskStatus, TaskView
from protocol.tasks.task import Terms
from verifier.duties import Action, Observation, action, drawn_segments, open_segments, own_duties

ME, OTHER = "0x" + "11" * 20, "0x" + "22" * 20
NOW = 10_000
BLOCK = 500
WINDOW = 8_191
"""HISTORY_SERVE_WINDOW of EIP-2935: blocks whose hash a contract can learn."""
VIEW = TaskView(
    task=1,
    submitter=OTHER,
    escrow=1,
    stake=2,
    bidder=OTHER,
    status=TaskStatus.SUBMITTED,
    size=9,
    open_games=0,
    bids_until=0,
    train_until=0,
    challenge_until=NOW + 50,
    draw_block=BLOCK,
    price=1,
    overtime=0,
    root=bytes(32),
    result=bytes(32),
)
ROOT = bytes([7]) * 32
TERMS = Terms(
    ROOT,
    ROOT,
    ROOT,
    ROOT,
    1,
    1,
    8,
    50,
    10,
    4,
    100,
    10,
    5,
    1,
    1,
    10,
    90,
    60,
    40,
    5,
    20,
    20,
    1,
    2,
    1,
    1,
    "http://x",
)


def observation(status: TaskStatus = TaskStatus.SUBMITTED, **changes: Any) -> Observation:
    """A task seen at NOW. Fields of the view and of the observation by name."""
    own = {
        name: changes.pop(name)
        for name in ("now", "block", "drawn_at", "duties", "satisfied", "lost")
        if name in changes
    }
    view = replace(VIEW, status=status, **changes)
    return Observation(view, TERMS, **{"now": NOW, "block": BLOCK, **own})


DRAWN: dict[str, Any] = {"drawn_at": NOW - 10}
OVER: dict[str, Any] = {"challenge_until": NOW - 1}
LONG_OVER: dict[str, Any] = {"challenge_until": NOW - 5 - 1}


@pytest.mark.parametrize(
    ("seen", "due"),
    [
        (observation(TaskStatus.BIDDING, bids_until=NOW - 5), None),
        (observation(TaskStatus.BIDDING, bids_until=NOW - 5 - 1), Action.ASSIGN),
        (observation(TaskStatus.TRAINING, train_until=NOW - 5), None),
        (observation(TaskStatus.TRAINING, train_until=NOW - 5 - 1), Action.EXPIRE),
        (observation(TaskStatus.TRAINING, train_until=NOW - 5 - 1, open_games=1), None),
        (observation(block=BLOCK - 1), None),
        (observation(block=BLOCK), Action.DRAW),
        (observation(block=BLOCK + WINDOW - 1), Action.DRAW),
        (observation(block=BLOCK + WINDOW), Action.MISSED),
        (observation(**OVER, lost=True), None),
        (observation(**LONG_OVER, lost=True), Action.VOID),
        (observation(**DRAWN), None),
        (observation(**DRAWN, **OVER, satisfied=True), Action.SETTLE),
        (observation(**DRAWN, **OVER, satisfied=True, open_games=1), None),
        (observation(**DRAWN, **OVER), None),
        (observation(**DRAWN, **LONG_OVER), Action.VOID),
        (observation(**DRAWN, challenge_until=NOW, satisfied=True), None),
        *((observation(status, **LONG_OVER), None) for status in TaskStatus if status.is_over),
    ],
)
def test_the_action_that_is_due(seen: Observation, due: Action | None) -> None:
    assert action(seen) is due


def test_own_duties_are_the_accounts_unattested_ones_while_there_is_time() -> None:
    duties = (Duty(0, ME, 8, True), Duty(1, ME, 3, False), Duty(2, OTHER, 4, False), Duty(3, ME, 5, False))
    seen = observation(**DRAWN, duties=duties)
    assert [duty.number for duty in own_duties(seen, ME)] == [1, 3]
    assert own_duties(replace(seen, now=seen.drawn_at + TERMS.attest_period), ME)
    assert not own_duties(replace(seen, now=seen.drawn_at + TERMS.attest_period + 1), ME)
    assert not own_duties(observation(TaskStatus.SLASHED, **DRAWN, duties=duties), ME)
    assert not own_duties(seen, NOBODY)


def test_a_drawn_segment_is_looked_at_until_the_window_is_over() -> None:
    duties = (Duty(0, ME, 8, True), Duty(1, ME, 5, False), Duty(2, OTHER, 4, False), Duty(3, ME, 3, False))
    seen = observation(**DRAWN, duties=duties)
    assert drawn_segments(seen, ME) == [3, 5]
    late = replace(seen, now=seen.view.challenge_until)
    assert not own_duties(replace(late, now=seen.drawn_at + TERMS.attest_period + 1), ME)
    assert drawn_segments(late, ME) == [3, 5]
    assert not drawn_segments(replace(late, now=late.now + 1), ME)


def test_a_whistleblower_looks_at_every_segment_of_a_submitted_task_until_the_window_is_over() -> None:
    assert list(open_segments(observation())) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert not open_segments(observation(**OVER))
    assert not open_segments(observation(TaskStatus.TRAINING, train_until=NOW + 9))
