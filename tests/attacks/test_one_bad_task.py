"""A task whose steps fail in a way that nobody foresaw: it is that task's matter, and every other one goes on.

Issue F, item 1. At fd6f56d such an error ended the solver: its submitted task was neither drawn nor settled, and no
game on it answered.
"""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from protocol.chain.views import TaskStatus
from protocol.execution.replay import Executor, HonestExecutor, Work, honest_executor
from protocol.program.execute import Interpreter
from protocol.program.step import State
from solver.strategy import Strategy
from tests.chain.solver_stage import Solver, over, stage, submitted

pytestmark = pytest.mark.chain

BAD = 2


class Failing(HonestExecutor):
    """A model that makes a library fail."""

    def step(self, _state: State, _number: int, /) -> State:
        """No state."""
        raise ZeroDivisionError("inside a library")


def fails_in_one(work: Work) -> Executor:
    """Honest, but for what the bad task does to it."""
    bad = Failing(work.program, work.fixed, Interpreter(work.kernels))
    return bad if work.task == BAD else honest_executor(work)


def test_it_is_tried_again_and_the_other_is_drawn_and_settled(tmp_path: Path) -> None:
    with stage(tmp_path) as scene:
        scene.devnet.connection.request("evm_setAutomine", True)
        solver = Solver(scene, Strategy(executor=fails_in_one), once=False)
        try:
            good = scene.sold(challenge_period=60, attest_period=50)
            scene.until(good, submitted)
            bad = scene.sold()
            assert bad == BAD
            scene.until(bad, lambda view: view.status is TaskStatus.TRAINING)
            url = scene.submitter.market.endpoint_of(solver.client.address)

            def failures() -> float:
                lines = httpx.get(f"{url}/metrics").text.splitlines()
                name = 'solver_failures_total{error="ZeroDivisionError",kind="task"}'
                return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

            scene.until(bad, lambda _view: failures() >= 2)
            scene.devnet.mine(8)
            scene.until_drawn(good)
            scene.attest(good)
            scene.end_challenges(good)
            assert scene.until(good, over).status is TaskStatus.SETTLED
            assert solver.ended is None
            assert scene.submitter.market.task(bad).status is TaskStatus.TRAINING
        finally:
            solver.close()
