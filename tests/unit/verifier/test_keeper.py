"""A verifier does not settle a task while a look, an accusation or its own claim is undecided. Verifiers
without a part in a task take turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.beacon.networks import DEVELOPMENT
from protocol.chain.audit import Audit
from protocol.chain.parameters import DEVNET
from protocol.chain.views import ItemClaim, LookView, PendingDraw, TaskStatus
from protocol.dispute.keys import salt_hash
from protocol.node.database import Identity
from protocol.node.party.exits import Exit, Observation
from tests.unit.verifier.test_seats import AUDIT, ME, NOW, OTHER, VIEW, observation, seat
from verifier import auditing, keeper, looking
from verifier.context import Context
from verifier.database import COMMITTING, Challenge, Database
from verifier.jury import Jury
from verifier.keeper import GRACE, LONGEST_TURN, VERIFIERS, turn
from verifier.look_events import Revealed

LOOK = 32
OVER = NOW - GRACE - LONGEST_TURN - 1
FIRST = OVER + GRACE + 1
"""The first second in which this verifier makes a call."""
TOLD = Revealed(bytes([5]) * 32, bytes([6]) * 32)
STANDS = LookView(bytes(32), None, until=0, lock=0, game=0, accusations=0, dropped=False)
ASKS = Challenge(1, LOOK, ME, 2, bytes(32), b"", asks=True)


class Scene:
    """A task whose time for challenges is over. One of our accounts has a look at another account's seat.

    The look is attested. Its replay found a root other than the one that the seat revealed. The solver's step
    tree is on the chain.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.stands: LookView | None = STANDS
        self.told: Revealed | None = TOLD
        self.posted = NOW
        self.jury: Jury | None = None
        self.seat = seat(0, OTHER, attested=True)
        self.look = seat(LOOK, attested=True)
        deployment = SimpleNamespace(
            beacon=DEVELOPMENT, parameters=replace(DEVNET, stall_period=1_000, draw_delay=2)
        )
        client = SimpleNamespace(
            address=ME,
            inclusion=1.0,
            deployment=deployment,
            game=SimpleNamespace(claim=lambda _key: SimpleNamespace(posted_at=self.posted, root=bytes(32))),
        )
        self.context = cast(
            Context,
            SimpleNamespace(
                client=client,
                clients={ME: client},
                database=database,
                first_due={},
                terms=lambda _task: SimpleNamespace(segments_per_verifier=1, jurors=3),
                segments=lambda _task, _seat: [2],
                looks=SimpleNamespace(
                    of=lambda _task, _look: self.stands, revealed=lambda _task, _look: self.told
                ),
                juries=SimpleNamespace(of=lambda _task: self.jury),
            ),
        )
        self.found(bytes([7]) * 32)

    def found(self, root: bytes) -> None:
        """Set `root` as the root that the look's own replay has found, given the revealed salt."""
        self.database.put_digest(1, salt_hash(TOLD.salt), 2, VIEW.root, root)

    def seen(self, status: TaskStatus = TaskStatus.SUBMITTED) -> Observation:
        """The task after the time for challenges."""
        seen = observation(status, (self.seat,), challenge_until=OVER)
        audit = replace(AUDIT, attested=1, audited=True, level=1, looks=1)
        return replace(seen, audit=audit, looks=(self.look,))

    def due(self, status: TaskStatus = TaskStatus.SUBMITTED) -> Exit | None:
        """The call that is made at the second look, by which every turn has come."""
        for now in (FIRST, NOW):
            due = keeper.due(self.context, replace(self.seen(status), now=now))
        return due


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    yield Scene(database)
    database.close()


def test_what_an_own_look_has_found_different_is_not_settled_before_it_is_decided(scene: Scene) -> None:
    assert scene.due() is None, "it accuses"
    scene.stands = replace(STANDS, accused=bytes(32), accusations=1)
    assert scene.due() is None, "it waits for the answer"
    scene.stands = replace(STANDS, accusations=1)
    assert scene.due() is Exit.SETTLE, "it was answered"


