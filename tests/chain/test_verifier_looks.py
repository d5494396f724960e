"""Looks on a real chain: what real verifiers look at, reveal, accuse and answer (audit.md section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest

from protocol.chain.accounts import development_account
from protocol.chain.client import Client
from protocol.chain.parameters import TOKEN
from protocol.chain.views import GameState
from protocol.commitments import ProgressTree
from protocol.dispute.accusing import choose_place, evidence
from protocol.dispute.keys import priority_commitment, steps_key
from protocol.dispute.looks import Look
from protocol.dispute.openings import Leaf
from protocol.dispute.view import Phase, Verdict
from protocol.execution.replay import HonestExecutor, Replay
from protocol.program.execute import Interpreter
from solver.settlement import GRACE
from tests.adversaries.rubber_stamp import RubberStamp
from tests.chain.arena import Subject, replay
from tests.chain.rounds import ANYTHING
from tests.chain.solver_stage import Solver, Stage, over
from tests.chain.test_verifier_informing import happened, wealth
from tests.chain.test_verifier_watch import Watcher, wait
from tests.unit.solver import tiny
from verifier.accusing import SegmentStates

pytestmark = pytest.mark.chain

LOCK = 20 * TOKEN
GAME_COST = 3 * TOKEN
ALWAYS = 10_000
MOVE_TIME = 200
ACCOUNTS = ("dev:2", "dev:5")
LEVEL = 1
"""The level of stake at which the accounts register; it is not a level of looks. It means a stake of 20
tokens, which is exactly `LOCK`.
"""
SALT = bytes(32)


@pytest.fixture
def scene(scene: Stage) -> Stage:
    """A stage whose submitter has left the draw."""
    scene.submitter.audit.resign()
    return scene


def sold(scene: Stage, **changes: int) -> int:
    """A drawn task whose seats are always looked at. By default, it has one seat of one segment."""
    terms = {"look_chance": ALWAYS, "move_time": MOVE_TIME, "seat_lock": LOCK, **changes}
    task = scene.sold(**terms)
    scene.until_drawn(task)
    return task


@dataclass(frozen=True)
class Pair:
    """A drawn task with only one seat. `seat` names the account that has the seat; `other` names an account
    that is free to look at it.
    """

    task: int
    seat: str
    other: str


@pytest.fixture
def pair(scene: Stage) -> Iterator[Pair]:
    """A drawn task and two accounts, of which one has the seat; the beacon chooses which."""
    for account in ACCOUNTS:
        client = scene.client(account)
        client.fund(100_000 * TOKEN)
        client.audit.register(LEVEL, ANYTHING)
        client.close()
    solver = Solver(scene)
    try:
        task = sold(scene)
        seated = scene.submitter.audit.seat(task, 0).account
        addresses = [str(development_account(int(name[4:]), 31337).address) for name in ACCOUNTS]
        first = addresses.index(seated)
        yield Pair(task, ACCOUNTS[first], ACCOUNTS[1 - first])
    finally:
        solver.close()


def until_picked(scene: Stage, task: int) -> list[int]:
    """Advance the chain to the draw of looks and wait for it; returns the looks that have an account."""
    audit = scene.submitter.audit
    wait(lambda: audit.audit(task).level == 1)
    scene.skip_to(scene.deployment.beacon.time_of(audit.audit(task).round) - 1)
    wait(lambda: audit.audit(task).picked_at > 0)
    return [look.number for look in audit.looks(task)]


def honest(segments: int = tiny.SEGMENTS) -> Replay:
    """An honest run of the whole tiny task."""
    program = tiny.step_program()
    subject = Subject(program, tiny.fixed(), tiny.initial(), segments, tiny.STEPS)
    return replay(subject, HonestExecutor(program, tiny.fixed(), Interpreter()))


def test_honest_seats_are_looked_at_and_paid_and_so_are_their_looks(scene: Stage) -> None:
    watcher = Watcher(scene, further=2, stake=30)
    wait(lambda: scene.submitter.audit.registered() == 3)
    solver = Solver(scene)
    audit = scene.submitter.audit
    try:
        task = sold(scene)
        (look,) = until_picked(scene, task)
        assert Look.of(look) == Look(1, 0)
        wait(lambda: audit.audit(task).audited)
        wait(lambda: bool(happened(scene, "Revealed", task)))
        seat, looker = audit.seat(task, 0), audit.seat(task, look)
        assert seat.attested
        assert looker.attested
        assert seat.account != looker.account
        assert audit.segments(task, look) == audit.segments(task, 0)
        assert not happened(scene, "Accused", task)
        scene.end_challenges(task)
        view = scene.until(task, over)
        assert view.status.name == "SETTLED"
        wait(lambda: all(one.released for one in (audit.seat(task, 0), audit.seat(task, look))))
    finally:
        watcher.close()
        solver.close()


def test_a_rubber_stamp_loses_its_lock(scene: Stage, pair: Pair) -> None:
    task, audit, lazy = pair.task, scene.submitter.audit, scene.client(pair.seat)
    watcher = Watcher(scene, account=pair.other)
    try:
        stamp = RubberStamp(lazy, task)
        stamp.attest()
        (look,) = until_picked(scene, task)
        assert stamp.reveal()
        wait(lambda: bool(happened(scene, "Accused", task)))
        before = wealth(scene, watcher.client.address)
        scene.skip_to(scene.submitter.looks.look(task, look).until)
        wait(lambda: bool(happened(scene, "Unanswered", task)))
        (unanswered,) = happened(scene, "Unanswered", task)
        assert unanswered.arguments["account"] == lazy.address
        assert unanswered.arguments["looker"] == watcher.client.address
        assert unanswered.arguments["paid"] == LOCK // 2
        # Half of the lock, and the watcher's bond for the accusation.
        assert wealth(scene, watcher.client.address) - before == LOCK // 2 + GAME_COST
        (ended,) = games_ended(scene)
        assert (ended.verdict, ended.challenger) == (Verdict.DROPPED, watcher.client.address)
        assert audit.seat(task, 0).caught
        free = scene.submitter.vault.free(lazy.address)
        scene.end_challenges(task)
        assert scene.until(task, over).status.name == "SETTLED"
        assert scene.submitter.vault.free(lazy.address) == free, "it has no fee"
        assert watcher.node.context.metrics.registry.get_sample_value("assay_verifier_caught_total") == 1
    finally:
        watcher.close()
        lazy.close()


def games_ended(scene: Stage) -> list[GameState]:
    calls = scene.submitter.game
    states = [calls.game(number) for number in range(1, calls.games() + 1)]
    return [state for state in states if state.phase is Phase.CLOSED]


def test_a_seat_that_does_not_open_its_digest_loses_its_lock(scene: Stage, pair: Pair) -> None:
    task, audit, lazy = pair.task, scene.submitter.audit, scene.client(pair.seat)
    watcher = Watcher(scene, account=pair.other)
    try:
        RubberStamp(lazy, task).attest()
        until_picked(scene, task)
        wait(lambda: audit.audit(task).audited)
        scene.skip_to(audit.audit(task).picked_at + MOVE_TIME)
        wait(lambda: bool(happened(scene, "Unrevealed", task)))
        (unrevealed,) = happened(scene, "Unrevealed", task)
        assert unrevealed.arguments["account"] == lazy.address
        assert unrevealed.arguments["paid"] == LOCK // 2
    finally:
        watcher.close()
        lazy.close()


def test_an_honest_seat_answers_a_false_accusation_and_keeps_the_bond(scene: Stage, pair: Pair) -> None:
    """The look's account accuses the seat although the seat's digest is correct."""
    task, audit, false = pair.task, scene.submitter.audit, scene.client(pair.other)
    watcher = Watcher(scene, account=pair.seat)
    try:
        (look,) = until_picked(scene, task)
        wait(lambda: bool(happened(scene, "Revealed", task)))
        (revealed,) = happened(scene, "Revealed", task)
        false.audit.attest(task, look, bytes([1]) * 32, bytes([2]) * 32)
        before = wealth(scene, watcher.client.address)
        accuse(scene, false, task, look, revealed.arguments["salt"], revealed.arguments["segmentRoot"])
        wait(lambda: bool(happened(scene, "Answered", task)))
        assert wealth(scene, watcher.client.address) - before == GAME_COST
        assert not audit.seat(task, 0).caught
    finally:
        watcher.close()
        false.close()


def test_a_solver_ends_an_accusation_that_the_seat_and_the_look_leave_open(scene: Stage, pair: Pair) -> None:
    """The seat and the look are in league: the one does not answer, and the other does not take the lock. No
    verifier runs that would take it.
    """
    task, lazy, looker = pair.task, scene.client(pair.seat), scene.client(pair.other)
    try:
        stamp = RubberStamp(lazy, task)
        stamp.attest()
        (look,) = until_picked(scene, task)
        assert stamp.reveal()
        (revealed,) = happened(scene, "Revealed", task)
        looker.audit.attest(task, look, bytes([1]) * 32, bytes([2]) * 32)
        accuse(scene, looker, task, look, revealed.arguments["salt"], revealed.arguments["segmentRoot"])
        until = scene.submitter.looks.look(task, look).until
        scene.skip_to(max(until + GRACE, scene.submitter.market.task(task).challenge_until))
        assert scene.until(task, over).status.name == "SETTLED"
        assert scene.submitter.audit.seat(task, 0).caught
        assert scene.submitter.looks.open_accusations(task) == 0
    finally:
        looker.close()
        lazy.close()


def accuse(scene: Stage, client: Client, task: int, look: int, salt: bytes, root: bytes) -> None:
    """Have the solver post its step tree in a game, then accuse the seat at a place in the look's segment."""
    run, terms = honest(), client.market.terms(task)
    (segment,) = client.audit.segments(task, look)
    roots = run.segment_roots()
    assert roots is not None
    commitment = priority_commitment(
        client.deployment.chain_id, client.commitments.address, task, segment, client.address, SALT
    )
    client.commitments.commit(task, look, commitment)
    scene.devnet.mine()
    tree = ProgressTree(list(roots)).at(len(roots))
    before = Leaf(roots[segment - 1], tree.inclusion_path(segment - 1))
    after = Leaf(roots[segment], tree.inclusion_path(segment))
    game, _ = client.game.challenge(task, segment, SALT, before, after)
    wait(lambda: bool(client.game.claim(steps_key(task, segment)).posted_at))
    states = SegmentStates(run, tiny.step_program(), segment)
    sizes = [len(data) for data in states.tensors(0)]
    at = choose_place(states, sizes, terms.segment_steps, terms.thinning, Random(1))
    data = states.tensors(at.step)[at.tensor]
    shown = evidence(data, at, run.tensor_roots(segment, at.step), run.step_roots(segment))
    client.looks.accuse(task, look, game, salt, root, shown)


def test_there_is_no_second_level_where_the_first_took_all_looks(scene: Stage) -> None:
    """The number of looks of a task, over all levels, is at most the number of segments of all its seats
    together. Here the first level uses all of these looks.
    """
    watcher = Watcher(scene, further=3, stake=30)
    wait(lambda: scene.submitter.audit.registered() == 4)
    solver = Solver(scene)
    audit = scene.submitter.audit
    try:
        task = sold(scene, verifiers=2)
        looks = until_picked(scene, task)
        assert len(looks) == 2
        wait(lambda: audit.audit(task).audited)
        assert audit.audit(task).looks == 2
        assert audit.audit(task).level == 1
        wait(lambda: len(happened(scene, "Revealed", task)) == 2)
    finally:
        watcher.close()
        solver.close()
