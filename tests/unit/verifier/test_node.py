"""When the verifier releases a task, and what it leaves to others. The database is the real one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from time import sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.beacon.networks import DEVELOPMENT
from protocol.chain.blocks import Block
from protocol.chain.client import Client
from protocol.chain.errors import RpcUnavailable
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.chain.views import NEVER, NOBODY, PendingDraw, TaskStatus, TaskView
from protocol.dispute.keys import NO_SEAT
from protocol.node.home import Home
from protocol.node.party.exits import Exit, Observation
from protocol.tasks.task import Terms
from tests.unit.verifier.test_seats import AUDIT, ME, NOW, OTHER, observation, seat
from verifier import auditing, item_claims, juror, keeper, offered_salts
from verifier.bonds import Bonds
from verifier.database import COMMITTING, UNTIL_OVER, Challenge
from verifier.jobs import Job
from verifier.keeper import GRACE, LONGEST_TURN
from verifier.node import VerifierNode
from verifier.settings import VerifierSettings
from verifier.workers import ANSWERS, SENDERS

CHALLENGE = Challenge(1, NO_SEAT, ME, 2, bytes(32), b"")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[VerifierNode]:
    client = SimpleNamespace(
        connection=SimpleNamespace(genesis="0x" + "22" * 32, chain_id=31337),
        deployment=SimpleNamespace(
            beacon=DEVELOPMENT, parameters=replace(DEVNET, stall_period=1_000, draw_delay=2)
        ),
        beacon=SimpleNamespace(is_signed_round=None),
        market=SimpleNamespace(
            address=ME,
            terms=lambda _task: SimpleNamespace(attest_period=40, move_time=20),
            ask_ahead=lambda *_arguments: None,
        ),
        audit=SimpleNamespace(first_draw=lambda: PendingDraw(1, 0, LONG_OVER + 1, 0, 0, 0, 1)),
        address=ME,
        inclusion=1.0,
    )
    made = VerifierNode(cast(Client, client), VerifierSettings(), Home(tmp_path / "home"))
    yield made
    made._games.close()
    made.context.database.close()


@pytest.mark.parametrize(
    ("opening_until", "outcome", "finished"),
    [(None, "needless", {1}), (COMMITTING, None, set()), (10_000, None, set())],
)
def test_a_task_that_is_over_is_let_go_when_no_bond_is_at_stake(
    node: VerifierNode, opening_until: int | None, outcome: str | None, finished: set[int]
) -> None:
    database = node.context.database
    database.put_challenge(CHALLENGE)
    database.update_challenge(CHALLENGE.key, opening_until=opening_until)
    node._over(cast(TaskView, SimpleNamespace(task=1, status=TaskStatus.VOID)), NOW)
    kept = database.challenge(*CHALLENGE.key)
    assert kept is not None
    assert (kept.outcome, {task for task in range(9) if database.is_finished(task)}) == (outcome, finished)


def test_a_withdrawal_that_failed_is_tried_again(node: VerifierNode, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [RpcUnavailable("the chain", TimeoutError())]

    def withdraw(_account: str) -> int:
        if failures:
            raise failures.pop()
        return 5 * TOKEN

    monkeypatch.setattr(node._games.bonds, "withdraw", withdraw)
    monkeypatch.setattr("verifier.node.withdraw_credit", lambda _client: (0, None))
    with pytest.raises(RpcUnavailable):
        node._withdraw_now()
    assert node._withdraw
    node._withdraw_now()
    assert not node._withdraw


def test_the_bond_that_is_being_made_ready_is_not_withdrawn(node: VerifierNode) -> None:
    """Whichever comes first, the withdrawal or the bond, the bond is in the vault afterwards."""
    bond, vault = 20 * TOKEN, {"free": 20 * TOKEN}
    asked, go = Event(), Event()

    def tokens() -> tuple[int, int]:
        asked.set()
        assert go.wait(30)
        return vault["free"], 0

    def withdraw(amount: int) -> None:
        vault["free"] -= amount

    client = SimpleNamespace(
        address=ME,
        tokens=tokens,
        fund=lambda due: vault.update(free=max(vault["free"], due)),
        vault=SimpleNamespace(free=lambda _account: vault["free"], withdraw=withdraw),
    )
    bonds = Bonds(
        {ME: cast(Client, client)},
        node.context.database,
        lambda _task: cast(Terms, SimpleNamespace(bond=bond)),
    )
    ready = Thread(target=bonds.make_ready, args=(ME, 1))
    ready.start()
    assert asked.wait(30)
    withdrawal = Thread(target=bonds.withdraw, args=(ME,))
    withdrawal.start()
    go.set()
    for thread in (ready, withdrawal):
        thread.join()
    assert bonds.is_ready(ME, 1)
    assert vault["free"] == bond


def audited(seen: Observation, **changes: Any) -> Observation:
    """The observation with some fields of its audit changed."""
    return replace(seen, audit=replace(AUDIT, **changes))


LONG_OVER = NOW - GRACE - LONGEST_TURN - 1
ATTESTED = audited(
    observation(seats=(seat(0, OTHER, attested=True),), challenge_until=LONG_OVER), attested=1, audited=True
)
SILENT = audited(observation(seats=(seat(0, OTHER, until=LONG_OVER),)))
UNFILLED = audited(
    observation(seats=(seat(0, NOBODY, until=LONG_OVER),), challenge_until=LONG_OVER), escrow_draws=8
)
UNDRAWN = audited(observation(challenge_until=NEVER), pending=True, drawn_at=0, round=LONG_OVER + 1)
DUE = ((ATTESTED, Exit.SETTLE), (SILENT, Exit.REDRAW), (UNFILLED, Exit.VOID), (UNDRAWN, Exit.DRAW))


@pytest.mark.parametrize(("seen", "what"), DUE)
def test_a_verifier_makes_no_call_for_a_solver_that_it_challenges(
    node: VerifierNode, seen: Observation, what: Exit
) -> None:
    assert keeper.due(node.context, replace(seen, now=LONG_OVER + GRACE + 1)) is None, "it has no turn yet"
    assert keeper.due(node.context, seen) is what
    node.context.database.put_challenge(CHALLENGE)
    assert keeper.due(node.context, seen) is None


@pytest.mark.parametrize("outcome", ["clock_too_short", "challenger_silent", "needless"])
def test_a_solver_that_was_challenged_in_vain_is_not_paid_by_the_challenger(
    node: VerifierNode, outcome: str
) -> None:
    node.context.database.put_challenge(CHALLENGE)
    node.context.database.update_challenge(CHALLENGE.key, outcome=outcome)
    for seen, what in DUE:
        keeper.due(node.context, replace(seen, now=LONG_OVER + GRACE + 1))
        assert keeper.due(node.context, seen) is (None if what is Exit.SETTLE else what)


def test_a_verifier_does_not_report_its_own_silence(node: VerifierNode) -> None:
    assert keeper.due(node.context, replace(SILENT, seats=(*SILENT.seats, seat(1, ME)))) is None


def test_a_draw_is_a_matter_of_no_task_and_every_seat_is_released_by_a_job(node: VerifierNode) -> None:
    assert list(keeper.jobs(node.context, replace(UNDRAWN, now=LONG_OVER + GRACE + 1))) == []
    assert [job.key for job in keeper.jobs(node.context, UNDRAWN)] == [(None, "draw")]
    over = observation(TaskStatus.SETTLED, (seat(0), seat(1, OTHER), seat(2, released=True), seat(3)))
    assert [job.key for job in keeper.jobs(node.context, over)] == [(1, "release 0"), (1, "release 3")]


@pytest.mark.parametrize(("status", "days"), [(TaskStatus.SETTLED, 7), (TaskStatus.SLASHED, 0)])
def test_a_result_is_held_for_a_while_after_its_task_was_settled(
    node: VerifierNode, status: TaskStatus, days: int
) -> None:
    database = node.context.database
    database.hold(1, UNTIL_OVER)
    node._over(cast(TaskView, SimpleNamespace(task=1, status=status)), NOW)
    until = NOW + days * 86_400
    assert database.held_before(until) == []
    assert database.held_before(until + 1) == [1]


def test_no_flood_of_salts_keeps_an_attestation_waiting(
    node: VerifierNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attestation is made even while the chain does not answer the requests that the offered salts need."""
    seen = observation(seats=tuple(seat(number, OTHER, attested=True) for number in range(2 * SENDERS)))
    asked, let_go, attested = Event(), Event(), Event()
    due: list[Job] = []

    def ask(_client: object, _task: int) -> None:
        asked.set()
        assert let_go.wait(30)
        raise RpcUnavailable("the chain", TimeoutError())

    monkeypatch.setattr(offered_salts, "Attested", ask)
    monkeypatch.setattr(node._tasks, "find", lambda: node._tasks._open.add(1))
    monkeypatch.setattr(node._observer, "_look", lambda _task, _block: seen)
    monkeypatch.setattr(node, "_take_earnings", lambda: None)
    monkeypatch.setattr(auditing, "attestations", lambda _context, _seen: due)
    monkeypatch.setattr(auditing, "offer", lambda *_arguments: None)
    monkeypatch.setattr(keeper, "jobs", lambda _context, _seen: [])
    for number in range(2 * SENDERS):
        node.context.database.put_salt(1, number, bytes(32))
    block = Block(1, "0x1", "0x0", NOW, 0, 0)
    node.turn(block)
    try:
        assert asked.wait(30)
        due.append(Job(1, "attest 0", attested.set))
        alive = node.turn(block)
        assert attested.wait(5), "the workers are busy with salts"
        assert (alive, node._workers.informs.busy) == (3, 1), "the task and two jobs"
    finally:
        let_go.set()
        node._workers.informs.close()
        node._workers.sends.close()


