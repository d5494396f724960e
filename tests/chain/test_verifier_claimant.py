"""A seat's claim on a real chain: the claimant's process is killed, several items are missing, or no verdict
comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.dispute.juries import UNAVAILABLE, JuryVerdict, juror_number
from protocol.node.addresses import Address
from protocol.node.reach import Reach
from protocol.program.step import StepProgram
from protocol.tasks.task import Terms
from solver.catalog import Catalog
from solver.limits import App, Message, Receive, Send
from solver.server import application
from solver.strategy import Strategy as SolverStrategy
from tests.adversaries.tiny import moves_a_weight_far
from tests.chain.rounds import draw_first
from tests.chain.solver_stage import Stage, over, submitted
from tests.chain.test_verifier_informing import happened
from tests.chain.test_verifier_juries import (
    ACCOUNTS,
    JURORS,
    MOVE_TIME,
    PERIOD,
    WITHHOLDING,
    Case,
    cut_off,
    drawn,
    seated,
    sold,
)
from tests.chain.test_verifier_killed import Process
from tests.chain.test_verifier_watch import Watcher, wait
from verifier.solver_client import CheckpointProvider
from verifier.strategy import Strategy, over_http

pytestmark = pytest.mark.chain

NOWHERE = "http://127.0.0.1:1"
"""A relay that does not exist."""
WITHHELD, CUT_OFF = 2, 1
"""Numbers of states. The solver serves the state `WITHHELD` to nobody, and the state `CUT_OFF` to all but the
claimant.
"""


def claims(case: Case) -> list[dict[str, Any]]:
    return [dict(one.arguments) for one in happened(case.scene, "Claimed", case.task)]


@pytest.fixture
def scene(scene: Stage) -> Stage:
    """A stage whose submitter has resigned its registration, so that no draw gives it a seat."""
    scene.submitter.audit.resign()
    return scene


class Claimant:
    """The process that has the case's seat. `kill` also starts a new process on the same folder."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.address = case, case.address(case.seat)
        self._log = folder / "claimant.log"
        flags = "--no-whistleblow", "--port", "0"
        self._process = Process(case.scene, folder / "claimant", self._log, int(case.seat[4:]), *flags)

    def kill(self) -> None:
        self._process.kill()

    def kill_before_receipt(self, time: int, event: str) -> None:
        """Advance the chain to `time`, and wait until the claimant has sent the transaction that causes
        `event`. Then kill and restart the claimant, usually before this transaction is mined.
        """
        scene, contract = self.case.scene, self.case.scene.submitter.juries.address
        ask = scene.devnet.connection.request

        def sent() -> bool:
            accounts = {name.lower(): found for name, found in ask("txpool_content")["pending"].items()}
            calls = accounts.get(self.address.lower(), {}).values()
            mined = bool(happened(scene, event, self.case.task))
            return mined or any(str(call["to"]).lower() == contract.lower() for call in calls)

        ask("evm_setIntervalMining", 5)
        scene.skip_to(time)
        wait(sent, 120)
        ask("evm_setIntervalMining", 0)
        self.kill()
        ask("evm_setIntervalMining", 1)

    def close(self) -> None:
        self._process.close()
        print(self._log.read_text())


