"""The real solver on a real chain: paid if honest, refused if false, penalised if late; and its bids."""

from __future__ import annotations

import threading
import weakref
from pathlib import Path
from socket import create_server
from time import monotonic, sleep
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from protocol.execution.replay import HonestExecutor, Work
from protocol.node.party import node
from protocol.program import Interpreter
from protocol.program.step import State
from protocol.tasks.bundles import write_bundle
from solver.database import Stage as TaskStage
from solver.errors import SolverError
from solver.strategy import Strategy
from tests.chain.ledgers import adds_up
from tests.chain.solver_stage import Solver, Stage, over, submitted, tiny_bundle
from tests.receiver import Receiver
from tests.unit.solver import tiny

pytestmark = pytest.mark.chain


def test_an_honest_solver_is_paid_serves_the_result_and_tells_its_operator(
    scene: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "MEASURE_SECONDS", 0)
    receiver = Receiver(500)
    solver = Solver(scene, webhook=receiver.url, deadline_minutes=0.01)
    try:
        task = scene.sold()
        scene.until(task, submitted)
        scene.until_drawn(task)
        scene.attest(task)
        url = scene.submitter.market.read("endpointOf", solver.client.address)
        result = httpx.get(f"{url}/tasks/{task}/result").json()
        overview = httpx.get(f"{url}/tasks/{task}").json()
        samples = scraped(solver)
        scene.end_challenges(task)
        assert solver.join() is ExitCode.FINE
        assert receiver.events == ["settled"]
    finally:
        solver.close()
        receiver.listener.close()
    assert samples["assay_solver_steps_total"] == tiny.SEGMENTS * tiny.STEPS
    assert samples["assay_node_stake_at_risk_tokens"] >= 5
    assert sum(samples[name] for name in HELD) == pytest.approx(200_000)
    assert solver.node.context.metrics.registry.get_sample_value("assay_solver_earned_tokens_total") == 90
    view = scene.submitter.market.task(task)
    expected = tiny.trained(tmp_path / "expected")
    assert view.status is TaskStatus.SETTLED
    assert view.price == 90 * TOKEN
    assert (view.root, view.size) == (expected.tree.root, tiny.SEGMENTS + 1)
    assert (view.result, overview["root"]) == (expected.roots()[-1], "0x" + view.root.hex())
    assert result["state_root"] == "0x" + view.result.hex()
    # The stake stays in the vault for the next task; earnings are withdrawn. They include the fee of the draw
    # if the solver executed it.
    free = scene.submitter.vault.free(solver.client.address)
    assert free == 1000 * TOKEN
    earned = scene.submitter.token.balance_of(solver.client.address) - 199_000 * TOKEN
    assert earned >= 90 * TOKEN
    sums = adds_up(scene, solver.client.address)
    assert (sums.earned, sums.lost, sums.burned) == (earned, 0, 0)


HELD = ("assay_node_stake_at_risk_tokens", "assay_node_tokens")


def scraped(solver: Solver) -> dict[str, float]:
    """Metrics for Prometheus, summed by name. Also checks that the node is ready and that its data port has
    no metrics.
    """
    url, samples = solver.node.monitoring_url, dict[str, float]()
    ready = httpx.get(f"{url}/readyz")
    assert ready.status_code == 200, ready.text
    public = solver.client.market.endpoint_of(solver.client.address)
    assert httpx.get(f"{public}/metrics").status_code == 404
    for family in text_string_to_metric_families(httpx.get(f"{url}/metrics").text):
        for sample in family.samples:
            samples[sample.name] = samples.get(sample.name, 0.0) + sample.value
    return samples


def elsewhere(_work: Work, initial: State) -> State:
    """An initial state that differs from the one in the terms."""
    return {**initial, "weights": initial["weights"] + 1}


def test_a_run_from_another_initial_state_is_refused_and_ends_the_solver(scene: Stage) -> None:
    solver = Solver(scene, Strategy(start=elsewhere))
    try:
        task = scene.sold()
        ended = solver.join()
    finally:
        solver.close()
    assert isinstance(ended, SolverError)
    assert "LeafNotInTree" in str(ended)
    assert scene.submitter.market.task(task).size == 0


class Slow(HonestExecutor):
    """Takes a second for each step."""

    def step(self, state: State, number: int, /) -> State:
        """The next state, late."""
        sleep(1)
        return super().step(state, number)


