"""A verifier notes as final what it reads of a task's end. If the blocks from which it read this are
replaced, it takes the note back. The database is the real one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.errors import Reverted
from protocol.chain.views import TaskStatus
from protocol.dispute.keys import NO_SEAT
from protocol.dispute.view import Phase, Verdict
from protocol.node.database import Identity
from protocol.node.logs import get
from protocol.node.party.exits import Observation
from tests.unit.verifier.test_seats import ME, NOW, OTHER, VIEW, observation, seat
from verifier import compensation
from verifier.challenge_commitment import FORFEITED, NEEDLESS, OPENED_LATE, ChallengeCommitment
from verifier.challenging import ChallengeDriver
from verifier.context import Context
from verifier.database import Challenge, Database
from verifier.outcomes import Outcomes

GAME = 4
CHALLENGE = Challenge(1, NO_SEAT, ME, 2, bytes(32), b"")
CLOSED = SimpleNamespace(
    game=GAME,
    task=1,
    challenger=ME,
    phase=Phase.CLOSED,
    verdict=Verdict.SOLVER_SILENT,
    deadline=NOW - 1,
    demand_open=0,
    depth=0,
    demands=0,
    waits=False,
    head=b"",
    claim=bytes(32),
)


class Scene:
    """A task on a simulated chain, and a challenge of it in game `GAME`."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.status = TaskStatus.SLASHED
        self.state = CLOSED
        self.posted: bytes | None = None
        self.posted_at = 0
        """When the solver posted its step tree; 0 if it has not. `posted` is the tree's root."""
        self.convicted = (NOW, 2)
        self.final = 0
        self.paid: list[tuple[int, ...]] = []
        self.refusal: str | None = None
        game = SimpleNamespace(
            game=lambda *_: self.state,
            claim=lambda *_: SimpleNamespace(posted=lambda _state: self.posted, posted_at=self.posted_at),
            conviction=lambda _task, block=1: self.convicted if block else (0, 0),
        )
        self.client: Any = SimpleNamespace(
            address=ME,
            inclusion=1.0,
            deployment=SimpleNamespace(block=1),
            connection=SimpleNamespace(
                block=lambda: SimpleNamespace(number=9, time=NOW), final_block=lambda: self.final
            ),
            game=game,
            market=SimpleNamespace(task=lambda _task: replace(VIEW, status=self.status)),
            commitments=SimpleNamespace(
                claims_until=lambda _task: NOW + 100, pay_fee=self.pay, events=lambda _receipt: []
            ),
            is_over_for_good=lambda _task: self.final > 0,
        )
        self.context = cast(
            Context,
            SimpleNamespace(
                client=self.client,
                clients={ME: self.client},
                database=database,
                log=get("test"),
                claimed=set(),
                segments=lambda _task, _seat: [1],
            ),
        )
        self.outcomes = Outcomes(self.context)

    def pay(self, *call: int) -> SimpleNamespace:
        """Pay a seat's fee or refuse it, as the contract does."""
        self.paid.append(call)
        if self.refusal is not None:
            raise Reverted("payFee", self.refusal, {})
        return SimpleNamespace(gas_used=1)

    @property
    def seen(self) -> Observation:
        return observation(self.status, (seat(0, ME, attested=True), seat(1, OTHER, attested=True)))

    @property
    def outcome(self) -> str | None:
        (row,) = self.database.all_challenges(1)
        return row.outcome

    def look(self) -> str | None:
        """Look at the task, and return the outcome that is noted afterwards."""
        self.outcomes.see(self.seen)
        return self.outcome

    def claim(self) -> None:
        """Make the claims that are due."""
        for job in compensation.jobs(self.context, self.seen):
            job.work()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    database = Database(tmp_path / "verifier.sqlite", Identity("chain", "market", ME))
    yield Scene(database)
    database.close()


