"""The solver's node in games: it answers every demand, is slashed if false, and outlasts a false accuser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from time import monotonic, sleep

import pytest

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.game_view import GameReader
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.commitments import ProgressTree
from protocol.dispute import challenger
from protocol.dispute.in_process import Silent
from protocol.dispute.keys import NO_SEAT, SEGMENT_UNKNOWN, priority_commitment
from protocol.dispute.openings import Leaf
from protocol.dispute.provider import Run
from protocol.dispute.revealed import Revealed
from protocol.dispute.view import Phase, Verdict
from protocol.errors import ExitCode
from protocol.execution.replay import Executor, HonestExecutor, Work, honest_executor
from protocol.program import Op
from solver.errors import StakeSlashed
from solver.ledger import Spent
from solver.sends import Sends
from solver.strategy import Strategy
from tests.adversaries.perturbing import Perturbation, PerturbedExecutor, find, one_ulp
from tests.chain.arena import Subject, replay
from tests.chain.ledgers import adds_up, ledger_of
from tests.chain.rounds import draw_first
from tests.chain.solver_stage import Solver, Stage, over, submitted
from tests.unit.solver import tiny

pytestmark = pytest.mark.chain

SALT = bytes(32)
WRONG_STEP = 2 * tiny.STEPS  # the last of segment 2: each step halves, which rounds an earlier error away


def wrong(work: Work) -> Executor:
    """An executor that gets one weight wrong in one step, by one unit in the last place."""
    path, number = find(work.program.program, Op.ADD)
    change = Perturbation(path, number, 270, one_ulp, WRONG_STEP, WRONG_STEP)
    return PerturbedExecutor(work.program, work.fixed, work.kernels, [change])


def run_of(strategy: Strategy) -> Run:
    """The run of the tiny task that a party with this strategy computes."""
    program = tiny.step_program()
    executor = strategy.executor(Work(1, program, tiny.fixed(), {}))
    return replay(Subject(program, tiny.fixed(), tiny.initial(), tiny.SEGMENTS, tiny.STEPS), executor)


@pytest.fixture
def _draws_when_booked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the solver execute draws only after it has booked the task's end. So the draws are its last
    transactions.
    """
    booked, begin = Event(), Sends.begin

    def ordered(sends: Sends, task: int, what: str, send: Callable[[], object]) -> None:
        def run() -> object:
            assert what != "draw" or booked.wait(60)
            try:
                return send()
            finally:
                if what == "account":
                    booked.set()

        begin(sends, task, what, run)

    monkeypatch.setattr(Sends, "begin", ordered)


@dataclass
class Challenge:
    """A challenge that does not use the solver's HTTP service: it demands everything on-chain. `moves` names
    the moves that were mined. `refused` names the errors of the moves that reverted.
    """

    client: Client
    task: int
    run: Run
    moves: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def play(self, seconds: float = 120) -> tuple[int, Verdict]:
        """Play a blind game to its end. Returns the game's number and its verdict, which is NONE if the EVM
        finds no error.
        """
        game = self.open()
        first = self.client.deployment.block
        reader = GameReader(self.client.game, game, tiny.step_program().program, first)
        revealed, deadline = Revealed(), monotonic() + seconds
        while monotonic() < deadline:
            view = reader.view()
            if view.phase is Phase.CLOSED:
                return game, view.verdict
            reader.reveal_to(revealed)
            move = challenger.next_move(view, self.run, revealed, Silent())
            if move is None:
                sleep(0.1)
                continue
            try:
                self.client.game.send_move(move, view.head)
            except Reverted as error:
                self.refused.append(error.name)
                if error.name == "ElementAgrees":
                    return game, Verdict.NONE
                # Anvil may answer for one block with the state of the next: look again, as the parties do.
                continue
            self.moves.append(move.function)
        raise AssertionError(f"the game still goes on after {self.moves}; refused: {self.refused}")

    def open(self) -> int:
        """Open a blind game; returns its number."""
        client, game = self.client, self.client.game
        chain = client.deployment.chain_id
        args = (chain, client.commitments.address, self.task, SEGMENT_UNKNOWN, client.address, SALT)
        client.commitments.commit(self.task, NO_SEAT, priority_commitment(*args))
        return game.challenge_blind(self.task, SALT)[0]


