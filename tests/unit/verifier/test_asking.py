"""Games that ask for a step tree. The accusation of a seat also drops the game in which its look asked for
the tree, if there is still time to drop it.

Once nobody can be accused any more, the game continues if the verifier can tell that the solver's tree is
false; otherwise it is dropped, if there is still time. No further game of this kind is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from protocol.chain.errors import Reverted
from protocol.chain.views import NEVER, GameState, TaskStatus
from protocol.commitments import step_tree
from protocol.dispute.view import Phase, Verdict
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
CLOCK = 50
MOVE_TIME = 20
STATES = [bytes([number]) * 32 for number in range(1, 4)]
TREE = step_tree(STATES).root
FALSE = bytes([9]) * 32
ENDS = [(TaskStatus.SUBMITTED, True), (TaskStatus.UNPAID, False)]
"""Cases in which nobody can be accused any more: a task's status, and whether the seat was caught."""


class Asking(Scene):
    """A look that has asked for the step tree in game `GAME`. The solver has posted `root` there, or nothing
    if `root` is None.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.root: bytes | None = TREE
        zero = bytes(32)
        self.state = GameState(
            *(GAME, ASKS.task, ME, Phase.STEP, Verdict.NONE, 0, 0, 0, 2, 0, 0, NOW + CLOCK, 0, 0),
            *(zero, zero, zero, zero, zero, zero, 0, 0),
        )
        self.status = TaskStatus.SUBMITTED
        self.dropped: list[tuple[int, int, int]] = []
        self.kept = True
        self.replays = 0
        database.put_challenge(ASKS)
        database.update_challenge(ASKS.key, opening_until=NOW, game=GAME)
        context: Any = self.context
        context.client.game = SimpleNamespace(
            game=lambda _game: self.state,
            claim=lambda _key: SimpleNamespace(
                posted=lambda _state: self.root, posted_at=self.posted, root=self.root
            ),
        )
        context.client.looks = SimpleNamespace(drop=self.drop)
        context.load = lambda _task: SimpleNamespace(run=lambda _row: self)
        context.terms = lambda _task: SimpleNamespace(
            segments_per_verifier=1, jurors=3, game_time=CLOCK, move_time=MOVE_TIME
        )
        context.log = get("test")
        context.compared = set()
        context.work_by = lambda until: until

    def drop(self, *call: int) -> SimpleNamespace:
        """Drop a game, or refuse to drop it, as the contract does."""
        if self.status is TaskStatus.SUBMITTED and not self.seat.caught:
            raise Reverted("Looks.drop", "NotCaught", {"task": ASKS.task, "seat": self.seat.number})
        self.dropped.append(call)  # type: ignore[arg-type]
        return SimpleNamespace(gas_used=1)

    def step_roots(self, _segment: int) -> list[bytes]:
        """The step roots of the look's own replay. Each call is counted."""
        self.replays += 1
        if not self.kept:
            raise StateLost("a state", expected="it", got="none", remedy="a backup")
        return STATES

    def drops(self, status: TaskStatus) -> None:
        """Do what is due in a task of this status."""
        self.status = status
        for job in accusing.drops(self.context, self.seen(status)):
            assert job.until == (NOW + MOVE_TIME if self.in_time else self.state.deadline)
            job.work()

    def accuses(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
        """Make the accusations that are due, without sending them. For each, returns the game that it drops
        (`accusing.NO_GAME` if none) and the accusation's deadline.
        """
        games: list[int] = []
        monkeypatch.setattr(accusing, "_accuse", lambda *call: games.append(call[-1]))
        jobs = list(accusing.jobs(self.context, self.seen()))
        for job in jobs:
            job.work()
        return [(game, job.until) for game, job in zip(games, jobs, strict=True)]

    @property
    def in_time(self) -> bool:
        return self.state.droppable_until(CLOCK, MOVE_TIME) >= NOW

    def late(self) -> None:
        """Set the game's deadline so that the time to drop the game ended a second ago."""
        self.state = replace(self.state, deadline=NOW - 1 + CLOCK - MOVE_TIME)

    @property
    def row(self) -> Challenge:
        (found,) = self.database.all_challenges(ASKS.task)
        return found


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Asking]:
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    yield Asking(database)
    database.close()


