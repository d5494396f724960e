"""What is due when: actions, duties and segments from a task as the chain shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from protocol.chain.views import NOBODY, Duty, TaskStatus, TaskView
from protocol.tasks.task import Terms
from verifier.duties import GRACE, HISTORY, Action, Sight, action, open_segments, own_duties

ME, OTHER = "0x" + "11" * 20, "0x" + "22" * 20
NOW = 10_000
BLOCK = 500
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
    20,
    20,
    1,
    2,
    1,
    1,
    "http://x",
)


def sight(status: TaskStatus = TaskStatus.SUBMITTED, **changes: Any) -> Sight:
    """A task seen at NOW. Fields of the view and of the sight by name."""
    own = {
        name: changes.pop(name)
        for name in ("now", "block", "drawn_at", "duties", "satisfied", "lost")
        if name in changes
    }
    view = replace(VIEW, status=status, **changes)
    return Sight(view, TERMS, **{"now": NOW, "block": BLOCK, **own})


DRAWN: dict[str, Any] = {"drawn_at": NOW - 10}
OVER: dict[str, Any] = {"challenge_until": NOW - 1}
LONG_OVER: dict[str, Any] = {"challenge_until": NOW - GRACE - 1}


@pytest.mark.parametrize(
    ("seen", "due"),
    [
        (sight(TaskStatus.BIDDING, bids_until=NOW - GRACE), None),
        (sight(TaskStatus.BIDDING, bids_until=NOW - GRACE - 1), Action.ASSIGN),
        (sight(TaskStatus.TRAINING, train_until=NOW - GRACE), None),
        (sight(TaskStatus.TRAINING, train_until=NOW - GRACE - 1), Action.EXPIRE),
        (sight(TaskStatus.TRAINING, train_until=NOW - GRACE - 1, open_games=1), None),
        (sight(block=BLOCK - 1), None),
        (sight(block=BLOCK), Action.DRAW),
        (sight(block=BLOCK + HISTORY - 1), Action.DRAW),
        (sight(block=BLOCK + HISTORY), Action.MISSED),
        (sight(**OVER, lost=True), None),
        (sight(**LONG_OVER, lost=True), Action.VOID),
        (sight(**DRAWN), None),
        (sight(**DRAWN, **OVER, satisfied=True), Action.SETTLE),
        (sight(**DRAWN, **OVER, satisfied=True, open_games=1), None),
        (sight(**DRAWN, **OVER), None),
        (sight(**DRAWN, **LONG_OVER), Action.VOID),
        (sight(**DRAWN, challenge_until=NOW, satisfied=True), None),
        *((sight(status, **LONG_OVER), None) for status in TaskStatus if status.is_over),
    ],
)
def test_the_chore_that_is_due(seen: Sight, due: Action | None) -> None:
    assert action(seen) is due


def test_own_duties_are_the_accounts_unattested_ones_while_there_is_time() -> None:
    duties = (Duty(0, ME, 8, True), Duty(1, ME, 3, False), Duty(2, OTHER, 4, False), Duty(3, ME, 5, False))
    seen = sight(**DRAWN, duties=duties)
    assert [duty.number for duty in own_duties(seen, ME)] == [1, 3]
    assert own_duties(replace(seen, now=seen.drawn_at + TERMS.attest_period), ME)
    assert not own_duties(replace(seen, now=seen.drawn_at + TERMS.attest_period + 1), ME)
    assert not own_duties(sight(TaskStatus.SLASHED, **DRAWN, duties=duties), ME)
    assert not own_duties(seen, NOBODY)


def test_a_whistleblower_looks_at_every_segment_of_a_submitted_task_until_the_window_is_over() -> None:
    assert list(open_segments(sight())) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert not open_segments(sight(**OVER))
    assert not open_segments(sight(TaskStatus.TRAINING, train_until=NOW + 9))