def moot_game(scene: Stage, stranger: Client) -> int:
    """Play a game that becomes moot while a demand is open, and return its number. A stranger plays it
    against a run that the stranger itself has submitted.

    The stranger also opens a second game against the run. In this second game, an answer is due before the
    demand of the first game must be answered. When the time for that answer runs out, the run is convicted.
    """
    game, run = stranger.game, run_of(Strategy(executor=wrong))
    task = scene.post(challenge_period=6_000, clock=6_000)
    stranger.market.bid(task, TOKEN)
    scene.end_bidding(task)
    stranger.market.assign(task)
    roots = run.segment_roots()
    assert roots is not None
    tree, last = ProgressTree(list(roots)).at(len(roots)), len(roots) - 1
    stranger.market.submit(
        task, tree.root, tree.inclusion_path(0), [], roots[last], tree.inclusion_path(last)
    )
    moot = Challenge(stranger, task, run_of(Strategy())).open()
    calls, chain = stranger.commitments, stranger.deployment.chain_id
    calls.commit(task, NO_SEAT, priority_commitment(chain, calls.address, task, 1, stranger.address, SALT))
    first, second = (Leaf(roots[k], tree.inclusion_path(k)) for k in range(2))
    silent, _ = game.challenge(task, 1, SALT, first, second)
    scene.devnet.skip(60)
    view = GameReader(game, moot, tiny.step_program().program, stranger.deployment.block).view()
    move = challenger.next_move(view, run_of(Strategy()), Revealed(), Silent())
    assert move is not None
    assert move.function == "demand"
    game.send_move(move, view.head)
    scene.devnet.skip(game.game(silent).deadline - stranger.now() + 1)
    game.time_out(silent)
    game.close_moot(moot)
    draw_first(stranger, scene.devnet)
    return moot


def test_a_strangers_moot_game_ends_no_solver(scene: Stage) -> None:
    """When a node starts, it reads every game of the deployment, strangers' games included."""
    stranger = scene.client("dev:2")
    stranger.fund(2_000 * TOKEN)
    solver: Solver | None = None
    try:
        moot = moot_game(scene, stranger)
        state = stranger.game.game(moot)
        assert (state.verdict, state.phase, state.demand_open) == (Verdict.MOOT, Phase.CLOSED, 0)
        solver = Solver(scene)
        task = scene.sold()
        scene.until_drawn(task)
        scene.attest(task)
        scene.end_challenges(task)
        assert solver.join() is ExitCode.FINE
        assert scene.submitter.market.task(task).status is TaskStatus.SETTLED
    finally:
        if solver is not None:
            solver.close()
        stranger.close()


@pytest.mark.usefixtures("_draws_when_booked")
def test_a_false_solver_answers_until_it_is_slashed(scene: Stage) -> None:
    solver = Solver(scene, Strategy(executor=wrong))
    accuser = scene.client("dev:2")
    accuser.fund(1_000 * TOKEN)
    try:
        task = scene.sold()
        scene.until(task, submitted)
        challenge = Challenge(accuser, task, run_of(Strategy()))
        _, verdict = challenge.play()
        assert verdict is Verdict.SOLVER_FALSE
        assert challenge.moves[-1] == "judge"
        assert {"demand", "selectSegment", "selectStep"} <= set(challenge.moves)
        assert scene.until(task, over).status is TaskStatus.SLASHED
        ended = solver.join()
        assert isinstance(ended, StakeSlashed)
        assert ended.exit_code is ExitCode.FRAUD
        sums = adds_up(scene, solver.client.address)
        # The reward and the restitution; the rest is burned once nobody can claim it any more.
        assert (sums.lost, sums.locked + sums.burned) == (60 * TOKEN, 440 * TOKEN)
        assert sums.earned in (0, scene.deployment.parameters.draw_fee), "by executing its draw"
    finally:
        solver.close()
        accuser.close()


def test_an_honest_solver_outlasts_a_false_accuser_and_is_paid(scene: Stage) -> None:
    solver = Solver(scene)
    accuser = scene.client("dev:2")
    accuser.fund(1_000 * TOKEN)
    try:
        task = scene.sold()
        scene.until_drawn(task)
        scene.attest(task)
        challenge = Challenge(accuser, task, run_of(Strategy(executor=wrong)))
        game, verdict = challenge.play()
        assert verdict is Verdict.NONE
        assert challenge.refused[-1] == "ElementAgrees"
        scene.end_challenges(task)  # the accuser's clock runs out earlier
        assert solver.join() is ExitCode.FINE
        assert scene.submitter.game.game(game).verdict is Verdict.CHALLENGER_SILENT
        sums = adds_up(scene, solver.client.address)
        assert sums.earned >= 100 * TOKEN, "the price, and half of the accuser's bond"
        moves = {one.what for one in ledger_of(scene) if isinstance(one, Spent) and one.task == task}
        assert {"TaskMarket.bid", "DisputeGame.expandSteps", "DisputeGame.expandTrace"} <= moves
        assert scene.submitter.market.task(task).status is TaskStatus.SETTLED
    finally:
        solver.close()
        accuser.close()


def test_the_honest_conduct_runs_the_program() -> None:
    assert isinstance(honest_executor(Work(1, tiny.step_program(), tiny.fixed(), {})), HonestExecutor)
