"""`assay result` with a faulty solver: whatever its fault, the result comes from the task's seat, which also
serves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from assay.errors import ResultError
from assay.results import Result, fetch, save
from protocol.chain.client import Client
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import TOKEN
from protocol.commitments import ProgressTree
from protocol.execution.replay import HonestExecutor
from protocol.execution.turns import Turns
from protocol.node.serving import Serving
from protocol.program import Interpreter
from protocol.tasks.bundles import Limits
from sim.replay.stage import own_home
from solver.catalog import Catalog
from solver.database import Stage as State
from solver.metrics import Metrics
from solver.run_store import RunStore
from solver.server import application
from solver.training import Training
from tests.campaign.faulty import FAULTS, PLENTY, bounded, make, patience_with
from tests.campaign.peer_proxy import Mode, PeerProxy
from tests.chain.rounds import draw_first
from tests.chain.solver_stage import SOLVER, Stage
from tests.unit.node.servers import answers, serving
from tests.unit.solver import tiny

pytestmark = pytest.mark.chain

SECONDS = 2.0
"""Seconds that each server has for the result if a fault makes the client wait; otherwise `PLENTY`."""


@dataclass
class Handed:
    """A task that its solver has submitted and its only seat has attested."""

    scene: Stage
    solver: Client
    task: int
    honest: str
    """The address of a server that serves the result."""

    def fetch(self, solver: str, seat: str, seconds: float = PLENTY) -> Result:
        """Let the solver and the seat announce these addresses, then fetch the result. Each server has
        `seconds` for it.
        """
        self.solver.market.announce(solver)
        self.scene.submitter.market.announce(seat)
        limits = Limits(
            seconds=seconds, manifest_bytes=1 << 20, allowed=(self.scene.bundles.parent.as_uri(),)
        )
        return fetch(self.scene.submitter, self.scene.home, self.task, limits)


def run_of(task: int, folder: Path) -> RunStore:
    """A finished run of the tiny task, whose checkpoints are in `folder`."""
    kept = tiny.database(folder)
    kept.put(task, State.TRAINING)
    run_store = RunStore(task, *tiny.parts(folder, kept)[1:])
    with closing(Training(run_store, tiny.initial)) as training:
        while not training.done:
            training.segment(lambda _number, _state: None)
    run_store.commit(run_store.size)
    return run_store


@pytest.fixture(scope="module")
def handed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Handed]:
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("stage")
        stack.enter_context(own_home())
        devnet = stack.enter_context(Devnet(block_time=None))
        scene = Stage(devnet, folder, "")
        stack.callback(scene.submitter.close)
        solver = stack.enter_context(scene.client(SOLVER))
        solver.fund(1_000 * TOKEN)
        task = scene.post()
        solver.market.bid(task, 50 * TOKEN)
        scene.skip_to(scene.submitter.market.task(task).bids_until)
        solver.market.assign(task)
        (folder / "run").mkdir()
        run = run_of(task, folder / "run")
        roots, catalog = run.roots(), Catalog(folder / "run/bundles", Metrics(), Turns())
        tree, last = ProgressTree(roots).at(len(roots)), len(roots) - 1
        solver.market.submit(
            task, tree.root, tree.inclusion_path(0), [], roots[last], tree.inclusion_path(last)
        )
        draw_first(scene.submitter, devnet)
        scene.attest(task)
        catalog.put(run)
        server = stack.enter_context(Serving(application(catalog), "127.0.0.1", 0))
        yield Handed(scene, solver, task, server.url)


@pytest.fixture
def proxy(handed: Handed) -> Iterator[PeerProxy]:
    with PeerProxy(handed.honest) as made:
        yield made


def is_right(result: Result) -> bool:
    """Whether the result is the state after the task's last step."""
    state = tiny.initial()
    executor = HonestExecutor(tiny.step_program(), tiny.fixed(), Interpreter())
    for number in range(1, tiny.SEGMENTS * tiny.STEPS + 1):
        state = dict(executor.step(state, number))
    return all(torch.equal(state[name], result.state[name]) for name in state)


@pytest.mark.parametrize(("mode", "form"), FAULTS)
def test_the_result_comes_from_the_seat_where_the_solver_is_faulty(
    handed: Handed, proxy: PeerProxy, mode: Mode, form: str
) -> None:
    seconds = patience_with(mode, form, SECONDS)
    make(proxy, mode, form)
    with bounded(SECONDS), pytest.raises(ResultError, match="expected a state with root"):
        handed.fetch(proxy.url, "http://127.0.0.1:1", seconds)
    asked = len(proxy.asked)
    make(proxy, mode, form)
    assert is_right(handed.fetch(proxy.url, handed.honest, seconds))
    assert len(proxy.asked) > asked


@pytest.mark.parametrize("length", [0, 1, tiny.WEIGHTS.nbytes - 1])
def test_an_answer_that_is_too_short_is_no_result(handed: Handed, length: int) -> None:
    """An answer that is too short is refused, and the seat is asked next. An empty answer used to end the
    command before the seat was asked.
    """
    with serving(answers(bytes(length))) as server:
        with pytest.raises(
            ResultError, match=f"groups/0: expected {tiny.WEIGHTS.nbytes + 4} bytes, got {length}"
        ):
            handed.fetch(server.url, "http://127.0.0.1:1")
        assert is_right(handed.fetch(server.url, handed.honest))


def test_a_result_is_written_whole(handed: Handed, tmp_path: Path) -> None:
    path = save(handed.fetch(handed.honest, ""), tmp_path)
    assert list(tmp_path.iterdir()) == [path]