def test_a_game_whose_closing_block_is_replaced_by_the_solvers_post_is_played_on(scene: Scene) -> None:
    """At first, the solver was silent and was convicted. Then the block of the conviction is replaced: on the
    new branch, the solver has posted its step tree in time, so the game goes on.
    """
    scene.database.put_challenge(CHALLENGE)
    scene.database.update_challenge(CHALLENGE.key, opening_until=NOW, game=GAME)
    commitment = cast(ChallengeCommitment, None)  # never asked
    driver = ChallengeDriver(scene.client, scene.database, commitment, CHALLENGE)
    driver.advance()
    assert scene.look() == scene.look() == "solver_silent"
    assert not scene.database.open_challenges()
    scene.status = TaskStatus.SUBMITTED
    scene.posted = bytes([1]) * 32
    scene.state = SimpleNamespace(**vars(CLOSED) | {"phase": Phase.STEP, "deadline": NOW + 100})
    assert scene.look() is None
    (row,) = scene.database.open_challenges()
    driver = ChallengeDriver(scene.client, scene.database, commitment, row)
    driver.advance()
    assert driver.own_turn
    assert driver.deadline < math.inf
    scene.state = SimpleNamespace(**vars(CLOSED) | {"verdict": Verdict.SOLVER_FALSE})
    driver.advance()
    assert scene.outcome == "solver_false"


@pytest.mark.parametrize(("field", "value"), [("task", 0), ("task", 7), ("challenger", OTHER)])
def test_a_game_that_is_not_there_any_more_is_opened_again(scene: Scene, field: str, value: Any) -> None:
    scene.database.put_challenge(CHALLENGE)
    scene.database.update_challenge(CHALLENGE.key, opening_until=NOW, game=GAME, outcome="solver_silent")
    assert scene.look() == scene.look() == "solver_silent"
    scene.state = SimpleNamespace(**vars(CLOSED) | {field: value})
    assert scene.look() is None
    ChallengeDriver(scene.client, scene.database, cast(ChallengeCommitment, None), CHALLENGE).advance()
    (row,) = scene.database.open_challenges()
    assert (row.game, row.opening_until) == (None, None)


@pytest.mark.parametrize("outcome", [NEEDLESS, FORFEITED, OPENED_LATE])
def test_what_depends_on_a_conviction_goes_with_it(scene: Scene, outcome: str) -> None:
    scene.database.put_challenge(CHALLENGE)
    scene.database.update_challenge(CHALLENGE.key, outcome=outcome)
    for _ in range(3):
        assert scene.look() == outcome
    scene.status = TaskStatus.SUBMITTED
    assert scene.look() is None


@pytest.mark.parametrize("outcome", ["clock_too_short", "opening_too_short"])
def test_what_does_not_depend_on_the_chain_stays(scene: Scene, outcome: str) -> None:
    scene.database.put_challenge(CHALLENGE)
    scene.database.update_challenge(CHALLENGE.key, outcome=outcome)
    for scene.status in (TaskStatus.SLASHED, TaskStatus.SUBMITTED, TaskStatus.SUBMITTED):
        assert scene.look() == outcome


def test_a_question_stays_needless_while_nobody_can_be_accused(scene: Scene) -> None:
    scene.database.put_challenge(replace(CHALLENGE, asks=True))
    scene.database.update_challenge(CHALLENGE.key, outcome=NEEDLESS)
    for scene.status in (TaskStatus.SLASHED, TaskStatus.UNPAID, TaskStatus.UNPAID):
        assert scene.look() == NEEDLESS


def test_a_question_stays_needless_while_its_answer_is_on_the_chain(scene: Scene) -> None:
    scene.database.put_challenge(replace(CHALLENGE, asks=True))
    scene.database.update_challenge(CHALLENGE.key, outcome=NEEDLESS)
    scene.status, scene.posted_at = TaskStatus.SUBMITTED, NOW
    for _ in range(3):
        assert scene.look() == NEEDLESS
    scene.posted_at = 0  # the post was taken back
    assert scene.look() is None


@pytest.mark.parametrize("refusal", [None, "NothingOwed"])
def test_a_seat_claims_again_after_another_conviction(scene: Scene, refusal: str | None) -> None:
    scene.refusal = refusal
    for _ in range(3):
        scene.claim()
    assert scene.paid == [(1, 0)]
    scene.status = TaskStatus.SUBMITTED
    scene.claim()
    scene.status, scene.convicted = TaskStatus.SLASHED, (NOW + 1, 2)
    for _ in range(3):
        scene.claim()
    assert scene.paid == [(1, 0), (1, 0)]
    assert not scene.database.is_claimed(1, 0), "the conviction is not final"


def test_a_claim_is_noted_for_good_once_the_conviction_is_final(scene: Scene) -> None:
    scene.final = 1
    scene.claim()
    assert scene.database.is_claimed(1, 0)
    scene.context.claimed.clear()  # a restart
    scene.claim()
    assert scene.paid == [(1, 0)]