BLOCK = Block(1, "0x1", "0x0", NOW, 0, 0)


def observed(node: VerifierNode, monkeypatch: pytest.MonkeyPatch, *all_seen: Observation) -> None:
    """Let the node see these tasks, with nothing to do except what the test adds."""
    seen = {one.view.task: one for one in all_seen}
    monkeypatch.setattr(node._tasks, "find", lambda: node._tasks._open.update(seen))
    monkeypatch.setattr(node._observer, "_look", lambda task, _block: seen[task])
    monkeypatch.setattr(node, "_take_earnings", lambda: None)
    monkeypatch.setattr(auditing, "offer", lambda *_arguments: None)
    monkeypatch.setattr(node._games, "make_ready", lambda _seen: [])
    for module, what in (
        (auditing, "attestations"),
        (item_claims, "jobs"),
        (juror, "openings"),
        (juror, "votes"),
        (juror, "keeping"),
        (keeper, "jobs"),
    ):
        monkeypatch.setattr(module, what, lambda _context, _seen: [])


def of_task(task: int, until: int) -> Observation:
    """A task in which this node has a seat that is due at `until`."""
    seen = observation(seats=(seat(0, ME, until=until),))
    return replace(seen, view=replace(seen.view, task=task))


def test_what_is_due_first_goes_first_whichever_task_is_older(
    node: VerifierNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed(node, monkeypatch, *(of_task(task, NOW + 100 - task) for task in range(1, ANSWERS + 2)))
    begun, let_go = list[int](), Event()

    def vote(task: int) -> None:
        begun.append(task)
        assert let_go.wait(30)

    monkeypatch.setattr(
        juror,
        "votes",
        lambda _context, seen: [Job(seen.view.task, "vote", lambda: vote(seen.view.task))],
    )
    node.turn(BLOCK)
    while len(begun) < ANSWERS:
        sleep(0.001)
    assert sorted(begun) == list(range(2, ANSWERS + 2)), "the oldest has the most time"
    let_go.set()
    while len(begun) < ANSWERS + 1:
        sleep(0.001)
    node._workers.answers.close()
    assert begun[-1] == 1, "a worker that is free takes it without another look"


def test_what_is_kept_for_claimants_keeps_no_vote_waiting(
    node: VerifierNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vote is cast however many tasks a hostile claimant has, and however long their states take."""
    observed(node, monkeypatch, *(of_task(task, NOW + 100) for task in range(1, 9)))
    let_go, voted, kept = Event(), Event(), list[int]()

    def keep(task: int) -> None:
        kept.append(task)
        assert let_go.wait(30)

    def keeping(_context: object, seen: Observation) -> list[Job]:
        return [Job(seen.view.task, "keep", lambda: keep(seen.view.task))]

    monkeypatch.setattr(juror, "keeping", keeping)
    node.turn(BLOCK)
    try:
        monkeypatch.setattr(juror, "votes", lambda _context, _seen: [Job(8, "vote 160", voted.set)])
        node.turn(BLOCK)
        assert voted.wait(30), "the workers are busy with what is kept"
        assert node._workers.keeps.busy == 1
    finally:
        let_go.set()
        node._workers.keeps.close()
        node._workers.answers.close()


def test_no_flood_of_strangers_tasks_keeps_an_attestation_waiting(
    node: VerifierNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that advance tasks wait for their receipts, however many are due, and an attestation is sent."""
    strangers = range(1, 4 * SENDERS + 1)
    bidding = [observation(TaskStatus.BIDDING) for _ in strangers]
    posted = [
        replace(seen, view=replace(seen.view, task=task))
        for task, seen in zip(strangers, bidding, strict=True)
    ]
    observed(node, monkeypatch, *posted, of_task(99, NOW + 100))
    let_go, attested, compensated = Event(), Event(), Event()

    def assign() -> None:
        assert let_go.wait(30)

    def calls(_context: object, seen: Observation) -> list[Job]:
        task = seen.view.task
        return [Job(task, "assign", assign)] if task != 99 else [Job(99, "claim 0", compensated.set, NOW + 9)]

    def attestations(_context: object, seen: Observation) -> list[Job]:
        return [Job(99, "attest 0", attested.set)] if seen.view.task == 99 else []

    monkeypatch.setattr(keeper, "jobs", calls)
    monkeypatch.setattr(auditing, "attestations", attestations)
    node.turn(BLOCK)
    try:
        assert attested.wait(5), "the workers are busy with calls"
        assert compensated.wait(5), "what has a time limit goes before what has none"
        assert node._workers.calls.full
    finally:
        let_go.set()
        node._workers.calls.close()
        node._workers.sends.close()


def test_the_duty_with_the_earliest_deadline_is_sent_first(
    node: VerifierNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    duties = SENDERS + 2
    observed(node, monkeypatch, *(of_task(task, NOW + 100 - task) for task in range(1, duties + 1)))
    begun, let_go, all_begun = list[int](), Event(), Event()

    def attest(task: int) -> None:
        begun.append(task)
        if len(begun) == SENDERS:
            all_begun.set()
        assert let_go.wait(30)

    def attestations(_context: object, seen: Observation) -> list[Job]:
        return [Job(seen.view.task, "attest 0", lambda: attest(seen.view.task))]

    monkeypatch.setattr(auditing, "attestations", attestations)
    node.turn(BLOCK)
    try:
        assert all_begun.wait(30)
        assert sorted(begun) == list(range(3, duties + 1)), "the older tasks have more time"
    finally:
        let_go.set()
        node._workers.sends.close()


def test_a_verifier_that_is_asked_to_stop_has_no_outcome(node: VerifierNode) -> None:
    """Once asked to stop, the verifier looks at no open task, so it cannot tell whether all tasks are over."""
    node._finished, node._alive = 1, 0
    assert node._outcome(once=True) is not None
    node._stop.ask()
    assert node._outcome(once=True) is None