@pytest.mark.parametrize("changed", ["unseen", "unrevealed", "unread", "unreplayed"])
def test_what_an_own_look_does_not_know_yet_is_not_settled(scene: Scene, changed: str) -> None:
    if changed == "unseen":
        scene.stands = None
    elif changed == "unrevealed":  # its lock can be taken
        scene.stands = replace(STANDS, revealed=None)
    elif changed == "unread":
        scene.told = None
    else:
        scene.told = replace(TOLD, salt=bytes([8]) * 32)
    assert scene.due() is None


@pytest.mark.parametrize("changed", ["equal", "caught", "unposted", "silent", "another's"])
def test_what_an_own_look_cannot_accuse_of_is_settled(scene: Scene, changed: str) -> None:
    if changed == "equal":
        scene.found(TOLD.segment_root)
    elif changed == "caught":
        scene.seat = replace(scene.seat, caught=True)
    elif changed == "unposted":  # no game can post the step tree any more
        scene.posted = 0
    elif changed == "silent":
        scene.look = replace(scene.look, attested=False)
    else:
        scene.look = replace(scene.look, account=OTHER)
    assert scene.due() is Exit.SETTLE


def test_a_commitment_that_asks_for_a_step_tree_is_opened_before_anything_is_settled(scene: Scene) -> None:
    scene.found(TOLD.segment_root)
    scene.database.put_challenge(ASKS)
    assert scene.due() is Exit.SETTLE, "nothing is at stake, and the time for games is over"
    scene.database.update_challenge(ASKS.key, opening_until=COMMITTING)
    assert scene.due() is None
    scene.database.update_challenge(ASKS.key, outcome="dropped")
    assert scene.due() is Exit.SETTLE


@pytest.mark.parametrize(
    ("status", "what"), [(TaskStatus.SUBMITTED, Exit.SETTLE), (TaskStatus.UNPAID, Exit.CLOSE)]
)
def test_an_own_claim_is_off_before_its_task_ends(scene: Scene, status: TaskStatus, what: Exit) -> None:
    scene.found(TOLD.segment_root)
    assert scene.due(status) is what
    claim = ItemClaim(ME, bond=5, seat=0, item=1, until=0, tensor=0, walk=0, opened=0)
    scene.jury = Jury(claim, None)
    assert scene.due(status) is None
    scene.jury = Jury(replace(claim, account=OTHER), None)
    assert scene.due(status) is what, "another's bond comes back whatever the task becomes"


def test_what_is_revealed_is_compared_after_the_time_for_challenges_too(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auditing, "salted_seats", lambda *_: [])
    scene.told = replace(TOLD, salt=bytes([8]) * 32)
    assert list(auditing._own(scene.context, scene.seen())) == [2]
    assert list(auditing._own(scene.context, scene.seen(TaskStatus.SETTLED))) == []


@pytest.mark.parametrize(
    ("status", "looker", "accused", "due"),
    [
        (TaskStatus.SUBMITTED, ME, OTHER, []),
        (TaskStatus.SLASHED, ME, OTHER, []),
        (TaskStatus.SLASHED, OTHER, ME, [LOOK]),
        (TaskStatus.UNPAID, ME, OTHER, [LOOK]),
        (TaskStatus.UNPAID, OTHER, ME, []),
        (TaskStatus.VOID, ME, OTHER, [LOOK]),
    ],
)
def test_the_bond_of_an_accusation_that_nobody_judges_is_fetched(
    scene: Scene, status: TaskStatus, looker: str, accused: str, due: list[int]
) -> None:
    """If the solver was convicted, the account of the accused seat fetches the bond. If a jury ended the
    task, the account of the look that accused the seat fetches it.
    """
    scene.stands = replace(STANDS, accused=bytes(32), accusations=1)
    scene.look, scene.seat = replace(scene.look, account=looker), replace(scene.seat, account=accused)
    assert looking.moot(scene.context, scene.seen(status)) == due


