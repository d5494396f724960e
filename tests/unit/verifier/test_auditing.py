"""Who challenges a difference: every own seat that has the segment, otherwise the account that replayed it.

Also what a seat attests: its digests under its own salt, once it has all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.views import ItemClaim, JuryView, TaskStatus
from protocol.dispute.keys import NO_SEAT
from protocol.node.database import Identity
from protocol.node.party.exits import Observation
from tests.unit.verifier.auditing_scene import (
    DRAWN,
    PERIOD,
    RESULT,
    SEATS,
    SEGMENTS,
    Order,
    Replays,
    Scene,
    Withheld,
)
from tests.unit.verifier.test_seats import AUDIT, ME, MINE_TOO, NOW, OTHER, VIEW, observation, seat
from verifier.auditing import _challenge, offer
from verifier.context import Context
from verifier.database import Challenge, Database
from verifier.findings import Committed, Different
from verifier.jobs import Jobs
from verifier.jury import Jury


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    yield made
    made.close()


def challenged(
    database: Database, replayed: int, segment: int | None, drawn: bool = True
) -> list[tuple[int, str]]:
    """Seats and accounts that challenge if the replay of segment `replayed` finds `segment` false."""
    board = SimpleNamespace(seats=lambda _task: SEATS if drawn else [], audit=lambda _task: AUDIT)
    mine, too = (
        SimpleNamespace(
            address=address,
            audit=board,
            sender=SimpleNamespace(account=development_account(index, DEVELOPMENT_CHAIN)),
            deployment=SimpleNamespace(chain_id=DEVELOPMENT_CHAIN),
            commitments=SimpleNamespace(address=OTHER),
        )
        for index, address in enumerate((ME, MINE_TOO))
    )
    context = SimpleNamespace(
        client=mine,
        clients={ME: mine, MINE_TOO: too},
        database=database,
        segments=lambda _task, number: SEGMENTS[number],
    )
    _challenge(cast(Context, context), 1, replayed, Different(segment, ()))
    return [(row.seat, row.account) for row in database.challenges(1)]


@pytest.mark.parametrize(
    ("replayed", "segment", "expected"),
    [
        (1, 1, [(0, MINE_TOO)]),
        (2, 2, [(0, MINE_TOO), (2, ME)]),
        (3, 3, [(NO_SEAT, ME)]),
        (1, 4, [(NO_SEAT, MINE_TOO)]),
        (2, None, [(0, MINE_TOO)]),
        (4, None, [(NO_SEAT, ME)]),
    ],
)
def test_a_false_segment_is_challenged_by_each_own_seat_that_has_it(
    database: Database, replayed: int, segment: int | None, expected: list[tuple[int, str]]
) -> None:
    assert challenged(database, replayed, segment) == expected


def test_before_the_draw_the_main_account_challenges_and_its_seat_does_not_do_so_again(
    database: Database,
) -> None:
    assert challenged(database, 2, 2, drawn=False) == [(NO_SEAT, ME)]
    assert challenged(database, 2, 2) == [(0, MINE_TOO), (NO_SEAT, ME)], "but the other account's does"
    salts = {row.salt for row in database.challenges(1)}
    assert len(salts) == 2


def test_a_seat_is_attested_once_every_digest_of_it_is_there(database: Database) -> None:
    replays = Replays()
    scene = Scene(database, replays)
    for segment in (1, RESULT):
        scene.replay(DRAWN, segment)
        assert scene.attest(DRAWN) == []
    scene.replay(DRAWN, 2)
    assert scene.attest(DRAWN) == ["attest 0", "attest 2"]
    assert replays.asked == [(1, 1), (RESULT, 2), (2, 2)], "one digester for each seat that has the segment"
    first, second = scene.expected(DRAWN.seats[0]), scene.expected(DRAWN.seats[2])
    assert scene.attested == [(MINE_TOO, 1, 0, *first), (ME, 1, 2, *second)]
    assert first[1] != second[1]


def test_after_the_time_nothing_is_attested(database: Database) -> None:
    scene = Scene(database, Replays())
    for segment in (1, 2, RESULT):
        scene.replay(DRAWN, segment)
    late = replace(DRAWN, now=DRAWN.seats[0].until + 1)
    assert scene.attest(late) == []
    assert scene.attest(replace(DRAWN, view=replace(VIEW, status=TaskStatus.UNPAID))) == []


def test_a_segment_that_was_checked_before_the_draw_is_replayed_for_the_seats_digest(
    database: Database,
) -> None:
    replays = Replays()
    scene = Scene(database, replays, whistleblow=True)
    scene.due(observation())
    assert replays.asked == [(segment, 0) for segment in range(1, RESULT)]
    replays.asked.clear()
    scene.due(DRAWN)
    assert sorted(replays.asked) == [(1, 1), (2, 2), (RESULT, 2)]
    replays.asked.clear()
    scene.due(DRAWN)
    assert replays.asked == [], "nothing is due any more"


def test_a_digest_under_another_draws_seed_is_of_no_use(database: Database) -> None:
    """After a re-organisation the same seat may be drawn again, with another salt. Digests that were made for
    the earlier draw are then not attested.
    """
    scene = Scene(database, Replays())
    for segment in (1, 2, RESULT):
        scene.replay(DRAWN, segment)
    other = replace(DRAWN, audit=replace(AUDIT, seed=bytes(32)))
    assert scene.attest(other) == []
    scene.due(other)
    assert scene.attest(other) == ["attest 0", "attest 2"]
    assert scene.attested[0][3:] == scene.expected(DRAWN.seats[0], bytes(32))


def test_after_a_restart_only_what_is_missing_is_replayed(database: Database) -> None:
    Scene(database, Replays()).replay(DRAWN, 2)
    again = Replays()
    scene = Scene(database, again)
    scene.due(DRAWN)
    assert sorted(again.asked) == [(1, 1), (RESULT, 2)]
    assert scene.attest(DRAWN) == ["attest 0", "attest 2"]


def test_a_solver_that_is_challenged_is_attested_in_its_open_game_alone(database: Database) -> None:
    scene = Scene(database, Replays(false=1))
    scene.due(DRAWN)
    assert [row.key for row in database.challenges(1)] == [(1, 0)]
    assert scene.attest(DRAWN) == []
    database.update_challenge((1, 0), opening_until=1, game=1)
    assert scene.attest(DRAWN) == ["attest 0", "attest 2"], "with the digests of our own states"
    assert scene.attested[0][3:] == scene.expected(DRAWN.seats[0])
    database.update_challenge((1, 0), outcome="challenger_silent")
    assert scene.attest(DRAWN) == []


def test_a_difference_that_is_found_while_attestations_are_due_keeps_the_solver_from_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, real = Scene(database, Replays(false=1)), database.challenges
    replays = iter([lambda: scene.due(DRAWN)])

    def challenges(task: int) -> list[Challenge]:
        found = real(task)
        next(replays, lambda: None)()  # every replay of the seat ends right after this is read
        return found

    monkeypatch.setattr(database, "challenges", challenges)
    assert [scene.attest(DRAWN) for _ in range(2)] == [[], []]
    scene.due(DRAWN)
    assert scene.attest(DRAWN) == []
    assert not scene.attested


def test_what_a_challenged_solver_withholds_is_attested_by_ones_own_run(database: Database) -> None:
    replays = Withheld()
    scene = Scene(database, replays)
    scene.due(DRAWN)
    assert [row.segment for row in database.challenges(1)] == [None]
    assert replays.asked == []
    for _ in range(3):
        scene.due(DRAWN)
    assert replays.asked == [(1, 1), (1, 1), (2, 2), (RESULT, 2)]
    assert len(database.challenges(1)) == 1, "no second bond is risked"
    assert scene.attest(DRAWN) == []
    database.update_challenge((1, 0), opening_until=1, game=1)
    assert scene.attest(DRAWN) == ["attest 0", "attest 2"]
    assert [sent[3:] for sent in scene.attested] == [scene.expected(DRAWN.seats[n]) for n in (0, 2)]


def test_a_challenged_task_is_run_after_other_own_seats_and_only_for_one_that_can_attest(
    database: Database,
) -> None:
    """Tests when this verifier runs a challenged task itself. The run comes after the work for its own seats
    in other tasks. It comes before the segments of others' seats, because a whistleblower may never finish
    these segments. If none of the verifier's own seats can attest any more, there is no run.
    """
    scene = Scene(database, Withheld(), whistleblow=True)
    scene.due(DRAWN)
    other = replace(DRAWN, view=replace(VIEW, task=2))
    replays = Order()
    offer(scene.context, [DRAWN, other], Order(), replays)
    assert replays.offered == [(2, "run")] * 5 + [(1, "run")] * 5 + [(2, "run")] * (RESULT - 1)
    late = replace(DRAWN, now=DRAWN.seats[0].until + 1)
    replays = Order()
    offer(scene.context, [late], Order(), replays)
    assert replays.offered == []


def test_where_there_are_jurors_nothing_is_run_from_its_start(database: Database) -> None:
    """If a task has jurors, only a whistleblower runs it from its start, after a jury has found that data is
    withheld.
    """
    unpaid = replace(DRAWN, view=replace(VIEW, status=TaskStatus.UNPAID))
    for whistleblow, seen, runs in ((True, DRAWN, 0), (False, unpaid, 0), (True, unpaid, 5 + RESULT - 1)):
        fetches, replays = Order(), Order()
        scene = Scene(database, Withheld(), whistleblow=whistleblow, jurors=3)
        offer(scene.context, [seen], fetches, replays)
        assert replays.offered == [(1, "run")] * runs
        assert fetches.offered == [(1, "fetch")], "it is asked for again"


def test_a_seat_that_has_claimed_waits_for_its_jury(database: Database) -> None:
    scene = Scene(database, Replays())
    scene.due(DRAWN)
    assert scene.attest(replace(DRAWN, audit=replace(AUDIT, claimant=1))) == ["attest 2"]
    assert scene.attest(replace(DRAWN, audit=replace(AUDIT, claimant=3))) == ["attest 0"]


def test_replays_of_own_seats_are_due_and_all_others_come_after_what_is_due(database: Database) -> None:
    """Two of the verifier's own seats must be attested within 30 s. One seat has segments 1 and 2, the other
    has segment 2. The replays for these seats have a deadline, and all other replays have none.

    A step takes one second, because work is reckoned at a third of the rates.
    """
    scene = Scene(database, Replays(), whistleblow=True)
    material = scene.material.terms
    material.step_operations = 1

    def due(seen: Observation, replays: Order) -> dict[str, float]:
        offer(scene.context, [seen], Jobs(1, 1), replays)
        return {what: until for (_, what), until in zip(replays.offered, replays.until, strict=True)}

    found = due(DRAWN, Order())
    (until,) = {seat.until for seat in DRAWN.seats if seat.account in scene.clients}
    own = {f"replay {segment}": until - 2.0 - 0.5 * 4 for segment in (1, 2, RESULT)}
    assert {what: found[what] for what in own} == own
    assert {found[what] for what in found.keys() - own.keys()} == {math.inf}
    # Replays that do not fit into their time even alone are not due, nor are those of a task that failed.
    material.step_operations = 10**6
    assert set(due(DRAWN, Order()).values()) == {math.inf}
    material.step_operations = 1
    failed = Order()
    failed.rests.failed(DRAWN.view.task, 1.0)
    assert set(due(DRAWN, failed).values()) == {math.inf}


class Asked(Withheld):
    """A stub that records which segments are requested from the solver."""

    def ask(self, _committed: Committed, segments: Sequence[int], seconds: float) -> None:
        assert seconds == PERIOD / 8
        self.wanted = list(segments)


def test_what_a_juror_is_to_fetch_is_asked_for_first(database: Database) -> None:
    replays, fetches = Asked(), Jobs(1, 1)
    scene = Scene(database, replays, jurors=3)
    claim = ItemClaim(OTHER, 9, 1, 4, 0, 0, 0, 0)
    scene.jury = Jury(claim, JuryView(1, False, NOW + 9, 0, 0), (seat(160, OTHER), seat(161, ME)))
    offer(scene.context, [DRAWN], fetches, Order())
    fetches.close()
    assert replays.wanted == [5, 1, 2, RESULT, 2, RESULT], (
        "the state before segment 5, then those of own seats"
    )
