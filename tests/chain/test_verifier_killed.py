"""A verifier that is killed with SIGKILL during a challenge resumes it and does nothing twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from threading import Event

import pytest

from examples.demo.preloaded import Forked
from protocol.chain.events import Follower
from protocol.chain.views import TaskStatus
from protocol.dispute import defender
from protocol.dispute.moves import Move
from protocol.dispute.provider import Run
from protocol.dispute.view import GameView, Phase, Verdict
from protocol.errors import ExitCode
from protocol.execution.replay import Executor, Work
from solver.catalog import Catalog
from solver.limits import App, Message, Receive, Send
from solver.server import application
from solver.strategy import Strategy
from tests.adversaries.executors import perturbed
from tests.adversaries.solvers import says_nothing
from tests.adversaries.tiny import WEIGHT, WRONG_STEP, moves_a_weight_far
from tests.attacks import blinding
from tests.chain.solver_stage import Solver, Stage, over
from tests.chain.test_verifier_watch import until_registered, wait
from tests.forked import run, start

pytestmark = pytest.mark.chain

KILLED_AFTER = ("Committed", "Challenged", "StepSelected")


@pytest.fixture
def scene(scene: Stage) -> Stage:
    """A stage on which the verifier under test is the only one in the draw."""
    scene.submitter.audit.resign()
    return scene


class Process:
    """`verifier watch` in its own process, with the tokens of a development account."""

    def __init__(self, scene: Stage, home: Path, log: Path, account: int = 2, *flags: str) -> None:
        scene.client(f"dev:{account}").close()  # gives it tokens
        home.mkdir(exist_ok=True)
        deployment = home / "deployment.json"
        deployment.write_text(scene.deployment.model_dump_json())
        bundles = json.dumps([scene.bundles.as_uri()])
        settings = (
            f'poll = 0.05\nport = 0\nmonitor_port = 0\nrelays = ["{scene.relay}"]\nbundles = {bundles}\n'
        )
        (home / "config.toml").write_text(f"[verifier]\n{settings}")
        self.command = ["verifier.cli", "watch", "--once"]
        self.command += [*(flags or ("--whistleblow",)), "--dev-account", str(account)]
        self.command += ["--rpc", scene.devnet.url]
        self.command += ["--home", str(home), "--deployment", str(deployment)]
        self._log = log
        self._process = self._start()

    def kill(self) -> None:
        """Kill the process as a power cut would, and start another."""
        self._process.kill()
        self._process.wait()
        self._process = self._start()

    def join(self, seconds: float = 60) -> int:
        """Wait until the process ends; returns the exit code."""
        return self._process.wait(seconds)

    def close(self) -> None:
        """Kill the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> Forked:
        return start(*self.command, log=self._log)


def events(scene: Stage) -> Counter[str]:
    """How often each event of commitments and games has occurred."""
    bound = (scene.submitter.commitments, scene.submitter.game)
    contracts = {item.address: item.contract for item in bound}
    follower = Follower(scene.devnet.connection, contracts, scene.deployment.block)
    return Counter(event.name for event in follower.poll().events)


def answering_after(go: Event) -> Strategy:
    """A cheat that answers no selection of a step before `go` is set, so that no game ends before that."""

    def defence(game: GameView, run: Run) -> Sequence[Move]:
        return defender.moves(game, run) if game.phase is not Phase.FRAME or go.is_set() else ()

    return Strategy(executor=moves_a_weight_far, defence=defence)


def test_a_challenge_survives_kills(scene: Stage, tmp_path: Path) -> None:
    verifier = Process(scene, tmp_path / "verifier", tmp_path / "verifier.log")
    solver = None
    try:
        until_registered(scene)
        killed = Event()
        solver = Solver(scene, answering_after(killed))
        task = scene.sold()
        for name in KILLED_AFTER:
            wait(lambda name=name: events(scene)[name] > 0, 90)  # type: ignore[misc]
            verifier.kill()
        killed.set()
        assert scene.until(task, over, 120).status is TaskStatus.SLASHED
        assert verifier.join() == ExitCode.FRAUD
        happened = events(scene)
        game = scene.submitter.game.game(1)
    finally:
        print((tmp_path / "verifier.log").read_text())
        verifier.close()
        if solver is not None:
            solver.close()
    assert game.verdict is Verdict.SOLVER_FALSE
    assert (happened["Committed"], happened["Challenged"], happened["StepSelected"]) == (1, 1, 1)


