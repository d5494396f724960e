"""The real verifier and solver on a real chain: equal segments are attested, different ones disputed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.dispute.view import Phase, Verdict
from protocol.errors import ExitCode
from protocol.execution import speeds
from protocol.node.party import node
from protocol.node.stopping import Stop
from solver.strategy import Strategy as SolverStrategy
from tests.adversaries.solvers import says_nothing
from tests.adversaries.tiny import moves_a_weight_far
from tests.chain.solver_stage import Solver, Stage, over
from tests.forked import start
from tests.receiver import SECRET, Receiver
from verifier.node import VerifierNode
from verifier.settings import VerifierSettings
from verifier.strategy import HONEST, Strategy

pytestmark = pytest.mark.chain

WATCHER = "dev:2"
QUIET: dict[str, Any] = {"deadline_minutes": 0.001, "low_disk_gib": 0}
"""Settings that prevent alerts about a slow machine or a full disk."""


class Watcher:
    """A verifier node in a thread. Besides its main `account`, it has the accounts in `beside`, and as many
    more accounts as the number `further` says. `ended` holds its exit code, or the error that ended it.
    """

    def __init__(
        self,
        stage: Stage,
        strategy: Strategy = HONEST,
        once: bool = True,
        further: int = 0,
        account: str = WATCHER,
        beside: Sequence[str] = (),
        **settings: object,
    ) -> None:
        self._once = once
        self.stop = Stop()
        self.client = stage.client(account)
        others = [*(f"dev:{index}" for index in range(20, 20 + further)), *beside]
        self.clients = [self.client, *map(stage.client, others)]
        allowed = (stage.bundles.as_uri(),)
        defaults = {
            "poll": 0.05,
            "bundles": allowed,
            "relays": (stage.relay,),
            "port": 0,
            "stake": 10,
            "spare_gib": 0,  # the tests run however full the disk is
        }
        chosen = VerifierSettings.model_validate({**defaults, **settings})
        self.node = VerifierNode(
            self.client, chosen, stage.home, strategy, further=self.clients[1:], stop=self.stop
        )
        self.ended: ExitCode | BaseException | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.ended = self.node.run(self._once)
        except Exception as error:
            self.ended = error

    def join(self, seconds: float = 90) -> ExitCode | BaseException | None:
        """Wait until the node has ended; returns `ended`."""
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "the verifier still runs"
        return self.ended

    def close(self) -> None:
        """Stop the node and release its accounts."""
        self.stop.ask()
        self._thread.join(30)
        for client in self.clients:
            client.close()


@pytest.fixture
def alone(scene: Stage) -> Stage:
    """A stage on which the verifier under test is the only one in the draw."""
    scene.submitter.audit.resign()
    return scene


def wait(what: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until `what` holds."""
    deadline = monotonic() + seconds
    while not what():
        assert monotonic() < deadline, "it did not come about"
        sleep(0.05)


def outcome(watcher: Watcher, task: int) -> str | None:
    """How the watcher's first challenge of the task ended; None if there is none or it has not ended."""
    challenges = watcher.node.context.database.challenges(task)
    return challenges[0].outcome if challenges else None


def pass_false_accuser(scene: Stage, accuser: Watcher) -> None:
    """Wait until the first game is over. Its challenger computed with a weight that is far off. It walks down
    to an element that the contract finds right, so the judgment is refused. Then it loses on the clock, which
    is advanced here.
    """
    game_of, claim_of = scene.submitter.game.game, scene.submitter.game.claim

    def refused() -> float:
        return measured(accuser, "assay_verifier_failures_total")

    def is_stuck() -> bool:
        """Whether the move that the accuser owes now has failed. Only then is it certain that the skip of the
        clock below falls into the accuser's turn, not the solver's.
        """
        failed, state = refused(), game_of(1)
        if state.phase is not Phase.FRAME or state.demand_open or not claim_of(state.claim).posted_at:
            return False
        wait(lambda: refused() > failed or game_of(1).head != state.head)
        return game_of(1).head == state.head

    wait(lambda: scene.submitter.game.games() > 0 and is_stuck(), 200)
    scene.devnet.skip(game_of(1).deadline - scene.submitter.now() + 1)
    wait(lambda: game_of(1).verdict is not Verdict.NONE)


def is_suspended(scene: Stage, watcher: Watcher) -> bool:
    """Whether the watcher was silent in a seat and has not resumed since."""
    registration = scene.submitter.audit.registration(watcher.client.address)
    return registration is not None and registration.suspended


def measured(watcher: Watcher, name: str) -> float:
    """The sum of a gauge's or a counter's values over its labels."""
    families = watcher.node.context.metrics.registry.collect()
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)


def until_registered(scene: Stage) -> None:
    """Wait until a verifier is in the draw; before that, no solver takes a task."""
    wait(lambda: scene.submitter.audit.registered() > 0)


