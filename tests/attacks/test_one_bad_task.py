"""A task whose steps fail with an unforeseen error: only that task is affected, and all others go on.

At commit fd6f56d such an error ended the solver. After that, the solver neither executed the
draw of its submitted task nor settled this task, and it answered in no game on this task.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.chain.views import TaskStatus
from tests.attacks.processes import Party, metric, until
from tests.chain.solver_stage import over, stage, submitted

pytestmark = pytest.mark.chain

BAD = 2


def test_it_is_tried_again_and_the_other_is_drawn_and_settled(tmp_path: Path) -> None:
    with stage(tmp_path, mixed=False) as scene:
        market = scene.submitter.market
        scene.devnet.connection.request("evm_setAutomine", True)
        with Party(scene, "solver", "--failing", str(BAD), adversary="honest-solver") as solver:
            # Its seat has longer than the bidding on the bad task, which is skipped.
            good = scene.sold(challenge_period=300, attest_period=200)
            scene.until(good, submitted)
            bad = scene.sold()
            assert bad == BAD
            scene.until(bad, lambda view: view.status is TaskStatus.TRAINING)
            failed = {"kind": "task", "error": "ZeroDivisionError"}
            until(lambda: metric(solver, "assay_solver_failures_total", **failed) >= 2, solver)
            scene.until_drawn(good)
            scene.attest(good)
            scene.end_challenges(good)
            assert scene.until(good, over).status is TaskStatus.SETTLED
            assert solver.ended is None
            assert market.task(bad).status is TaskStatus.TRAINING
