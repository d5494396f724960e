"""Solvers with each fault: no false answer is believed, no request exceeds its time limit, and after a fault
other sources are asked.

The client is the verifier's: `verifier.solver_client`, and on top of it `verifier.replaying` with
`verifier.states`. `tests/unit/verifier/test_solver_client.py` covers what else a solver may send.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.commitments import BlobStore
from protocol.execution.turns import Turns
from protocol.node.addresses import parsed
from protocol.node.database import Identity
from protocol.node.reach import Reach
from protocol.node.serving import Serving
from solver.catalog import Catalog
from solver.metrics import Metrics
from solver.server import application
from tests.campaign.faulty import FAULTS, PLENTY, bounded, is_whole, make, patience_with
from tests.campaign.peer_proxy import Mode, PeerProxy
from tests.unit.solver import tiny
from tests.unit.verifier.test_replaying import (
    EXECUTOR,
    HONEST,
    PROGRAM,
    canonical,
    checkpoint_roots,
    committed,
)
from verifier.database import Database
from verifier.errors import Unserved
from verifier.replaying import Replayer
from verifier.solver_client import Shapes, SolverClient
from verifier.states import States

PATIENCE = 0.5
"""The client's time limit, in seconds, for a solver whose fault makes the client wait."""
SEGMENT = 2
COMMITTED, ROOTS = committed(HONEST), checkpoint_roots(HONEST)
CHECKPOINT = canonical(HONEST[(SEGMENT - 1) * tiny.STEPS])


@pytest.fixture(scope="module")
def solver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an honest solver."""
    folder = tmp_path_factory.mktemp("solver")
    catalog = Catalog(folder / "bundles", Metrics(), Turns())
    catalog.put(tiny.trained(folder))
    with Serving(application(catalog), "127.0.0.1", 0) as serving:
        yield serving.url


@pytest.fixture
def proxy(solver: str) -> Iterator[PeerProxy]:
    with PeerProxy(solver) as made:
        yield made


def client(url: str, patience: float = PLENTY) -> SolverClient:
    return SolverClient(parsed(url), tiny.TASK, Shapes(PROGRAM, tiny.SEGMENTS, tiny.STEPS), patience, Reach())


def test_an_honest_solver_is_heard(proxy: PeerProxy) -> None:
    asked = client(proxy.url)
    assert asked.segment_roots() == ROOTS
    assert asked.checkpoint(SEGMENT - 1) == CHECKPOINT
    assert asked.step_roots(SEGMENT) is not None


@pytest.mark.parametrize(("mode", "form"), FAULTS)
def test_a_faulty_solver_is_no_answer_in_time(proxy: PeerProxy, mode: Mode, form: str) -> None:
    """If a solver is faulty, the client returns None in time. An exception is a two-faced solver: its data
    are returned, because they have the right length, but they are not what the solver has committed to.
    """
    asked = client(proxy.url, patience_with(mode, form, PATIENCE))
    make(proxy, mode, form)
    with bounded(PATIENCE):
        roots = asked.segment_roots()
    make(proxy, mode, form)
    with bounded(PATIENCE):
        checkpoint = asked.checkpoint(SEGMENT - 1)
    if mode == "two-faced":
        assert roots is not None
        assert checkpoint is not None
    else:
        assert roots is checkpoint is None
    assert roots != ROOTS
    assert checkpoint != CHECKPOINT


class Verifier:
    """A verifier's replayer that asks a solver first, then others. `blobs` is the folder in which it keeps
    blobs.
    """

    def __init__(self, folder: Path, solver: SolverClient, *others: str) -> None:
        self.blobs = folder / "blobs"
        database = Database(folder / "verifier.sqlite", Identity("a", "b", "c"))
        self.states = States(
            tiny.TASK, PROGRAM, EXECUTOR, tiny.STEPS, tiny.initial, database, BlobStore(self.blobs)
        )
        clients = [client(other) for other in others]
        self.replayer = Replayer(PROGRAM, EXECUTOR, tiny.STEPS, self.states, solver, lambda: clients)


@pytest.mark.parametrize(("mode", "form"), FAULTS)
def test_of_a_faulty_solver_nothing_is_kept_and_the_next_source_is_asked(
    tmp_path: Path, proxy: PeerProxy, solver: str, mode: Mode, form: str
) -> None:
    make(proxy, mode, form)
    alone = Verifier(tmp_path / "alone", client(proxy.url, patience_with(mode, form, PATIENCE)))
    with bounded(PATIENCE), pytest.raises(Unserved):
        alone.replayer.ask(COMMITTED, [SEGMENT])
    assert alone.replayer.has_withheld(COMMITTED)
    assert not alone.states.commitment(COMMITTED.root)
    assert not [path for path in alone.blobs.rglob("*") if path.is_file()]
    make(proxy, mode, form)
    both = Verifier(tmp_path / "both", client(proxy.url, patience_with(mode, form, PATIENCE)), solver)
    both.replayer.ask(COMMITTED, [SEGMENT])
    assert both.replayer.is_here(COMMITTED, SEGMENT)
    assert canonical(both.states.kept(SEGMENT - 1, ROOTS[SEGMENT - 1]) or {}) == CHECKPOINT
    assert is_whole(both.blobs)


@pytest.mark.parametrize(("mode", "form"), FAULTS)
def test_a_solver_that_is_faulty_after_its_roots_is_not_believed(
    tmp_path: Path, proxy: PeerProxy, solver: str, mode: Mode, form: str
) -> None:
    """The solver serves the roots that it has committed to, but then no checkpoint or a wrong one."""
    proxy.spare = 1
    make(proxy, mode, form)
    if mode == "two-faced":
        next(proxy.connections)  # the second connection from now on is for the checkpoint
    found = Verifier(tmp_path, client(proxy.url, 4 * patience_with(mode, form, PATIENCE)), solver)
    found.replayer.ask(COMMITTED, [SEGMENT])
    assert any(target.endswith(f"/checkpoints/{SEGMENT - 1}/groups/0") for target in proxy.asked)
    assert canonical(found.states.kept(SEGMENT - 1, ROOTS[SEGMENT - 1]) or {}) == CHECKPOINT
    assert is_whole(found.blobs)


def test_a_two_faced_solver_is_never_believed_however_often_it_is_asked(
    tmp_path: Path, proxy: PeerProxy
) -> None:
    proxy.mode = "two-faced"
    found = Verifier(tmp_path, client(proxy.url))
    for segment in range(2, tiny.SEGMENTS + 2):
        for _ in range(2):
            try:
                found.replayer.ask(COMMITTED, [segment])
                break
            except Unserved:
                assert not found.replayer.is_here(COMMITTED, segment)
        kept = found.states.kept(segment - 1, ROOTS[segment - 1])
        assert canonical(kept or {}) == canonical(HONEST[(segment - 1) * tiny.STEPS])
