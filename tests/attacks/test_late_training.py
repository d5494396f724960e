"""Training that cannot end in time: the solver warns as soon as its rate of training shows that the deadline
will be missed, and stops when the task is over.

At commit fd6f56d nothing compared the rate with the deadline. After somebody had called
`expire`, training went on to the end of its segment, and the loss was logged at info level without an amount.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.chain.views import NOBODY, TaskStatus
from protocol.errors import ExitCode
from tests.attacks.processes import Party
from tests.chain.solver_stage import mined_at_once, stage

pytestmark = pytest.mark.chain

STEP_SECONDS = 0.05
STEPS = 20_000
"""Steps of the task: two segments, each of which takes 500 s."""


def test_it_is_warned_of_stops_with_the_task_and_says_what_was_lost(tmp_path: Path) -> None:
    flags = ("--once", "--stake", "600", "--late", f"1:{STEP_SECONDS}")
    with (
        stage(tmp_path, mixed=False) as scene,
        mined_at_once(scene),
        Party(scene, "solver", *flags, adversary="honest-solver") as solver,
    ):
        task = scene.post(segments=2, segment_steps=STEPS // 2)
        scene.until(task, lambda view: view.bidder != NOBODY)
        scene.end_bidding(task)
        scene.until(task, lambda view: view.status is TaskStatus.TRAINING)

        warning = solver.until("training will not end in time")
        assert (warning["level"], warning["task"]) == ("warning", task)
        assert warning["seconds_needed"] > 900 > 600 >= warning["seconds_left"]
        assert (warning["penalty_tokens"], warning["price_tokens"]) == (5, 90)

        scene.devnet.skip(601)
        end = solver.until("task over")
        assert (end["level"], end["outcome"]) == ("error", "refunded")
        assert (end["penalty_tokens"], end["price_tokens"]) == (5, 90)
        assert solver.join(30) == ExitCode.FINE  # it does not train for the segment's whole 500 s
        assert scene.submitter.market.task(task).status is TaskStatus.REFUNDED
