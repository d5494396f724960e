"""A state of very many small tensors arrives in a few answers, from a solver, a juror or a bucket.

When readers still sent one request for each tensor, no such state arrived in time, and a jury then took a
sixteenth of an honest solver's stake.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch

from assay import holders
from protocol.commitments import BlobStore, state_root, tensor_root
from protocol.execution.replay import HonestExecutor
from protocol.execution.turns import Turns
from protocol.node.addresses import Address
from protocol.node.database import Identity
from protocol.node.reach import Reach
from protocol.node.serving import Serving
from protocol.numerics.types import DType
from protocol.program import Builder, Interpreter, StepProgram, TensorType
from protocol.tasks.bundles import Limits
from solver.catalog import Catalog
from solver.database import Stage
from solver.limits import App, Message, Receive, Send
from solver.metrics import Metrics
from solver.run_store import RunStore
from solver.server import application as solvers_app
from tests.unit.solver import tiny
from verifier.database import Database
from verifier.results import Items, Results
from verifier.server import application as verifiers_app
from verifier.solver_client import Shapes, SolverClient
from verifier.states import States

MANY = 10_000
FEW = 2
"""The most requests that a reader of a state may send."""


def program() -> StepProgram:
    """A step over `MANY` scalars. It is never run; only its state matters."""
    b = Builder("many")
    tensors = [b.input(TensorType(DType.I32, ())) for _ in range(MANY)]
    for tensor in tensors:
        b.output(tensor)
    return StepProgram(b.build(), tuple(f"t{k}" for k in range(MANY)), datasets=0, constants=0)


PROGRAM = program()
STATE = {name: torch.tensor(k % 5, dtype=torch.int32) for k, name in enumerate(PROGRAM.state)}
TENSORS = [bytes([k % 5, 0, 0, 0]) for k in range(MANY)]
"""The bytes of the state's tensors, with five distinct contents. Equal contents are stored as one file, so
such a state costs its submitter little.
"""
ROOT = state_root([tensor_root(data) for data in TENSORS])


@pytest.fixture(scope="module")
def run_store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    folder = tmp_path_factory.mktemp("solver")
    database, executor = tiny.database(folder), HonestExecutor(PROGRAM, (), Interpreter())
    database.put(tiny.TASK, Stage.TRAINING)
    kept = RunStore(tiny.TASK, PROGRAM, lambda: ((), executor), 1, 1, database, BlobStore(folder / "blobs"))
    assert kept.append(STATE) == ROOT
    kept.commit(1)
    return kept


@contextmanager
def counted(app: App) -> Iterator[tuple[str, list[str]]]:
    """Serve an app, and yield its address and the list of requested paths."""
    asked: list[str] = []

    async def noting(scope: Message, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])
        await app(scope, receive, send)

    with Serving(noting, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.port}", asked


def client(url: str) -> SolverClient:
    return SolverClient(Address.parse(url), tiny.TASK, Shapes(PROGRAM, 1, 1), 60, Reach())


def test_a_verifier_asks_a_solver_a_few_times(run_store: RunStore, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, Metrics(), Turns())
    catalog.put(run_store)
    with counted(solvers_app(catalog)) as (url, asked):
        assert client(url).checkpoint(0) == TENSORS
        assert len(asked) <= FEW


def test_a_submitter_asks_a_solver_a_few_times(run_store: RunStore, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path, Metrics(), Turns())
    catalog.put(run_store)
    with counted(solvers_app(catalog)) as (url, asked):
        assert holders.committed(url, tiny.TASK, 0, PROGRAM, ROOT, Limits()) == TENSORS
        assert len(asked) <= FEW


def test_a_juror_is_asked_a_few_times(tmp_path: Path) -> None:
    database, store = (
        Database(tmp_path / "verifier.sqlite", Identity("a", "b", "c")),
        BlobStore(tmp_path / "s"),
    )
    executor = HonestExecutor(PROGRAM, (), Interpreter())
    states = States(tiny.TASK, PROGRAM, executor, 1, lambda: STATE, database, store)
    assert states.take(2, ROOT, TENSORS) is not None
    items = Items(tmp_path / "items", tmp_path / "bundles")
    items.hold_state(tiny.TASK, 2, [ROOT], partial(states.link, 2, ROOT))
    assert items.state(tiny.TASK, 2, [4] * MANY) == (TENSORS, [ROOT])
    app = verifiers_app(Results(tmp_path / "results"), items, lambda *_: None)
    with counted(app) as (url, asked):
        assert client(url).checkpoint(2) == TENSORS
        assert len(asked) <= FEW
