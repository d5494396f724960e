"""When a seat claims, objects, asks for the verdict or drops its claim, and what it claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.errors import Reverted
from protocol.chain.views import ItemClaim, JuryView, Seat, TaskStatus
from protocol.commitments import CHUNK
from protocol.commitments.walks import chunk_at
from protocol.dispute.juries import Objection
from protocol.node.database import Identity
from protocol.node.party.exits import Observation
from tests.unit.verifier.test_seats import AUDIT, ME, NOW, OTHER, UNTIL, VIEW, observation, seat
from verifier.context import Context
from verifier.database import Database
from verifier.item_claims import bound, jobs, lacks, missing_items, objection
from verifier.jobs import GRACE
from verifier.jury import Jury
from verifier.metrics import Metrics
from verifier.salts import salted

PERIOD, MOVE = 40, 20
SEGMENTS = 8
CONSTANTS = SEGMENTS + 1
HALF = UNTIL - PERIOD // 2
VOTED = NOW + 100
CLAIM = ItemClaim(ME, bond=5, seat=0, item=1, until=0, tensor=0, walk=0, opened=0)
YES = JuryView(0, pending=False, until=VOTED, yes=0b11, no=0)
NO = replace(YES, yes=0b1, no=0b110)
SPLIT = replace(YES, yes=0b1, no=0b10)


class Replayer:
    """A stub that says which segments' states the solver has served."""

    def __init__(self) -> None:
        self.asked, self.here, self.waits = True, set[int](), 0.0

    def has_withheld(self, _committed: object) -> bool:
        return self.asked

    def awaited(self, _committed: object) -> float:
        return self.waits

    def is_here(self, _committed: object, segment: int) -> bool:
        return segment in self.here


class Scene:
    """A verifier's account in seat 0, with segments 2 and 5, and the calls that it has sent."""

    def __init__(self, database: Database) -> None:
        self.sent: list[tuple[Any, ...]] = []
        self.jury: Jury | None = None
        self.refused = self.bundle = False
        self.answered: set[int] = set()
        self.replayer, self.segments = Replayer(), [2, 5]
        types = [SimpleNamespace(nbytes=nbytes) for nbytes in (1, 9 * CHUNK)]
        self.material: Any = SimpleNamespace(
            replayer=self.replayer,
            terms=SimpleNamespace(segments=SEGMENTS),
            work=SimpleNamespace(program=SimpleNamespace(state_types=types, fixed_types=types[1:])),
        )
        self.terms = SimpleNamespace(
            jurors=3,
            attest_period=PERIOD,
            move_time=MOVE,
            segments=SEGMENTS,
            segments_per_verifier=2,
            constants=2,
            state_tensors=7,
        )
        self.client = SimpleNamespace(
            address=ME,
            sender=SimpleNamespace(account=development_account(2, DEVELOPMENT_CHAIN)),
            deployment=SimpleNamespace(chain_id=DEVELOPMENT_CHAIN),
            audit=SimpleNamespace(address=OTHER),
            juries=SimpleNamespace(object=self._object, close=self._close, drop=self._drop),
        )
        log = SimpleNamespace(info=self._log, warning=self._log, debug=self._log)
        self.context = cast(
            Context,
            SimpleNamespace(
                client=self.client,
                clients={ME: self.client},
                database=database,
                terms=lambda _task: self.terms,
                segments=lambda _task, _seat: self.segments,
                materials=SimpleNamespace(
                    find=lambda _task: self.material,
                    was_refused=lambda _terms: self.refused,
                    has_bundle=lambda _terms: self.bundle,
                ),
                juries=SimpleNamespace(
                    of=lambda _task: self.jury,
                    may_claim=lambda _task, _seat, item, most: item not in self.answered and most == 6,
                ),
                items=SimpleNamespace(has_state=lambda _task, _number: False),
                metrics=Metrics(),
                log=log,
            ),
        )

    def _object(self, task: int, chosen: Objection) -> SimpleNamespace:
        self.sent.append(("object", task, chosen.tensor))
        return SimpleNamespace(gas_used=1)

    def _close(self, task: int) -> None:
        self.sent.append(("close", task))
        raise Reverted("close", "NoClaim", {})

    def _drop(self, task: int) -> None:
        self.sent.append(("drop", task))

    def _log(self, *_words: object, **_fields: object) -> None:
        """Log nothing."""

    def due(self, seen: Observation) -> list[str]:
        return [job.what for job in jobs(self.context, seen)]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    yield Scene(database)
    database.close()


