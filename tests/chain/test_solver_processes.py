"""The real solver with `processes`: it computes what one process would compute, and is paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from protocol.tasks.bundles import committed_terms, load_bundle
from tests.chain.solver_stage import Solver, stage, submitted
from tests.unit.parallel import tasks

pytestmark = pytest.mark.chain

SEGMENTS, STEPS = 2, 5


@pytest.mark.parametrize("micro_batches", [tasks.UNITS, pytest.param(1, marks=pytest.mark.heavy)])
def test_a_solver_with_two_processes_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], micro_batches: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    step = tasks.mlp(micro_batches)
    with stage(tmp_path) as scene:
        folder = scene.bundles / "units"
        hash_ = tasks.written(step, folder)
        terms = committed_terms(load_bundle(folder)) | {"bundle_hash": hash_, "bundle": folder.as_uri()}
        solver = Solver(scene, processes=2)
        try:
            task = scene.sold(segments=SEGMENTS, segment_steps=STEPS, **terms)
            view = scene.until(task, submitted, 120)
            scene.until_drawn(task)
            scene.attest(task)
            scene.end_challenges(task)
            assert solver.join() is ExitCode.FINE
        finally:
            solver.close()
        assert view.result == step.step_program.state_root(tasks.alone(step, SEGMENTS * STEPS))
        assert scene.submitter.market.task(task).status is TaskStatus.SETTLED
    words = "training together" if micro_batches > 1 else "fewer processes"
    assert "".join(capfd.readouterr()).count(words) == 1
