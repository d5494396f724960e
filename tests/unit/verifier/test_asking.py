"""Games that ask for a step tree, once nobody can be accused any more: they are dropped, or continue against
a solver whose tree is false, and no further one is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.chain.views import NEVER, TaskStatus
from protocol.commitments import step_tree
from protocol.dispute.view import Phase
from protocol.node.database import Identity
from protocol.node.logs import get
from protocol.tasks.admission import Rates
from protocol.tasks.bundles import Limits
from tests.chain.trees import terms
from tests.unit.verifier.test_keeper import ASKS, LOOK, Scene
from tests.unit.verifier.test_seats import ME, NOW, VIEW
from verifier import accusing, looking
from verifier.challenge_commitment import ChallengeCommitment
from verifier.database import Challenge, Database
from verifier.errors import StateLost
from verifier.material import Materials
from verifier.strategy import HONEST

GAME = 4
STATES = [bytes([number]) * 32 for number in range(1, 4)]
TREE = step_tree(STATES).root
FALSE = bytes([9]) * 32
ENDS = [(TaskStatus.SUBMITTED, True), (TaskStatus.UNPAID, False)]
"""A task's status, and whether the seat was caught, where nobody can be accused any more."""


class Asking(Scene):
    """A look that has asked for the step tree in game `GAME`; the solver has posted `root` in it, or nothing."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.root: bytes | None = TREE
        self.state = SimpleNamespace(phase=Phase.STEP, waits=False, claim=bytes(32), deadline=NOW + 50)
        self.dropped: list[tuple[int, int, int]] = []
        self.kept = True
        database.put_challenge(ASKS)
        database.update_challenge(ASKS.key, opening_until=NOW, game=GAME)
        context: Any = self.context
        context.client.game = SimpleNamespace(
            game=lambda _game: self.state,
            claim=lambda _key: SimpleNamespace(posted=lambda _state: self.root, posted_at=0),
        )
        context.client.looks = SimpleNamespace(drop=self.drop)
        context.load = lambda _task: SimpleNamespace(run=lambda _row: self)
        context.log = get("test")
        context.work_by = lambda until: until

    def drop(self, *call: int) -> SimpleNamespace:
        self.dropped.append(call)  # type: ignore[arg-type]
        return SimpleNamespace(gas_used=1)

    def step_roots(self, _segment: int) -> list[bytes]:
        """The states of the look's own replay."""
        if not self.kept:
            raise StateLost("a state", expected="it", got="none", remedy="a backup")
        return STATES

    def drops(self, status: TaskStatus) -> None:
        """Do what is due in a task of this status."""
        for job in accusing.drops(self.context, self.seen(status)):
            assert job.until == self.state.deadline
            job.work()

    @property
    def row(self) -> Challenge:
        (found,) = self.database.all_challenges(ASKS.task)
        return found


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Asking]:
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    yield Asking(database)
    database.close()


@pytest.mark.parametrize(("status", "caught"), ENDS)
def test_a_game_is_dropped_under_an_honest_step_tree(scene: Asking, status: TaskStatus, caught: bool) -> None:
    scene.seat = replace(scene.seat, caught=caught)
    scene.drops(status)
    assert scene.dropped == [(ASKS.task, LOOK, GAME)]
    assert scene.row.asks


@pytest.mark.parametrize(("status", "caught"), ENDS)
def test_a_game_continues_against_a_false_step_tree(scene: Asking, status: TaskStatus, caught: bool) -> None:
    scene.seat, scene.root = replace(scene.seat, caught=caught), FALSE
    scene.drops(status)
    assert not scene.row.asks
    scene.drops(status)
    assert not scene.dropped


def test_a_game_is_dropped_if_the_states_to_compare_are_lost(scene: Asking) -> None:
    scene.kept, scene.root = False, FALSE
    scene.drops(TaskStatus.UNPAID)
    assert scene.dropped == [(ASKS.task, LOOK, GAME)]


def test_a_game_is_dropped_if_the_bundle_is_lost(scene: Asking, tmp_path: Path) -> None:
    made = Materials(tmp_path / "node", tmp_path / "bundles", scene.database, HONEST, Limits())
    context: Any = scene.context
    context.load = lambda task: made.load(task, terms(), None)
    scene.drops(TaskStatus.UNPAID)
    assert scene.dropped == [(ASKS.task, LOOK, GAME)]


@pytest.mark.parametrize("status", [TaskStatus.SUBMITTED, TaskStatus.SLASHED, TaskStatus.VOID])
def test_a_game_is_kept_while_the_seat_can_be_accused_and_after_the_task(
    scene: Asking, status: TaskStatus
) -> None:
    scene.drops(status)
    assert not scene.dropped


@pytest.mark.parametrize("waits", ["for a place", "for the solver", "no more"])
def test_a_game_in_which_it_is_not_our_turn_is_not_dropped(scene: Asking, waits: str) -> None:
    if waits == "for a place":
        scene.state.waits, scene.state.deadline = True, NEVER
    elif waits == "for the solver":
        scene.root = None
    else:
        scene.state.phase = Phase.CLOSED
    scene.drops(TaskStatus.UNPAID)
    assert not scene.dropped


def test_no_game_asks_once_the_task_is_unpaid(scene: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "different", lambda *_: [(scene.look, None)])
    scene.database.update_challenge(ASKS.key, outcome="dropped")
    monkeypatch.setattr(scene.database, "challenge", lambda *_: None)
    assert [job.what for job in looking.asks(scene.context, scene.seen())] == [f"ask {LOOK}"]
    assert not list(looking.asks(scene.context, scene.seen(TaskStatus.UNPAID)))


@pytest.mark.parametrize("asks", [True, False])
def test_nothing_is_committed_to_a_game_that_asks_once_the_task_is_unpaid(tmp_path: Path, asks: bool) -> None:
    view = replace(VIEW, status=TaskStatus.UNPAID, challenge_until=NOW - 1)
    client: Any = SimpleNamespace(
        address=ME,
        now=lambda: NOW,
        inclusion=1.0,
        deployment=SimpleNamespace(chain_id=1, parameters=SimpleNamespace(opening_period=1_000)),
        connection=SimpleNamespace(block_time=1.0),
        commitments=SimpleNamespace(address="0x" + "02" * 20, committing=lambda *_: False),
        market=SimpleNamespace(task=lambda _task: view),
        audit=SimpleNamespace(seat=lambda _task, _seat: SimpleNamespace(account=ME)),
        looks=SimpleNamespace(answers_until=lambda _task: 0),
    )
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    challenge = replace(ASKS, asks=asks)
    database.put_challenge(challenge)
    rates = Rates(1e12)
    bonds: Any = None  # never asked
    ChallengeCommitment(client, database, bonds, terms(), challenge, lambda: rates).advance(challenge)
    (row,) = database.all_challenges(ASKS.task)
    assert row.outcome == ("needless" if asks else None)
    database.close()