def test_without_a_part_in_the_task_a_verifier_waits_for_its_turn(scene: Scene) -> None:
    scene.look = replace(scene.look, account=OTHER)
    wait = ceil(turn(ME, f"settle {VIEW.task}", LONGEST_TURN))
    assert wait > 0
    for now in (FIRST - 1, FIRST, FIRST + wait - 1):
        assert keeper.due(scene.context, replace(scene.seen(), now=now)) is None
    assert keeper.due(scene.context, replace(scene.seen(), now=FIRST + wait)) is Exit.SETTLE
    scene.seat = replace(scene.seat, account=ME)
    assert keeper.due(scene.context, replace(scene.seen(), now=FIRST - 1)) is None, "others' seconds"
    assert keeper.due(scene.context, replace(scene.seen(), now=FIRST)) is Exit.SETTLE, "a part"


def test_a_turn_begins_when_the_call_becomes_possible(scene: Scene) -> None:
    """If a game or an accusation ends late, a call becomes due long after the last second for challenges."""
    scene.look = replace(scene.look, account=OTHER)
    late = NOW + 10_000
    wait = ceil(turn(ME, f"settle {VIEW.task}", LONGEST_TURN))
    seen = replace(scene.seen(), now=late)
    for held in (replace(seen, accusations=1), replace(seen, view=replace(seen.view, open_games=1))):
        assert keeper.due(scene.context, replace(held, now=late - 1)) is None
        assert keeper.due(scene.context, seen) is None
        assert keeper.due(scene.context, replace(seen, now=late + wait)) is Exit.SETTLE


def test_all_draws_have_one_turn_after_the_other(scene: Scene) -> None:
    """A call executes the first draw of the queue, whatever task the caller looks at. So if many draws are
    due, the caller waits for the turn of the first one.
    """
    queue = [PendingDraw(task, 0, 1, 0, 0, 0, 1) for task in range(100, 110)]
    scene.context.client.audit = cast(Audit, SimpleNamespace(first_draw=lambda: queue[0]))
    scene.look = replace(scene.look, account=OTHER)
    now = NOW
    while queue:
        wait = ceil(turn(ME, f"draw {queue[0].task} 1 1", LONGEST_TURN))
        for later in (0, wait):
            due = {keeper.due(scene.context, _undrawn(scene, task, now + later)) for task in range(100, 110)}
            assert due == ({Exit.DRAW} if later == wait else {None})
        queue.pop(0)
        now += wait


def _undrawn(scene: Scene, task: int, now: int) -> Observation:
    """A task whose draw is due."""
    seen = replace(scene.seen(), now=now, audit=replace(AUDIT, pending=True, round=1))
    return replace(seen, view=replace(seen.view, task=task))


@pytest.mark.parametrize("verifiers", [1, 8, 64, VERIFIERS // 2])
def test_few_turns_are_close_to_the_earliest_however_many_verifiers_there_are(verifiers: int) -> None:
    """On average, about 1024 ** 0.1 = 2 turns come at most a tenth of the longest turn after the earliest."""
    close = []
    for task in range(200):
        turns = [turn(f"0x{account:040x}", f"assign {task}", 100) for account in range(verifiers)]
        assert all(0 <= one <= 100 for one in turns)
        close.append(sum(one <= min(turns) + 10 for one in turns))
    assert 1 <= mean(close) < 2.5


def test_no_account_is_always_the_first() -> None:
    accounts = [f"0x{account:040x}" for account in range(8)]
    calls = [f"{what} {task}" for task in range(50) for what in ("assign", "expire")]
    first = [min(accounts, key=lambda one: turn(one, call, 100)) for call in calls]
    assert set(first) == set(accounts)
    assert max(map(first.count, accounts)) < len(calls) / 3