def test_an_honest_task_is_attested_and_the_verifier_is_paid(alone: Stage) -> None:
    scene = alone
    watcher = Watcher(scene, stake=30)
    until_registered(scene)
    solver = Solver(scene)
    try:
        task = scene.sold()
        scene.until_drawn(task)
        wait(lambda: all(seat.attested for seat in scene.submitter.audit.seats(task)))
        scene.end_challenges(task)
        assert watcher.join() is ExitCode.FINE
        assert solver.join() is ExitCode.FINE
        view = scene.submitter.market.task(task)
        seats = scene.submitter.audit.seats(task)
    finally:
        watcher.close()
        solver.close()
    assert view.status is TaskStatus.SETTLED
    assert [(seat.account, seat.attested, seat.released) for seat in seats] == [
        (watcher.client.address, True, True)
    ]
    # 20 of 200,000 tokens are staked, in two units of 10, and the audit fee of one token is paid.
    vault, token = scene.submitter.vault, scene.submitter.token
    wealth = vault.free(watcher.client.address) + token.balance_of(watcher.client.address)
    assert wealth >= (200_000 - 20 + 1) * TOKEN


@pytest.mark.parametrize("serving", [True, False])
def test_a_cheat_is_walked_down_and_slashed_and_who_watches_is_told(
    alone: Stage, tmp_path: Path, serving: bool
) -> None:
    scene, log = alone, tmp_path / "only-watch.log"
    receivers = Receiver(), Receiver(500, 302)
    watcher = Watcher(scene, whistleblow=True, webhook=receivers[0].url, **QUIET)
    only = start(
        "verifier.cli",
        *("watch", "--only-watch", "--once", "--log-json", "--port", "0", "--rpc", scene.url),
        log=log,
        environment={
            "ASSAY_HOME": str(scene.home.root),
            "ASSAY_WEBHOOK": receivers[1].url,
            **{f"ASSAY_{name.upper()}": str(value) for name, value in QUIET.items()},
        },
    )
    until_registered(scene)
    # From now on it follows new tasks; one that is over before the first look would be left out.
    wait(lambda: '"following"' in log.read_text(), 90)
    cheat = SolverStrategy(executor=moves_a_weight_far)
    strategy = cheat if serving else replace(cheat, app=says_nothing)
    solver = Solver(scene, strategy)
    try:
        task = scene.sold()
        view = scene.until(task, over, 200)
        game = scene.submitter.game.game(1)
        assert watcher.join() is ExitCode.FRAUD
        assert only.wait(90) == ExitCode.FRAUD, log.read_text()
    finally:
        watcher.close()
        solver.close()
        only.kill()
        for receiver in receivers:
            receiver.listener.close()
    for receiver in receivers:
        # A game may begin and end between two looks.
        assert set(receiver.events) - {"challenged"} == {"slashed"}
        assert {document["task"] for document in receiver.taken} == {task}
    assert SECRET not in log.read_text()
    assert '"status": "slashed"' in log.read_text()
    assert view.status is TaskStatus.SLASHED
    assert (game.verdict, game.segment, game.step) == (Verdict.SOLVER_FALSE, 2, 2)
    assert game.challenger == watcher.client.address


def test_no_bond_is_risked_where_the_clock_is_shorter_than_a_replay(
    alone: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The game's clock is shorter than a replay at the verifier's speed setting, so the verifier opens no
    game. Because it does not attest the false run either, it is treated as silent. It made its offer when its
    machine was fast. It has run too few steps to replace the speed setting by a measurement.
    """
    scene = alone
    monkeypatch.setattr(speeds, "STEPS", 10**9)
    before = Watcher(scene)
    until_registered(scene)
    before.close()
    watcher = Watcher(scene, whistleblow=True, speed=1.0)
    solver = Solver(scene, SolverStrategy(executor=moves_a_weight_far))
    try:
        task = scene.sold()
        scene.until_drawn(task)
        wait(lambda: outcome(watcher, task) == "clock_too_short")
        (seat,) = scene.submitter.audit.seats(task)
        scene.skip_to(seat.until + 1)
        wait(lambda: is_suspended(scene, watcher))
        assert scene.submitter.audit.audit(task).attested == 0
        assert scene.submitter.game.games() == 0
    finally:
        watcher.close()
        solver.close()


def test_a_false_accuser_loses_its_bond_and_the_solver_is_paid(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "MEASURE_SECONDS", 0)
    receivers = Receiver(), Receiver()
    hooks = [{"webhook": receiver.url, **QUIET} for receiver in receivers]
    accusing = Strategy(executor=moves_a_weight_far)
    watcher = Watcher(scene, accusing, whistleblow=True, stake=0, **hooks[0])
    solver = Solver(scene, **hooks[1])
    try:
        task = scene.sold()
        # The game stays open until the challenger's clock runs out.
        wait(lambda: all(receiver.events == ["challenged"] for receiver in receivers), 200)
        wait(lambda: measured(watcher, "assay_node_stake_at_risk_tokens") == 20)
        scene.until_drawn(task)
        scene.attest(task)
        pass_false_accuser(scene, watcher)
        game = scene.submitter.game.game(1)
        scene.end_challenges(task)
        assert scene.until(task, over).status is TaskStatus.SETTLED
        assert watcher.join() is ExitCode.FRAUD
        assert solver.join() is ExitCode.FINE
        assert all(receiver.events == ["challenged", "settled"] for receiver in receivers)
    finally:
        watcher.close()
        solver.close()
        for receiver in receivers:
            receiver.listener.close()
    assert game.verdict is Verdict.CHALLENGER_SILENT
