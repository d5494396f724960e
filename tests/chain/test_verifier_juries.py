"""Juries on a real chain: what verifiers claim, how they vote, what they open, and how claims end."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from random import Random

import pytest

from assay.status import report
from protocol.chain.accounts import development_account
from protocol.chain.client import Client
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.dispute.juries import (
    UNAVAILABLE,
    JuryVerdict,
    choose_objection,
    constants_item,
    juror_number,
)
from protocol.node.addresses import Address, parsed
from protocol.node.reach import Reach
from protocol.program.step import StepProgram
from protocol.tasks.task import Terms
from solver.strategy import Strategy as SolverStrategy
from tests.adversaries.withholding import from_the_withholder, serves_its_accomplice
from tests.chain.rounds import ANYTHING
from tests.chain.solver_stage import PARAMETERS, Solver, Stage, over
from tests.chain.test_verifier_informing import happened, wealth
from tests.chain.test_verifier_watch import Watcher, wait
from tests.unit.solver import tiny
from verifier.findings import Committed
from verifier.solver_client import CheckpointProvider
from verifier.strategy import Strategy, over_http

pytestmark = pytest.mark.chain

JURORS = 3
FEE = TOKEN
LOCK = 8 * TOKEN
STAKE = 500 * TOKEN
PERIOD = 400
MOVE_TIME = 200
ACCOUNTS = ("dev:2", "dev:5", "dev:6", "dev:7")
"""Accounts, of which one has the task's only seat and the others are its jury."""
WITHHOLDING = SolverStrategy(app=serves_its_accomplice)


@pytest.fixture
def scene(scene: Stage) -> Stage:
    """A stage. Its submitter has resigned, so that no draw chooses the submitter."""
    scene.submitter.audit.resign()
    return scene


