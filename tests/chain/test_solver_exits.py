"""The solver brings submitted tasks to an end without help when seats are silent or empty, or when the beacon
is dead.

The tests advance the chain's clock to the time that the task waits for; the node does the rest. The last test
withdraws the stake during training.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest

from protocol.chain.client import Client
from protocol.chain.events import Follower
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus, TaskView
from protocol.dispute.view import Verdict
from protocol.errors import ExitCode
from protocol.execution.replay import HonestExecutor, Work
from protocol.program import Interpreter
from protocol.program.step import State
from protocol.tasks.task import ESCROW_DRAWS
from solver.strategy import Strategy
from tests.attacks.false_games import FalseGames, honest_run
from tests.chain.rounds import ANYTHING
from tests.chain.solver_stage import Solver, Stage, over, submitted
from tests.unit.solver import tiny

pytestmark = pytest.mark.chain

NO_RELAY = "http://127.0.0.1:1"


def named(scene: Stage, name: str) -> int:
    """The number of events with this name."""
    contracts = scene.submitter.contracts
    events = Follower(scene.devnet.connection, contracts, scene.deployment.block).poll().events
    return sum(event.name == name for event in events)


def asked_for(scene: Stage, draws: int) -> Callable[[TaskView], bool]:
    """A condition: exactly this many draws of the task were asked for."""
    return lambda view: scene.submitter.audit.audit(view.task).draws == draws


def until_late(scene: Stage, task: int) -> None:
    """Wait for the pending draw, then let the time to attest pass."""
    scene.until_drawn(task)
    scene.skip_to(scene.submitter.audit.audit(task).until)


def test_a_silent_seat_is_drawn_again_and_the_task_is_paid(scene: Stage) -> None:
    solver, other = Solver(scene), scene.client("dev:3")
    verifiers = (scene.submitter, other)
    try:
        other.fund(100 * TOKEN)
        other.audit.register(0, ANYTHING)
        task = scene.sold()
        scene.until(task, submitted)
        until_late(scene, task)
        scene.until(task, asked_for(scene, 2))
        scene.until_drawn(task)
        (seat,) = scene.submitter.audit.seats(task)
        found = {client.address: client for client in verifiers}[seat.account]
        silent = suspended(verifiers)
        assert [client.address for client in silent] == [c.address for c in verifiers if c is not found]
        found.audit.attest(task, 0, bytes(31) + b"\x01", bytes(32))
        scene.end_challenges(task)
        assert solver.join() is ExitCode.FINE
    finally:
        solver.close()
        other.close()
    assert scene.submitter.market.task(task).status is TaskStatus.SETTLED
    assert named(scene, "Silent") == 1


def suspended(clients: tuple[Client, ...]) -> list[Client]:
    found = [(client, client.audit.registration(client.address)) for client in clients]
    return [client for client, registration in found if registration and registration.suspended]


def test_seats_that_stay_empty_give_the_stake_back(scene: Stage) -> None:
    """The only verifier is silent in the first draw, and pays for the second. The escrow pays for the other
    eight draws. No draw after the first finds anybody, so the task is void in the end, and the solver has its
    stake back.
    """
    solver = Solver(scene)
    try:
        task = scene.sold()
        scene.until(task, submitted)
        for draws in range(1, ESCROW_DRAWS + 2):
            scene.until(task, asked_for(scene, draws))
            until_late(scene, task)
        scene.end_challenges(task)
        assert scene.until(task, over).status is TaskStatus.VOID
        assert solver.join() is ExitCode.FINE
    finally:
        solver.close()
    assert (named(scene, "Drawn"), named(scene, "Silent")) == (ESCROW_DRAWS + 1, 1)
    earned = scene.submitter.token.balance_of(solver.client.address) - 199_000 * TOKEN
    assert scene.submitter.vault.free(solver.client.address) == 1000 * TOKEN
    assert earned == (ESCROW_DRAWS + 1) * scene.deployment.parameters.draw_fee, "it drew them all"


def test_a_beacon_that_is_dead_ends_the_task_for_half_of_the_price(scene: Stage) -> None:
    """The beacon is dead, so the task has no draw. It can be challenged until it ends. A false challenger
    opens a game and then stays silent. The solver plays the game until it is decided. It gets half of the
    price, and half of the challenger's bond.
    """
    solver, accuser = Solver(scene, relays=(NO_RELAY,)), scene.client("dev:2")
    try:
        accuser.fund(1_000 * TOKEN)
        task = scene.sold()
        scene.until(task, submitted)
        scene.skip_to(scene.submitter.audit.audit(task).round + scene.deployment.parameters.stall_period)
        view = scene.until(task, lambda view: view.status is TaskStatus.UNPAID)
        game = FalseGames(accuser, task, honest_run(tiny.SEGMENTS, tiny.STEPS)).open_blind()
        scene.skip_to(view.challenge_until)
        assert scene.until(task, over).status is TaskStatus.VOID
        assert solver.join() is ExitCode.FINE
    finally:
        solver.close()
        accuser.close()
    assert named(scene, "Drawn") == 0
    assert scene.submitter.game.game(game).verdict is Verdict.CHALLENGER_SILENT
    assert scene.submitter.vault.free(solver.client.address) == 1000 * TOKEN
    earned = scene.submitter.token.balance_of(solver.client.address) - 199_000 * TOKEN
    assert earned == 90 * TOKEN // 2 + scene.submitter.market.terms(task).bond // 2


class Held(HonestExecutor):
    """An executor that makes no step until it is released."""

    def __init__(self, work: Work, go: Event) -> None:
        super().__init__(work.program, work.fixed, Interpreter(work.kernels))
        self._go = go

    def step(self, state: State, number: int, /) -> State:
        """The next state."""
        self._go.wait(60)
        return super().step(state, number)


def held(go: Event) -> Callable[[Work], Held]:
    return lambda work: Held(work, go)


def test_a_stake_that_was_taken_out_is_brought_back_for_the_submission(scene: Stage) -> None:
    go = Event()
    # Without a relay it executes no draw, whose fee would be free in the vault.
    solver = Solver(scene, Strategy(executor=held(go)), relays=(NO_RELAY,))
    client = solver.client
    try:
        task = scene.sold()
        scene.until(task, lambda view: view.status is TaskStatus.TRAINING)
        client.vault.withdraw(client.vault.free(client.address))
        go.set()
        view = scene.until(task, submitted)
        assert scene.submitter.vault.lock_of(view.stake).remaining == 500 * TOKEN
        assert scene.submitter.vault.free(client.address) == 0
    finally:
        go.set()
        solver.close()