SEATS = (seat(0), seat(1, OTHER))
LATE = observation(seats=SEATS, now=HALF + 1)


def sits(view: JuryView | None, now: int, status: TaskStatus = TaskStatus.SUBMITTED) -> Observation:
    """The task at `now`. A jury is open unless `view` is None."""
    seats: tuple[Seat, ...] = tuple(replace(one, until=VOTED) for one in SEATS)
    seen = observation(status, seats=seats, now=now)
    return replace(seen, audit=replace(AUDIT, claimant=0 if view is None else 1))


def test_a_seat_claims_what_is_still_being_sent_at_half_of_its_time(scene: Scene) -> None:
    """A solver that sends slowly, or sends other bytes, cannot use up the time for the claim."""
    scene.replayer.asked = False
    scene.replayer.waits = PERIOD / 8
    assert scene.due(LATE) == [], "it was asked for only now"
    scene.replayer.waits += 1
    assert scene.due(replace(LATE, now=HALF)) == []
    assert scene.due(LATE) == ["claim"]
    assert missing_items(scene.context, LATE, seat(0))[0] == 1
    scene.replayer.here = {2, 5, 8, 9, 10}
    assert scene.due(LATE) == []


def test_a_seat_claims_at_half_of_its_time_what_it_lacks(scene: Scene) -> None:
    assert scene.due(replace(LATE, now=HALF)) == []
    assert scene.due(LATE) == ["claim"]
    assert scene.due(replace(LATE, now=UNTIL)) == ["claim"]
    assert scene.due(replace(LATE, now=UNTIL + 1)) == []


@pytest.mark.parametrize(
    "changed", ["jurors", "answered", "served", "pending", "attested", "other", "draws", "unasked"]
)
def test_no_other_seat_claims(scene: Scene, changed: str) -> None:
    seen = LATE
    if changed == "jurors":
        scene.terms.jurors = 0
    elif changed == "answered":
        scene.answered = {1, 4, SEGMENTS}
    elif changed == "served":
        scene.replayer.here = {2, 5, VIEW.size}
    elif changed == "pending":
        seen = replace(seen, audit=replace(AUDIT, pending=True))
    elif changed == "attested":
        seen = replace(seen, seats=(seat(0, attested=True), SEATS[1]))
    elif changed == "other":
        seen = replace(seen, audit=replace(AUDIT, claimant=2))
    elif changed == "draws":
        seen = replace(seen, audit=replace(AUDIT, draws=128))
    else:
        scene.replayer.asked = False
    assert scene.due(seen) == []


def test_the_states_that_are_missing_are_claimed_the_first_one_first(scene: Scene) -> None:
    assert missing_items(scene.context, LATE, SEATS[0]) == [1, 4, SEGMENTS], (
        "those before 2 and 5, the result"
    )
    scene.segments = [1, 2, 5]
    assert missing_items(scene.context, LATE, SEATS[0]) == [1, 4, SEGMENTS], (
        "that before segment 1 is the bundle's"
    )
    scene.segments = [2, 5]
    scene.replayer.here = {2}
    assert missing_items(scene.context, LATE, SEATS[0]) == [4, SEGMENTS]
    own = salted(cast(Any, scene.client), 1, SEATS[0], AUDIT.seed)
    scene.context.database.put_digest(1, own.hash, 5, VIEW.root, bytes(32))
    assert missing_items(scene.context, LATE, SEATS[0]) == [SEGMENTS]
    scene.replayer.here |= {VIEW.size}
    assert missing_items(scene.context, LATE, SEATS[0]) == []


@pytest.mark.parametrize(
    ("here", "answered", "item"),
    [
        (set[int](), set[int](), 1),
        (set[int](), {1}, 4),
        ({2}, set[int](), 4),
        ({5}, set[int](), 1),
        ({5}, {1}, SEGMENTS),
        ({2, 5}, set[int](), SEGMENTS),
        ({5, VIEW.size}, {1}, None),
        (set[int](), {1, 4, SEGMENTS}, None),
    ],
)
def test_what_is_claimed_is_missing_and_no_jury_had_it(
    scene: Scene, here: set[int], answered: set[int], item: int | None
) -> None:
    """The solver has served some states, and a jury had others. The seat claims the first item that neither
    covers, if there is one.
    """
    scene.replayer.here, scene.answered = here, answered
    found = [job.work for job in jobs(scene.context, LATE)]
    assert [cast(Any, work).args[-1] for work in found] == ([] if item is None else [item])