@dataclass(frozen=True)
class Case:
    """A drawn task whose only seat has all segments. `seat` names its account; `others` have no seat."""

    scene: Stage
    task: int
    seat: str
    others: tuple[str, ...]

    def address(self, name: str) -> str:
        return str(development_account(int(name[4:]), 31337).address)

    def claimed(self) -> None:
        """Let half of the seat's time pass, and wait until the seat has made its claim."""
        self.scene.skip_to(self.scene.submitter.audit.seat(self.task, 0).until - PERIOD // 2)
        wait(lambda: bool(happened(self.scene, "Claimed", self.task)))

    def is_with(self, claimant: Watcher) -> bool:
        """Whether the claimant now has what it claimed to lack, so that it will not object."""
        view = self.scene.submitter.market.task(self.task)
        (claimed,) = happened(self.scene, "Claimed", self.task)
        material = claimant.node.context.materials.find(self.task)
        assert material is not None, "it has the bundle"
        return material.replayer.is_here(Committed(view.root, view.size), claimed.arguments["item"] + 1)

    def seated(self) -> int:
        """Advance the chain to the jury's draw and wait for it; returns the last second for votes."""
        board = self.scene.submitter.audit
        asked = board.jury(self.task)
        assert asked is not None
        self.scene.skip_to(self.scene.deployment.beacon.time_of(board.audit(self.task).round) - 1)
        wait(lambda: not board.audit(self.task).pending)
        drawn = board.jury(self.task)
        assert drawn is not None
        return drawn.until

    def votes(self) -> tuple[int, int]:
        """The numbers of votes for yes and for no."""
        jury = self.scene.submitter.audit.jury(self.task)
        return (0, 0) if jury is None else (jury.yes.bit_count(), jury.no.bit_count())

    def judged(self) -> dict[str, object]:
        """Wait for the verdict; returns the arguments of its event."""
        wait(lambda: bool(self.verdicts()))
        (told,) = self.verdicts()
        return told

    def verdicts(self) -> list[dict[str, object]]:
        """Arguments of the task's `Judged` events, which a jury's verdict causes. Games also have events of
        this name, but those name no task, so they are left out.
        """
        return [dict(one.arguments) for one in happened(self.scene, "Judged", self.task)]


def drawn(scene: Stage, stack: ExitStack, solver: SolverStrategy) -> Case:
    """A drawn task; its solver keeps running until the stack is closed."""
    task = sold(scene, stack, solver)
    scene.until_drawn(task)
    return seated(scene, task)


def sold(scene: Stage, stack: ExitStack, solver: SolverStrategy, *relays: str) -> int:
    """A task that the solver has won. `relays` are the solver's; none means the scene's."""
    for name in ACCOUNTS:
        client = scene.client(name)
        client.fund(1_000 * TOKEN)
        client.audit.register(0, ANYTHING)
        client.close()
    stack.callback(Solver(scene, solver, relays=relays or (scene.relay,)).close)
    terms = {
        "jurors": JURORS,
        "audit_fee": FEE,
        "stake": STAKE,
        "move_time": MOVE_TIME,
        "attest_period": PERIOD,
    }
    return scene.sold(segments_per_verifier=tiny.SEGMENTS, seat_lock=LOCK, **terms)


def seated(scene: Stage, task: int) -> Case:
    """The case of a drawn task; the beacon chooses which account has the seat."""
    account = scene.submitter.audit.seat(task, 0).account
    case = Case(scene, task, "", ())
    (seat,) = [name for name in ACCOUNTS if case.address(name) == account]
    return Case(scene, task, seat, tuple(name for name in ACCOUNTS if name != seat))


def test_data_that_nobody_can_fetch_end_the_task_unpaid(scene: Stage) -> None:
    with ExitStack() as stack:
        case = drawn(scene, stack, WITHHOLDING)
        jury = Watcher(scene, account=case.others[0], beside=case.others[1:])
        stack.callback(jury.close)
        claimant = Watcher(scene, account=case.seat)
        stack.callback(claimant.close)
        wait(lambda: bool(claimant.node.context.materials.find(case.task)))
        case.claimed()
        (claimed,) = happened(scene, "Claimed", case.task)
        assert claimed.arguments["item"] == 1, "segment 1 begins with the bundle's state"
        until = case.seated()
        (told,) = report(scene.submitter, [case.task])
        assert told.jury is not None
        assert "seat 0 claims that it cannot fetch state 1: 0 of 3 jurors have it" in "\n".join(told.lines())
        before = wealth(scene, claimant.client.address)
        scene.skip_to(until - PERIOD // 4)
        wait(lambda: case.votes() == (0, JURORS))
        scene.skip_to(until)
        verdict = case.judged()
        assert (verdict["verdict"], verdict["yes"], verdict["no"]) == (JuryVerdict.WITHHELD, 0, JURORS)
        view = scene.until(case.task, lambda view: view.status is TaskStatus.UNPAID)
        assert scene.submitter.vault.lock_of(view.stake).remaining == STAKE - STAKE // 16
        assert wealth(scene, claimant.client.address) - before == FEE + PARAMETERS.draw_fee
        scene.end_challenges(case.task)
        assert scene.until(case.task, over).status is TaskStatus.VOID
        metrics = [node.node.context.metrics.registry for node in (claimant, jury)]
        assert metrics[0].get_sample_value("assay_verifier_claimed_total") == 1
        assert metrics[1].get_sample_value("assay_verifier_votes_total", {"vote": "no"}) == JURORS


def cut_off(scene: Stage, wholly: bool = False) -> Strategy:
    """The strategy of a verifier whose network does not reach the solver. If `wholly`, it reaches nobody."""
    solver = parsed(scene.submitter.market.endpoint_of(str(development_account(1, 31337).address)))
    assert solver is not None

    def provider(
        address: Address | None, task: int, program: StepProgram, terms: Terms, reach: Reach
    ) -> CheckpointProvider:
        reached = None if wholly or address == solver else address
        return over_http(reached, task, program, terms, reach)

    return Strategy(provider=provider)


def test_who_is_cut_off_has_from_the_jury_what_it_cannot_fetch(scene: Stage) -> None:
    with ExitStack() as stack:
        case = drawn(scene, stack, SolverStrategy())
        jury = Watcher(scene, account=case.others[0], beside=case.others[1:])
        stack.callback(jury.close)
        claimant = Watcher(scene, cut_off(scene), account=case.seat)
        stack.callback(claimant.close)
        wait(lambda: bool(claimant.node.context.materials.find(case.task)))
        case.claimed()
        until = case.seated()
        wait(lambda: case.votes() == (JURORS, 0))
        lacking = claimant.node.context.database.own_segments
        wait(lambda: len(claimant.node.context.juries.sources(case.task)) == 1, 30)
        wait(lambda: case.is_with(claimant))
        scene.skip_to(until + MOVE_TIME // 2)
        scene.skip_to(until + MOVE_TIME)
        verdict = case.judged()
        assert (verdict["verdict"], verdict["yes"], verdict["no"]) == (JuryVerdict.AVAILABLE, JURORS, 0)
        assert not happened(scene, "Objected", case.task), "it has what it claimed"
        wait(lambda: scene.submitter.audit.audit(case.task).audited)
        assert lacking(case.task) <= 1, "it has run nothing from the start"
        scene.end_challenges(case.task)
        assert scene.until(case.task, over).status is TaskStatus.SETTLED
        free = [scene.submitter.audit.registration(case.address(name)) for name in ACCOUNTS]
        assert all(one is not None and not one.suspended for one in free)


def test_a_juror_that_has_not_what_it_says_loses_its_lock(scene: Stage) -> None:
    with ExitStack() as stack:
        case = drawn(scene, stack, WITHHOLDING)
        claimant = Watcher(scene, account=case.seat)
        stack.callback(claimant.close)
        wait(lambda: bool(claimant.node.context.materials.find(case.task)))
        case.claimed()
        until = case.seated()
        board, liars = scene.submitter.audit, []
        for slot in range(JURORS):
            juror = board.seat(case.task, juror_number(slot))
            (name,) = [name for name in case.others if case.address(name) == juror.account]
            client = stack.enter_context(scene.client(name))
            if slot:
                client.audit.attest(case.task, juror.number, bytes([slot]) * 32, bytes([9]) * 32)
                liars.append(client)
            else:
                client.audit.attest(case.task, juror.number, UNAVAILABLE, UNAVAILABLE)
        before = wealth(scene, claimant.client.address)
        scene.skip_to(until + MOVE_TIME // 2)
        wait(lambda: bool(happened(scene, "Objected", case.task)))
        (objected,) = happened(scene, "Objected", case.task)
        scene.skip_to(objected.arguments["until"])
        verdict = case.judged()
        assert (verdict["verdict"], verdict["yes"], verdict["no"]) == (JuryVerdict.UNDECIDED, 0, 1)
        unopened = happened(scene, "Unopened", case.task)
        assert {one.arguments["account"] for one in unopened} == {liar.address for liar in liars}
        assert wealth(scene, claimant.client.address) == before, "the locks burn"
        view = scene.submitter.market.task(case.task)
        assert view.status is TaskStatus.SUBMITTED, "one no is no majority"
        assert scene.submitter.vault.lock_of(view.stake).remaining == STAKE
        for liar in liars:
            registration = board.registration(liar.address)
            assert registration is not None
            assert registration.suspended
        scene.skip_to(board.seat(case.task, 0).until - PERIOD // 2)
        wait(lambda: len(happened(scene, "Claimed", case.task)) == 2)
        (_, again) = happened(scene, "Claimed", case.task)
        assert (again.arguments["account"], again.arguments["item"]) == (claimant.client.address, 1)


@pytest.mark.parametrize("item", [2, constants_item(tiny.SEGMENTS)])
def test_honest_jurors_open_what_is_objected_to(scene: Stage, item: int) -> None:
    """The contract accepts the openings that Python makes of a state and of the constants."""
    with ExitStack() as stack:
        case = drawn(scene, stack, SolverStrategy())
        jury = Watcher(scene, account=case.others[0], beside=case.others[1:])
        stack.callback(jury.close)
        claimant: Client = stack.enter_context(scene.client(case.seat))
        claimant.fund(FEE + PARAMETERS.draw_fee)
        claimant.juries.claim(case.task, 0, item)
        until = case.seated()
        wait(lambda: case.votes() == (JURORS, 0))
        scene.skip_to(until)
        program = tiny.step_program()
        types = program.fixed_types if item > tiny.SEGMENTS else program.state_types
        chosen = choose_objection([type_.nbytes for type_ in types], Random(item))
        claimant.juries.object(case.task, chosen)
        wait(lambda: len(happened(scene, "Opened", case.task)) == JURORS)
        claim = claimant.juries.claim_of(case.task)
        assert claim is not None
        assert (claim.tensor, claim.walk, claim.opened) == (*chosen, (1 << JURORS) - 1)
        shares = [wealth(scene, case.address(name)) for name in case.others]
        scene.skip_to(claim.until)
        verdict = case.judged()
        assert (verdict["verdict"], verdict["yes"]) == (JuryVerdict.AVAILABLE, JURORS)
        assert not happened(scene, "Unopened", case.task)
        paid = [
            wealth(scene, case.address(name)) - share for name, share in zip(case.others, shares, strict=True)
        ]
        assert paid == [FEE // JURORS] * JURORS
        opened = jury.node.context.metrics.registry.get_sample_value("assay_verifier_opened_total")
        assert opened == JURORS


def test_an_accomplice_attests_what_is_served_to_it_alone(scene: Stage) -> None:
    with ExitStack() as stack:
        case = drawn(scene, stack, WITHHOLDING)
        fed = Watcher(scene, Strategy(provider=from_the_withholder), account=case.seat)
        stack.callback(fed.close)
        wait(lambda: scene.submitter.audit.audit(case.task).audited)
        assert not happened(scene, "Claimed", case.task)


def test_the_solver_ends_a_claim_that_nobody_else_ends(scene: Stage) -> None:
    """The solver can be paid only after the claim has ended: while the claim is open, the silent seat is not
    drawn again.
    """
    with ExitStack() as stack:
        case = drawn(scene, stack, SolverStrategy())
        claimant: Client = stack.enter_context(scene.client(case.seat))
        claimant.fund(FEE + PARAMETERS.draw_fee)
        claimant.juries.claim(case.task, 0, 2)
        scene.skip_to(case.seated())
        verdict = case.judged()
        assert (verdict["verdict"], verdict["yes"], verdict["no"]) == (JuryVerdict.UNDECIDED, 0, 0)
        assert len(happened(scene, "Silent", case.task)) == JURORS
        assert claimant.juries.claim_of(case.task) is None
