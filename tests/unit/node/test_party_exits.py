"""Which call is due on a task, by its status, its deadlines, its audit and its games."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.beacon.networks import DEVELOPMENT
from protocol.chain.deployment import Deployment
from protocol.chain.parameters import DEVNET
from protocol.chain.views import NEVER, NOBODY, AuditView, Seat, TaskStatus, TaskView
from protocol.node.party.exits import Exit, Observation, exit_due, is_stalled
from protocol.tasks.task import ESCROW_DRAWS

VERIFIER = "0x" + "01" * 20
DEPLOYMENT = cast(
    Deployment, SimpleNamespace(beacon=DEVELOPMENT, parameters=replace(DEVNET, stall_period=1_000))
)
"""A deployment whose beacon publishes round r at second r."""
END = 500
"""Last second of the period in which bids, training or challenges are allowed."""
DRAWN, UNTIL = 300, 400
"""The second in which the seats were drawn, and the last second in which they may attest."""


def seen(
    status: TaskStatus, now: int, audit: AuditView | None = None, *seats: Seat, **view: Any
) -> Observation:
    fields: dict[str, Any] = {
        "task": 7,
        "submitter": NOBODY,
        "escrow": 1,
        "stake": 2,
        "bidder": NOBODY,
        "status": status,
        "size": 4,
        "open_games": 0,
        "bids_until": END,
        "train_until": END,
        "challenge_until": END,
        "owes_draw": False,
        "price": 1,
        "overtime": 0,
        "root": b"",
        "result": b"",
    }
    return Observation(TaskView(**(fields | view)), now, audit, seats)


def audit(**changes: Any) -> AuditView:
    """An audit with one draw, which the escrow paid for."""
    drawn = AuditView(
        pool=(0,) * 16,
        version=1,
        round=DRAWN,
        drawn_at=DRAWN,
        until=UNTIL,
        draws=1,
        attested=0,
        pending=False,
        escrow_draws=1,
        purse=0,
        informed_at=0,
        level=0,
        look_draws=0,
        looks=0,
        looking=0,
        looked=0,
        picked_at=0,
        claimant=0,
        audited=False,
        seed=b"seed",
    )
    return replace(drawn, **changes)


def seat(number: int, account: str = VERIFIER, attested: bool = False, until: int = UNTIL) -> Seat:
    return Seat(number, account, 1, until, attested, False, False)


def due(observation: Observation, grace: int = 0) -> Exit | None:
    return exit_due(observation, DEPLOYMENT, grace)


@pytest.mark.parametrize(
    ("status", "what"),
    [
        (TaskStatus.BIDDING, Exit.ASSIGN),
        (TaskStatus.TRAINING, Exit.EXPIRE),
        (TaskStatus.UNPAID, Exit.CLOSE),
        (TaskStatus.SETTLED, None),
        (TaskStatus.REFUNDED, None),
        (TaskStatus.VOID, None),
        (TaskStatus.SLASHED, None),
    ],
)
def test_a_deadline_of_a_status_ends_it_in_the_second_after(status: TaskStatus, what: Exit | None) -> None:
    assert due(seen(status, END)) is None
    assert due(seen(status, END + 1)) is what
    assert due(seen(status, END + 5), grace=5) is None
    assert due(seen(status, END + 6), grace=5) is what


def test_a_stalled_task_waits_for_its_games() -> None:
    stalled = seen(TaskStatus.UNPAID, END + 1)
    assert due(seen(TaskStatus.UNPAID, END + 1, open_games=1)) is None
    assert due(replace(stalled, accusations=1)) is Exit.CLOSE, "what looks accuse of is moot"


@pytest.mark.parametrize("drawn_at", [0, DRAWN])
def test_a_draw_waits_for_its_round_and_for_nothing_else(drawn_at: int) -> None:
    pending = audit(pending=True, round=450, drawn_at=drawn_at)
    seats = (seat(0),) if drawn_at else ()
    for now, what in ((449, None), (450, Exit.DRAW), (10**6, Exit.DRAW)):
        assert due(seen(TaskStatus.SUBMITTED, now, pending, *seats, challenge_until=NEVER)) is what
        assert (
            due(seen(TaskStatus.SUBMITTED, now, pending, *seats, challenge_until=NEVER, open_games=1)) is what
        )


def test_a_task_whose_seats_are_all_attested_is_settled_after_the_window_and_the_games() -> None:
    both, seats = audit(attested=2, audited=True), (seat(0, attested=True), seat(1, attested=True))
    assert due(seen(TaskStatus.SUBMITTED, END, both, *seats)) is None
    assert due(seen(TaskStatus.SUBMITTED, END + 1, both, *seats, open_games=1)) is None
    assert due(seen(TaskStatus.SUBMITTED, END + 1, both, *seats)) is Exit.SETTLE


@pytest.mark.parametrize(
    ("status", "what"), [(TaskStatus.SUBMITTED, Exit.SETTLE), (TaskStatus.UNPAID, Exit.CLOSE)]
)
def test_a_task_does_not_end_before_the_last_answer_was_due(status: TaskStatus, what: Exit) -> None:
    last = END + 30
    task = seen(status, last, audit(attested=1, audited=True), seat(0, attested=True))
    answered = replace(task, answers_until=last)
    assert due(answered) is None
    assert due(replace(answered, now=last + 1)) is what
    assert due(replace(task, answers_until=END - 30)) is what


@pytest.mark.parametrize("attested", [True, False])
def test_of_a_task_that_is_over_a_draw_alone_is_due(attested: bool) -> None:
    over, last = audit(attested=int(attested)), seat(0, attested=attested)
    for status in (TaskStatus.SETTLED, TaskStatus.VOID, TaskStatus.SLASHED):
        assert due(seen(status, 10**6, over, last)) is None
        assert due(seen(status, 10**6, replace(over, pending=True), last)) is Exit.DRAW


@pytest.mark.parametrize("late", [seat(1), seat(1, NOBODY)])
def test_a_seat_that_is_silent_or_empty_is_drawn_again_once_its_time_is_over(late: Seat) -> None:
    one, done = audit(attested=1), seat(0, attested=True)
    assert due(seen(TaskStatus.SUBMITTED, UNTIL, one, done, late)) is None
    for games in (0, 1):
        assert due(seen(TaskStatus.SUBMITTED, UNTIL + 1, one, done, late, open_games=games)) is Exit.REDRAW
    assert due(seen(TaskStatus.SUBMITTED, 10**6, one, done, replace(late, until=10**6))) is None
    assert due(seen(TaskStatus.SUBMITTED, DRAWN + 1_001, one, done, late)) is Exit.STALL


def test_when_the_escrow_has_paid_its_draws_a_silent_seat_pays_and_an_empty_one_ends_the_task() -> None:
    paid = audit(attested=0, escrow_draws=ESCROW_DRAWS)
    silent, empty = seat(0), seat(1, NOBODY)
    assert due(seen(TaskStatus.SUBMITTED, UNTIL + 1, paid, silent, empty)) is Exit.REDRAW
    in_time = replace(silent, until=END + 1)
    assert due(seen(TaskStatus.SUBMITTED, END, paid, in_time, empty)) is None
    assert due(seen(TaskStatus.SUBMITTED, END + 1, paid, in_time, empty)) is Exit.VOID
    assert due(seen(TaskStatus.SUBMITTED, END + 1, paid, in_time, empty, open_games=1)) is None


def test_a_seat_that_an_informer_emptied_is_drawn_again_whatever_the_escrow_has_paid() -> None:
    left = audit(attested=1, escrow_draws=ESCROW_DRAWS, purse=7, informed_at=END)
    seats = seat(0, attested=True), seat(1, NOBODY)
    assert due(seen(TaskStatus.SUBMITTED, END + 1, left, *seats)) is Exit.REDRAW
    assert due(seen(TaskStatus.SUBMITTED, END + 1, replace(left, purse=0), *seats)) is Exit.VOID


def test_the_stall_period_counts_anew_when_an_informer_empties_a_seat() -> None:
    left, seats = audit(attested=1, informed_at=DRAWN + 500), (seat(0, attested=True), seat(1, NOBODY))
    assert not is_stalled(seen(TaskStatus.SUBMITTED, DRAWN + 1_500, left, *seats), DEPLOYMENT)
    assert is_stalled(seen(TaskStatus.SUBMITTED, DRAWN + 1_501, left, *seats), DEPLOYMENT)


def test_a_task_stalls_a_stall_period_after_its_round_or_after_its_draw() -> None:
    undrawn = audit(pending=True, round=450, drawn_at=0)
    assert not is_stalled(seen(TaskStatus.SUBMITTED, 1_450, undrawn), DEPLOYMENT)
    assert is_stalled(seen(TaskStatus.SUBMITTED, 1_451, undrawn), DEPLOYMENT)
    one, done = audit(attested=1), seat(0, attested=True)
    assert not is_stalled(seen(TaskStatus.SUBMITTED, DRAWN + 1_000, one, done, seat(1)), DEPLOYMENT)
    assert is_stalled(seen(TaskStatus.SUBMITTED, DRAWN + 1_001, one, done, seat(1)), DEPLOYMENT)
    assert not is_stalled(seen(TaskStatus.SUBMITTED, 10**6, one, done), DEPLOYMENT)
    assert not is_stalled(seen(TaskStatus.UNPAID, 10**6), DEPLOYMENT)


def test_nothing_but_its_draw_is_due_while_a_jury_sits() -> None:
    """The draw of the jury is due. Once the jury is drawn, any party may fetch its verdict, but no exit is
    due. The claimant does not count as silent.
    """
    late = seat(0, until=UNTIL)
    asked = audit(claimant=1, pending=True, round=UNTIL)
    assert due(seen(TaskStatus.SUBMITTED, UNTIL - 1, asked, late)) is None
    assert due(seen(TaskStatus.SUBMITTED, UNTIL, asked, late)) is Exit.DRAW
    sits = audit(claimant=1)
    assert due(seen(TaskStatus.SUBMITTED, 10**6, sits, late)) is None
    assert not is_stalled(seen(TaskStatus.SUBMITTED, 10**6, sits, late), DEPLOYMENT)
    assert not is_stalled(seen(TaskStatus.SUBMITTED, UNTIL + 1_000, asked, late), DEPLOYMENT)
    assert is_stalled(seen(TaskStatus.SUBMITTED, UNTIL + 1_001, asked, late), DEPLOYMENT)