def test_a_solver_that_is_late_loses_the_penalty_and_gets_the_rest_back(scene: Stage) -> None:
    slow = Strategy(executor=lambda work: Slow(work.program, work.fixed, Interpreter(work.kernels)))
    solver = Solver(scene, slow)
    try:
        task = scene.sold(training_period=3)
        view = scene.until(task, over)
        assert view.status is TaskStatus.REFUNDED
        assert solver.join() is ExitCode.FINE
    finally:
        solver.close()
    assert scene.submitter.vault.free(solver.client.address) == 995 * TOKEN
    sums = adds_up(scene, solver.client.address)
    assert (sums.earned, sums.lost + sums.burned) == (0, 5 * TOKEN)


class Stuck(HonestExecutor):
    """Stops after two segments until it is released."""

    go: threading.Event

    def step(self, state: State, number: int, /) -> State:
        """The next state."""
        if number > 2 * tiny.STEPS:
            self.go.wait(60)
        return super().step(state, number)


def test_what_a_task_held_is_given_back_while_the_solver_runs_on(scene: Stage) -> None:
    executors: list[weakref.ref[Stuck]] = []
    go = threading.Event()
    others = set(threads_of_tasks())

    def stuck(work: Work) -> Stuck:
        executors.append(weakref.ref(made := Stuck(work.program, work.fixed, Interpreter(work.kernels))))
        made.go = go
        return made

    solver = Solver(scene, Strategy(executor=stuck), once=False, progress_every=1)
    try:
        task = scene.sold()
        late = scene.until(
            task, lambda view: view.size > 2
        ).train_until  # the third segment's first step waits
        scene.skip_to(late)
        go.set()
        scene.until(task, over)
        deadline = monotonic() + 30
        while executors[0]() is not None or set(threads_of_tasks()) - others:
            assert monotonic() < deadline, set(threads_of_tasks()) - others
            sleep(0.05)
        row = solver.node.context.database.task(task)
        assert row is not None
        assert row.stage is TaskStage.OVER
        url = scene.submitter.market.endpoint_of(solver.client.address)
        assert httpx.get(f"{url}/tasks/{task}").json()["segments"] == tiny.SEGMENTS
    finally:
        go.set()
        solver.close()


def test_a_submitted_task_holds_no_executor_also_after_a_restart_and_a_replay_makes_its_own(
    scene: Stage,
) -> None:
    """On a GPU, an executor would keep the dataset and the recorded step in memory for the days that the
    audit takes.
    """
    made: list[weakref.ref[HonestExecutor]] = []

    def noted(work: Work) -> HonestExecutor:
        executor = HonestExecutor(work.program, work.fixed, Interpreter(work.kernels))
        made.append(weakref.ref(executor))
        return executor

    def released() -> bool:
        return all(executor() is None for executor in made)

    def replayed(solver: Solver) -> int:
        url = scene.submitter.market.endpoint_of(solver.client.address)
        return len(httpx.get(f"{url}/tasks/{task}/segments/2/steps", timeout=60).raise_for_status().content)

    solver = Solver(scene, Strategy(executor=noted), once=False)
    try:
        task = scene.sold()
        scene.until(task, submitted)
        scene.until(task, lambda _view: released())
        assert len(made) == 1
        assert replayed(solver) == 32 * (tiny.STEPS + 1)
        assert len(made) == 2
        scene.until(task, lambda _view: released())
    finally:
        solver.close()
    made.clear()
    solver = Solver(scene, Strategy(executor=noted), once=False)
    try:
        scene.until(task, lambda _view: task in solver.node._assignments)
        assert not made
        assert replayed(solver) == 32 * (tiny.STEPS + 1)
    finally:
        solver.close()