def test_without_the_bundle_the_constants_are_claimed(scene: Scene) -> None:
    scene.material = None
    assert missing_items(scene.context, LATE, SEATS[0]) == [], "nobody was asked yet"
    scene.refused = True
    assert missing_items(scene.context, LATE, SEATS[0]) == [CONSTANTS]


@pytest.mark.parametrize(
    ("view", "now", "due"),
    [
        (replace(YES, pending=True), VOTED + 1, []),
        (NO, VOTED, []),
        (NO, VOTED + 1, ["close"]),
        (SPLIT, VOTED + 1, []),
        (SPLIT, VOTED + MOVE // 2 + 1, ["object"]),
        (SPLIT, VOTED + MOVE + 1, ["close"]),
        (YES, VOTED + 1, []),
        (YES, VOTED + MOVE // 2, []),
        (YES, VOTED + MOVE // 2 + 1, ["object"]),
        (YES, VOTED + MOVE, ["object"]),
        (YES, VOTED + MOVE + 1, ["close"]),
    ],
)
def test_a_claimant_objects_in_time_or_asks_for_the_verdict(
    scene: Scene, view: JuryView, now: int, due: list[str]
) -> None:
    scene.jury = Jury(CLAIM, view)
    assert scene.due(sits(view, now)) == due


def test_what_has_come_meanwhile_is_not_objected_to(scene: Scene) -> None:
    scene.jury, scene.replayer.here = Jury(CLAIM, YES), {2}
    assert scene.due(sits(YES, VOTED + MOVE)) == []
    scene.replayer.here = set()
    scene.material, scene.bundle = None, True
    assert not lacks(scene.context, sits(YES, VOTED), 1), "it is about to be loaded"
    scene.bundle = False
    assert lacks(scene.context, sits(YES, VOTED), 1)
    assert lacks(scene.context, sits(YES, VOTED), CONSTANTS)


def test_after_an_objection_the_time_to_open_is_waited_for(scene: Scene) -> None:
    scene.jury = Jury(replace(CLAIM, until=VOTED + 35, tensor=1, walk=1), YES)
    assert scene.due(sits(YES, VOTED + 35)) == []
    assert scene.due(sits(YES, VOTED + 36)) == ["close"]


def test_others_leave_the_verdict_to_the_claimant_for_a_while(scene: Scene) -> None:
    scene.jury = Jury(replace(CLAIM, account=OTHER), NO)
    assert scene.due(sits(NO, VOTED + GRACE)) == []
    assert scene.due(sits(NO, VOTED + GRACE + 1)) == ["close"]
    (job,) = jobs(scene.context, sits(NO, VOTED + GRACE + 1))
    job.work()  # somebody else was faster: no failure


@pytest.mark.parametrize("status", [TaskStatus.SUBMITTED, TaskStatus.SLASHED, TaskStatus.UNPAID])
def test_a_claim_that_nobody_will_judge_is_dropped_for_its_bond(scene: Scene, status: TaskStatus) -> None:
    scene.jury = Jury(CLAIM, None)
    seen = sits(None, NOW, status)
    assert scene.due(seen) == ["drop"]
    assert bound(scene.context, seen)
    scene.jury = Jury(replace(CLAIM, account=OTHER), None)
    assert not bound(scene.context, seen)
    assert scene.due(seen) == (["drop"] if status is TaskStatus.SUBMITTED else []), "another's is in the way"


def test_a_chunk_is_chosen_by_the_sizes_that_the_program_tells(scene: Scene) -> None:
    chosen = [objection(scene.context, 1, 3) for _ in range(300)]
    places = {(one.tensor, chunk_at((1, 9)[one.tensor], one.walk)) for one in chosen}
    assert places == {(0, 0), *((1, number) for number in range(9))}
    assert {objection(scene.context, 1, CONSTANTS).tensor for _ in range(9)} == {0}, "one fixed tensor"
    scene.material = None
    assert {objection(scene.context, 1, CONSTANTS).tensor for _ in range(99)} == {0, 1}, "as the terms say"
    assert {objection(scene.context, 1, 3).tensor for _ in range(300)} == set(range(7))