class StopsServing:
    """A solver that claims a false result of a call. An opening in the caller's trace proves that the result
    is false. The solver serves everything until a call is selected in the game, and nothing afterwards. It
    answers that selection only once `may_go_on` is set.
    """

    def __init__(self) -> None:
        self.is_called, self.may_go_on = Event(), Event()

    @property
    def strategy(self) -> Strategy:
        return Strategy(executor=self._executor, app=self._app, defence=self._defence)

    def _executor(self, work: Work) -> Executor:
        (call,) = work.program.program.calls()
        return perturbed(work, (), call, WEIGHT, lambda bits: bits ^ 0x0040_0000, WRONG_STEP, WRONG_STEP)

    def _app(self, catalog: Catalog) -> App:
        serving, silent = application(catalog), says_nothing(catalog)

        async def app(scope: Message, receive: Receive, send: Send) -> None:
            await (silent if self.is_called.is_set() else serving)(scope, receive, send)

        return app

    def _defence(self, game: GameView, run: Run) -> Sequence[Move]:
        if game.path:
            self.is_called.set()
            if not self.may_go_on.is_set():
                return ()
        return defender.moves(game, run)


def test_what_a_solver_has_served_survives_a_kill(scene: Stage, tmp_path: Path) -> None:
    """Once the game is in the callee's frame, the verifier can no longer demand the caller's trace. So what
    the solver has served of that trace must survive the kill.
    """
    verifier = Process(scene, tmp_path / "verifier", tmp_path / "verifier.log")
    cheat, solver = StopsServing(), None
    try:
        until_registered(scene)
        solver = Solver(scene, cheat.strategy)
        task = scene.sold()
        wait(cheat.is_called.is_set, 90)
        verifier.kill()
        cheat.may_go_on.set()
        assert scene.until(task, over, 120).status is TaskStatus.SLASHED
        assert verifier.join() == ExitCode.FRAUD
        happened = events(scene)
    finally:
        print((tmp_path / "verifier.log").read_text())
        verifier.close()
        if solver is not None:
            solver.close()
    assert (happened["CallSelected"], happened["EdgeJudged"], happened["Demanded"]) == (1, 1, 0)


def test_a_commitment_on_its_way_survives_a_kill(tmp_path: Path) -> None:
    with blinding.scene(tmp_path) as scene:
        account = scene.client("dev:2")
        address = account.address
        account.close()
        sent = scene.devnet.connection.transaction_count
        task = scene.post(bundle=f"{scene.bundles.as_uri()}/", bidding_period=600)
        held_back = scene.bundles.rename(tmp_path / "held-back")
        verifier = Process(scene, tmp_path / "verifier", tmp_path / "verifier.log")
        try:
            wait(lambda: scene.submitter.audit.registered() > 1)
            scene.cheated([task])
            scene.devnet.connection.request("evm_setAutomine", False)
            held_back.rename(scene.bundles)
            wait(lambda: sent(address, "pending") > sent(address))
            verifier.kill()
            scene.devnet.connection.request("evm_setAutomine", True)
            scene.devnet.mine()
            wait(lambda: task in scene.games_on())
            happened = events(scene)
        finally:
            print((tmp_path / "verifier.log").read_text())
            verifier.close()
    assert (happened["Committed"], happened["Challenged"]) == (1, 1)


def test_a_second_verifier_from_one_account_is_refused(scene: Stage, tmp_path: Path) -> None:
    verifier = Process(scene, tmp_path / "verifier", tmp_path / "verifier.log")
    second = None
    try:
        until_registered(scene)
        second = run(*verifier.command)
    finally:
        verifier.close()
    assert second.returncode == ExitCode.RETRY
    assert "to be the only process that sends from it" in second.stderr
