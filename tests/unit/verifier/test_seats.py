"""What a verifier owes in its seats, from a task as the chain shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from protocol.chain.views import NEVER, NOBODY, AuditView, Seat, TaskStatus, TaskView
from protocol.node.party.exits import Observation
from verifier.seats import attestable, due_by, open_segments, own_seats, releasable

ME, MINE_TOO, OTHER = "0x" + "11" * 20, "0x" + "33" * 20, "0x" + "22" * 20
ACCOUNTS = {ME, MINE_TOO}
NOW = 10_000
UNTIL = NOW + 30
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
    owes_draw=False,
    price=1,
    overtime=0,
    root=bytes(32),
    result=bytes(32),
)
AUDIT = AuditView(
    pool=(1,) + (0,) * 15,
    version=1,
    round=NOW - 15,
    drawn_at=NOW - 10,
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
    seed=bytes([7]) * 32,
)


def seat(
    number: int, account: str = ME, until: int = UNTIL, attested: bool = False, released: bool = False
) -> Seat:
    """A seat that is to be attested by `until`."""
    return Seat(number, account, 1, until, attested, released, False)


SEATS = (
    seat(0, attested=True),
    seat(1, OTHER),
    seat(2, MINE_TOO, until=UNTIL + 9),
    seat(3),
    seat(4, NOBODY),
)


def observation(
    status: TaskStatus = TaskStatus.SUBMITTED, seats: tuple[Seat, ...] = (), now: int = NOW, **view: Any
) -> Observation:
    """A task seen at `now`; further arguments are fields of its view."""
    return Observation(replace(VIEW, status=status, **view), now, AUDIT, seats)


def numbers(seats: list[Seat]) -> list[int]:
    return [one.number for one in seats]


def test_own_seats_are_those_of_any_account_that_are_not_attested() -> None:
    assert numbers(own_seats(observation(seats=SEATS), ACCOUNTS)) == [2, 3]
    assert numbers(own_seats(observation(seats=SEATS), {OTHER})) == [1]
    assert not own_seats(observation(), ACCOUNTS)


def test_a_seat_can_be_attested_to_its_last_second_while_the_task_is_submitted() -> None:
    seen = observation(seats=SEATS)
    assert numbers(attestable(replace(seen, now=UNTIL), ACCOUNTS)) == [2, 3]
    late = replace(seen, now=UNTIL + 1)
    assert numbers(attestable(late, ACCOUNTS)) == [2]
    assert numbers(own_seats(late, ACCOUNTS)) == [2, 3], (
        "what is found too late to attest is still challenged"
    )
    assert not attestable(observation(TaskStatus.UNPAID, SEATS), ACCOUNTS)


def test_every_own_seat_is_released_once_the_task_is_not_audited_any_more() -> None:
    seats = (*SEATS, seat(5, released=True))
    assert not releasable(observation(seats=seats), ACCOUNTS)
    for status in TaskStatus:
        if status.is_over or status is TaskStatus.UNPAID:
            assert numbers(releasable(observation(status, seats), ACCOUNTS)) == [0, 2, 3]


def test_segments_are_looked_at_while_they_may_be_challenged() -> None:
    every = [1, 2, 3, 4, 5, 6, 7, 8]
    over: dict[str, Any] = {"challenge_until": NOW - 1}
    for status in TaskStatus:
        due = every if status in (TaskStatus.SUBMITTED, TaskStatus.UNPAID) else []
        assert list(open_segments(observation(status))) == due
    assert list(open_segments(observation(challenge_until=NEVER))) == every
    assert list(open_segments(observation(challenge_until=NOW))) == every
    assert not open_segments(observation(**over))
    assert not open_segments(observation(TaskStatus.UNPAID, **over))
    assert list(open_segments(replace(observation(**over), answers_until=NOW))) == every, "an answer is due"


def test_a_task_is_due_by_its_next_own_seat_and_else_by_the_end_of_challenges() -> None:
    seen = observation(seats=SEATS)
    assert due_by(seen, ACCOUNTS) == UNTIL
    assert due_by(seen, {MINE_TOO}) == UNTIL + 9
    assert due_by(observation(), ACCOUNTS) == VIEW.challenge_until
    assert due_by(observation(challenge_until=NEVER), ACCOUNTS) == NEVER