def test_a_second_task_is_trained_while_the_first_is_and_goes_first_if_it_is_due_first(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first task has more time left, so its training waits at the next step until the second task is
    trained. A training that waits for the disk would give up its turn. The test therefore sets `WAITING` so
    high that neither training waits for the disk.
    """
    monkeypatch.setattr("solver.pipeline.WAITING", tiny.SEGMENTS)
    order: list[int] = []
    go = threading.Event()

    class Noted(HonestExecutor):
        """Records the task of each step. The second step of the first task waits until the solver has also
        begun the training of the second task.
        """

        task = 0

        def step(self, state: State, number: int, /) -> State:
            order.append(self.task)
            if number == 2 and self.task == 1:
                assert go.wait(60)
            return super().step(state, number)

    def executor(work: Work) -> HonestExecutor:
        made = Noted(work.program, work.fixed, Interpreter(work.kernels))
        made.task = work.task
        return made

    solver = Solver(scene, Strategy(executor=executor), once=False)
    try:
        first = scene.sold(training_period=5_000)
        assert first == 1
        scene.until(first, lambda _view: order == [1, 1])
        second = scene.sold(training_period=2_000)
        scene.until(second, lambda view: view.status is TaskStatus.TRAINING)
        state = solver.node.context.turns
        scene.until(second, lambda _view: len(state._trainings) == 2)
        go.set()
        scene.until(second, submitted)
        scene.until(first, submitted)
    finally:
        go.set()
        solver.close()
    steps = tiny.SEGMENTS * tiny.STEPS
    assert order == [1, 1] + [2] * steps + [1] * (steps - 2)


def threads_of_tasks() -> list[threading.Thread]:
    """Threads of this process that commit or keep checkpoints; other tests may have left some."""
    kept = ("solver-commit", "solver-checkpoints")
    return [thread for thread in threading.enumerate() if thread.name.startswith(kept)]


def test_bids_go_down_to_the_costs_and_no_further(scene: Stage) -> None:
    # Eight of nine tasks are late: 8 x 5 tokens of penalties for each one in time; with a margin of half, 60.
    free: dict[str, Any] = dict.fromkeys(("cost_per_hour", "watts", "capital_rate", "coin_price"), 0)
    solver = Solver(scene, once=False, **free, late_chance=8 / 9, margin=0.5)
    rival = scene.client("dev:3")
    rival.fund(2_000 * TOKEN)
    mine = solver.client.address
    try:
        task = scene.post()
        assert scene.until(task, lambda view: view.bidder == mine).price == 90 * TOKEN
        rival.market.bid(task, 80 * TOKEN)
        assert scene.until(task, lambda view: view.bidder == mine).price == 784 * TOKEN // 10
        with pytest.raises(Reverted, match="BidTooHigh"):
            rival.market.bid(task, 784 * TOKEN // 10 - 784 * TOKEN // 500 + 1)
        rival.market.bid(task, 62 * TOKEN)
        assert scene.until(task, lambda view: view.bidder == mine).price == 6076 * TOKEN // 100
        rival.market.bid(task, 595 * TOKEN // 10)
        assert "its floor is 60 tokens (machine" in refusal(solver, task, TaskStage.OUTBID)
        assert scene.submitter.market.task(task).bidder == rival.address
    finally:
        solver.close()
        rival.close()


def test_a_task_that_is_not_what_it_says_is_not_bid_on(scene: Stage) -> None:
    solver = Solver(scene, once=False)
    try:
        assert "state_bytes" in refusal(solver, scene.post(state_bytes=1))
    finally:
        solver.close()


def test_a_server_of_another_bundle_is_asked_again_until_it_has_the_right_one(scene: Stage) -> None:
    solver = Solver(scene, once=False)
    try:
        task = scene.post(manifest=b"{}", bidding_period=200)
        deadline = monotonic() + 30
        failed = {"error": "WrongFile", "kind": "task"}
        counted = solver.node.context.metrics.registry.get_sample_value
        while counted("assay_solver_failures_total", failed) is None:
            assert monotonic() < deadline
            sleep(0.05)
        assert int(scene.submitter.market.task(task).bidder, 16) == 0
        write_bundle(tiny_bundle(scene.deployment.arithmetic), scene.bundles)
        scene.until(task, lambda view: view.bidder == solver.client.address)
    finally:
        solver.close()


def test_a_server_that_never_answers_keeps_nobody_from_other_work(scene: Stage) -> None:
    """Clients can connect to the server, but it never sends anything."""
    with create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        solver = Solver(scene, once=False)
        try:
            stuck = scene.post(bundle=url)
            task = scene.post()
            scene.until(task, lambda view: view.bidder == solver.client.address, 15)
            assert int(scene.submitter.market.task(stuck).bidder, 16) == 0
        finally:
            solver.close()


def refusal(solver: Solver, task: int, stage: TaskStage = TaskStage.REFUSED) -> str:
    """Wait until the solver's database has the task in the stage `stage`, one in which the solver leaves the
    task to others. Returns the reason noted there.
    """
    deadline = monotonic() + 30
    while True:
        row = solver.node.context.database.task(task)
        if row is not None and row.stage is stage:
            return row.note
        assert monotonic() < deadline
        sleep(0.05)
