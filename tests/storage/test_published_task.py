"""A solver that nobody can reach: from bid to result, others need only what it publishes to a bucket."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from assay.results import fetch
from protocol.chain.views import TaskStatus
from protocol.node.home import Home
from protocol.tasks.bundles import Limits
from solver.catalog import Catalog
from solver.limits import App, Message, Receive, Send
from solver.strategy import Strategy
from tests.adversaries.tiny import moves_a_weight_far
from tests.chain.solver_stage import Solver, over, stage, submitted
from tests.chain.test_verifier_watch import Watcher, until_registered, wait
from tests.storage.server import StorageServer
from tests.unit.solver import tiny

pytestmark = [pytest.mark.heavy, pytest.mark.chain]

asked: list[str] = []
"""Paths of requests to the solver's own server."""


def nobody(_catalog: Catalog) -> App:
    """A solver's server that others cannot reach, as behind NAT: it records each request, and the test fails
    if there was one.
    """

    async def application(scope: Message, _receive: Receive, _send: Send) -> None:
        if scope["type"] == "http":
            asked.append(scope["path"])

    return application


def test_a_solver_without_an_open_port_is_replayed_attested_and_paid(
    storage: StorageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solver.retention.PAUSE", 0.1)
    asked.clear()
    url = storage.make_bucket("honest")
    with stage(tmp_path) as scene:
        scene.submitter.audit.resign()
        solvers, scene.home = scene.home, Home(tmp_path / "verifier-home")
        watcher = Watcher(scene, once=False)
        until_registered(scene)
        scene.home = solvers
        solver = Solver(
            scene,
            Strategy(app=nobody),
            once=False,
            url=f"{url}/assay",
            publish="s3://honest/assay",
            hold_days=2,
            progress_every=1,
        )
        try:
            market = scene.submitter.market
            assert market.endpoint_of(solver.client.address) == f"{url}/assay/{market.address}"
            task = scene.sold()
            scene.until(task, submitted)
            shutil.rmtree(scene.bundles)  # from now on only the bucket has the bundle
            scene.until_drawn(task)
            wait(lambda: scene.submitter.audit.audit(task).attested == 1)
            watcher.close()  # so that the seat does not serve its copy of the result
            result = fetch(scene.submitter, Home(tmp_path / "buyer"), task, Limits())
            expected = tiny.trained(tmp_path / "expected").state(tiny.SEGMENTS)
            assert torch.equal(result.state["weights"], expected["weights"])
            scene.end_challenges(task)
            assert scene.until(task, over).status is TaskStatus.SETTLED
            folders = solver.node.context.folders
            below = f"assay/{market.address}/tasks/{task}/"
            assert [key for key in storage.keys("honest") if key.startswith(below)]
            wait(lambda: bool(folders.finished(0)))
            scene.devnet.skip(2 * 86_400 + 1)
            wait(lambda: not folders.has(task))
            assert storage.keys("honest") == []
            row = solver.node.context.database.task(task)
            assert row is not None
            assert row.note == "settled"
        finally:
            with suppress(Exception):
                watcher.close()
            solver.close()
    assert asked == []


def test_a_cheat_that_publishes_is_convicted_without_its_server(
    storage: StorageServer, tmp_path: Path
) -> None:
    """The bucket has no data from inside a segment, so the challenger demands it on the chain."""
    asked.clear()
    url = storage.make_bucket("cheat")
    with stage(tmp_path) as scene:
        scene.submitter.audit.resign()
        watcher = Watcher(scene, whistleblow=True)
        until_registered(scene)
        strategy = Strategy(executor=moves_a_weight_far, app=nobody)
        solver = Solver(scene, strategy, url=f"{url}/assay", publish="s3://cheat/assay")
        try:
            task = scene.sold()
            scene.until_drawn(task)
            assert scene.until(task, over, 240).status is TaskStatus.SLASHED
        finally:
            watcher.close()
            solver.close()
    assert asked == []
