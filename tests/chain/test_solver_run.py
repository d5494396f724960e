"""The real solver on a real chain: paid when honest, refused or timed out when not, and never twice after a
kill.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.runtime.exits import ExitCode
from tests.chain.solver_stage import Solver, Stage, stage, submitted
from tests.unit.solver import tiny

pytestmark = pytest.mark.chain


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as made:
        yield made


def test_an_honest_solver_is_paid_and_serves_the_result(scene: Stage, tmp_path: Path) -> None:
    solver = Solver(scene)
    try:
        task = scene.post()
        scene.until(task, submitted)
        scene.until_drawn(task)
        scene.attest(task)
        url = scene.submitter.market.read("endpointOf", solver.client.address)
        result = httpx.get(f"{url}/tasks/{task}/result").json()
        overview = httpx.get(f"{url}/tasks/{task}").json()
        assert solver.join() is ExitCode.FINE
    finally:
        solver.close()
    view = scene.submitter.market.task(task)
    expected = tiny.trained(tmp_path / "expected")
    assert view.status is TaskStatus.SETTLED
    assert view.price == 90 * TOKEN
    assert (view.root, view.size) == (expected.tree.root, tiny.SEGMENTS + 1)
    assert (view.result, overview["root"]) == (expected.roots()[-1], "0x" + view.root.hex())
    assert result["state_root"] == "0x" + view.result.hex()
    # The stake stays in the vault for the next task; what was earned went out. The drawer was paid too, if it
    # was the solver.
    free = scene.submitter.vault.free(solver.client.address)
    assert free == 1000 * TOKEN
    earned = scene.submitter.token.balance_of(solver.client.address) - 199_000 * TOKEN
    assert earned >= 90 * TOKEN