def test_an_accusation_drops_the_game_within_a_move_time(
    scene: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scene.accuses(monkeypatch) == [(GAME, NOW + MOVE_TIME)]
    scene.state = replace(scene.state, deadline=NOW + CLOCK - MOVE_TIME)
    assert scene.accuses(monkeypatch) == [(GAME, NOW)], "the last second"
    scene.late()
    assert scene.accuses(monkeypatch) == [(accusing.NO_GAME, scene.seen().challenged_until)]


def test_a_game_that_is_shorter_than_a_move_time_is_dropped_in_its_clock(scene: Asking) -> None:
    """The look's turn began 5 s ago, and the look has already spent 5 s in earlier turns. The game can be
    dropped until the look's turns have taken a move time together. If a move time is as long as the clock,
    or longer, the game can be dropped until its deadline.
    """
    state = replace(scene.state, challenger_spent=5, deadline=NOW - 5 + CLOCK - 5)
    assert state.droppable_until(CLOCK, MOVE_TIME) == NOW - 5 + MOVE_TIME - 5
    assert state.droppable_until(CLOCK, CLOCK) == state.deadline
    assert state.droppable_until(CLOCK, 2 * CLOCK) == state.deadline


def test_nobody_is_accused_before_the_asking_game_can_be_dropped(
    scene: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another game has already brought the step tree, but the look's own game still waits for a place. Until
    the look can drop its game, it accuses nobody.
    """
    last = scene.state
    scene.state = replace(last, deadline=NEVER)
    assert scene.state.waits
    assert not scene.accuses(monkeypatch)
    scene.state, scene.root = last, None  # posted too late for this game
    assert not scene.accuses(monkeypatch)
    scene.root = TREE
    assert scene.accuses(monkeypatch) == [(GAME, NOW + MOVE_TIME)]


def test_a_game_that_is_dropped_too_late_continues_only_against_a_false_step_tree(scene: Asking) -> None:
    scene.late()
    scene.drops(TaskStatus.UNPAID)
    assert not scene.dropped
    assert scene.row.asks
    replays = scene.replays
    scene.drops(TaskStatus.UNPAID)
    assert scene.replays == replays == 1, "the tree is compared once"
    scene.root = FALSE
    scene.drops(TaskStatus.UNPAID)
    assert not scene.row.asks


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
        scene.state = replace(scene.state, deadline=NEVER)
    elif waits == "for the solver":
        scene.root = None
    else:
        scene.state = replace(scene.state, phase=Phase.CLOSED)
    scene.drops(TaskStatus.UNPAID)
    assert not scene.dropped


def test_no_game_asks_once_the_task_is_unpaid(scene: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "different", lambda *_: [(scene.look, None)])
    scene.posted = 0
    scene.database.update_challenge(ASKS.key, outcome="dropped")
    monkeypatch.setattr(scene.database, "challenge", lambda *_: None)
    assert [job.what for job in looking.asks(scene.context, scene.seen())] == [f"ask {LOOK}"]
    assert not list(looking.asks(scene.context, scene.seen(TaskStatus.UNPAID)))


def commit(database: Database, challenge: Challenge, status: TaskStatus, posted_at: int = 0) -> str | None:
    """Let a challenge commit after the time for challenges; returns the outcome that is noted. The step tree
    was posted at `posted_at`, or not yet if that is 0.
    """
    view = replace(VIEW, status=status, challenge_until=NOW - 1)
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
        game=SimpleNamespace(claim=lambda _key: SimpleNamespace(posted_at=posted_at)),
    )
    rates = Rates(1e12)
    bonds: Any = None  # never asked
    ChallengeCommitment(client, database, bonds, terms(), challenge, lambda: rates).advance(challenge)
    (row,) = database.all_challenges(ASKS.task)
    return row.outcome


@pytest.mark.parametrize("asks", [True, False])
def test_nothing_is_committed_to_a_game_that_asks_once_the_task_is_unpaid(tmp_path: Path, asks: bool) -> None:
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    challenge = replace(ASKS, asks=asks)
    database.put_challenge(challenge)
    assert commit(database, challenge, TaskStatus.UNPAID) == ("needless" if asks else None)
    database.close()


def test_a_step_tree_that_is_on_the_chain_is_not_asked_for(
    scene: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another game has made the solver post the step tree before the look could commit. The look then accuses
    without a game.
    """
    scene.database.begin_again(ASKS.key)
    assert commit(scene.database, scene.row, TaskStatus.SUBMITTED) is None
    assert not scene.accuses(monkeypatch)
    assert commit(scene.database, scene.row, TaskStatus.SUBMITTED, posted_at=NOW) == "needless"
    assert scene.accuses(monkeypatch) == [(accusing.NO_GAME, scene.seen().challenged_until)]