def test_a_claim_survives_kills_in_each_phase(scene: Stage, tmp_path: Path) -> None:
    """Two jurors vote that they have the unserved state, and one juror votes no. After an objection the jury
    is undecided.
    """
    with ExitStack() as stack:
        case = drawn(scene, stack, WITHHOLDING)
        board = scene.submitter.audit
        claimant = Claimant(case, tmp_path)
        stack.callback(claimant.close)
        wait(lambda: bool(scene.submitter.market.endpoint_of(claimant.address)), 120)
        claimant.kill_before_receipt(board.seat(case.task, 0).until - PERIOD // 2, "Claimed")
        wait(lambda: bool(claims(case)))
        until = case.seated()
        claimant.kill()
        for slot in range(JURORS):
            juror = board.seat(case.task, juror_number(slot))
            (name,) = [name for name in case.others if case.address(name) == juror.account]
            vote = (bytes([slot]) * 32, bytes([9]) * 32) if slot else (UNAVAILABLE, UNAVAILABLE)
            with scene.client(name) as client:
                client.audit.attest(case.task, juror.number, *vote)
        claimant.kill_before_receipt(until + MOVE_TIME // 2, "Objected")
        wait(lambda: bool(happened(scene, "Objected", case.task)))
        (objected,) = happened(scene, "Objected", case.task)
        claimant.kill()
        scene.skip_to(objected.arguments["until"])
        verdict = case.judged()
        assert (verdict["verdict"], verdict["yes"], verdict["no"]) == (JuryVerdict.UNDECIDED, 0, 1)
        claimant.kill()
        assert len(claims(case)) == 1
        scene.skip_to(board.seat(case.task, 0).until - PERIOD // 2)
        wait(lambda: len(claims(case)) == 2, 120)
        assert {(one["account"], one["item"]) for one in claims(case)} == {(claimant.address, 1)}
        assert len(happened(scene, "Objected", case.task)) == 1


def serves_all_but_one(catalog: Catalog) -> App:
    """The solver's service without the checkpoint `WITHHELD`."""
    served = application(catalog)

    async def app(scope: Message, receive: Receive, send: Send) -> None:
        if f"/checkpoints/{WITHHELD}/" in scope.get("path", ""):
            scope = {**scope, "path": "/nothing"}
        await served(scope, receive, send)

    return app


def half_cut_off(scene: Stage) -> Strategy:
    """The strategy of a verifier that cannot fetch the state `CUT_OFF` from the solver, only from others."""
    reached, solvers = cut_off(scene).provider, over_http

    def provider(
        address: Address | None, task: int, program: StepProgram, terms: Terms, reach: Reach
    ) -> CheckpointProvider:
        far = reached(address, task, program, terms, reach)
        made = solvers(address, task, program, terms, reach)
        whole = made.checkpoint

        def checkpoint(number: int) -> Sequence[bytes] | None:
            return far.checkpoint(number) if number == CUT_OFF else whole(number)

        made.checkpoint = checkpoint  # type: ignore[method-assign]
        return made

    return Strategy(provider=provider)


def test_what_a_jury_has_is_fetched_there_and_what_nobody_has_is_claimed_next(scene: Stage) -> None:
    with ExitStack() as stack:
        case = drawn(scene, stack, SolverStrategy(app=serves_all_but_one))
        jury = Watcher(scene, account=case.others[0], beside=case.others[1:])
        stack.callback(jury.close)
        claimant = Watcher(scene, half_cut_off(scene), account=case.seat)
        stack.callback(claimant.close)
        wait(lambda: bool(claimant.node.context.materials.find(case.task)))
        case.claimed()
        assert [one["item"] for one in claims(case)] == [CUT_OFF]
        until = case.seated()
        wait(lambda: case.votes() == (JURORS, 0))
        scene.skip_to(until + MOVE_TIME)
        assert case.judged()["verdict"] == JuryVerdict.AVAILABLE
        scene.skip_to(scene.submitter.audit.seat(case.task, 0).until - PERIOD // 2)
        wait(lambda: len(claims(case)) == 2, 120)
        assert [one["item"] for one in claims(case)] == [CUT_OFF, WITHHELD]
        until = case.seated()
        scene.skip_to(until - PERIOD // 4)
        wait(lambda: case.votes() == (0, JURORS))
        scene.skip_to(until)
        scene.until(case.task, lambda view: view.status is TaskStatus.UNPAID)
        assert [one["verdict"] for one in case.verdicts()] == [JuryVerdict.AVAILABLE, JuryVerdict.WITHHELD]


def dropped(case: Case, bond: int) -> None:
    """Wait until a claim ends without a verdict, and check that its bond is released."""
    wait(lambda: bool(happened(case.scene, "Dropped", case.task)))
    (told,) = happened(case.scene, "Dropped", case.task)
    assert told.arguments["account"] == case.address(case.seat)
    assert case.scene.submitter.vault.lock_of(bond).remaining == 0
    assert case.scene.submitter.juries.claim_of(case.task) is None
    assert not case.verdicts()


def bond_of(case: Case) -> int:
    claim = case.scene.submitter.juries.claim_of(case.task)
    assert claim is not None
    return claim.bond


def test_a_claim_whose_jury_is_never_drawn_is_dropped(scene: Stage) -> None:
    """No running party can get the beacon round that the jury's draw needs. When the stall period ends, the
    task therefore becomes unpaid.
    """
    with ExitStack() as stack:
        with ExitStack() as solving:
            task = sold(scene, solving, SolverStrategy(), NOWHERE)
            scene.until(task, submitted)
        draw_first(scene.submitter, scene.devnet)
        case = seated(scene, task)
        claimant = Watcher(scene, cut_off(scene, wholly=True), account=case.seat, relays=(NOWHERE,))
        stack.callback(claimant.close)
        wait(lambda: bool(claimant.node.context.materials.find(task)))
        case.claimed()
        bond, board = bond_of(case), scene.submitter.audit
        lapses = (
            scene.deployment.beacon.time_of(board.audit(task).round)
            + scene.deployment.parameters.stall_period
        )
        scene.skip_to(lapses)
        scene.until(task, lambda view: view.status is TaskStatus.UNPAID)
        dropped(case, bond)
        wait(lambda: board.seat(task, 0).released)


def test_a_claim_is_dropped_where_the_solver_is_convicted_meanwhile(scene: Stage) -> None:
    with ExitStack() as stack:
        case = drawn(scene, stack, SolverStrategy(executor=moves_a_weight_far))
        claimant = Watcher(scene, cut_off(scene, wholly=True), account=case.seat)
        stack.callback(claimant.close)
        wait(lambda: bool(claimant.node.context.materials.find(case.task)))
        case.claimed()
        bond, board = bond_of(case), scene.submitter.audit
        challenger = Watcher(scene, account=case.others[0], beside=case.others[1:], whistleblow=True)
        stack.callback(challenger.close)
        assert scene.until(case.task, over, 180).status is TaskStatus.SLASHED
        dropped(case, bond)
        scene.skip_to(scene.deployment.beacon.time_of(board.audit(case.task).round))

        def free() -> bool:
            registered = [board.registration(case.address(name)) for name in ACCOUNTS]
            return all(one is not None and not one.is_bound for one in registered)

        wait(free)
        assert not happened(scene, "Unopened", case.task)
        assert scene.submitter.vault.free(case.address(case.seat)) >= TOKEN
