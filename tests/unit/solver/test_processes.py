"""A solver's training by worker processes gives the same roots as training in one process, even if a worker
is killed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.commitments import BlobStore
from protocol.execution.replay import Work, honest_executor
from protocol.program.step import State
from protocol.tasks.bundles import load_bundle
from solver import processes
from solver.database import Stage
from solver.processes import WorkerRunner, runner
from solver.run_store import RunStore
from solver.training import LocalRunner, Training
from tests.unit.parallel import tasks
from tests.unit.solver import tiny

SEGMENTS, STEPS = 3, 4


class Stand:
    """A task on disk, which is trained by two workers or in this process alone."""

    def __init__(self, folder: Path) -> None:
        step = tasks.mlp()
        self.hash = tasks.written(step, folder / "bundle")
        self.folder = folder
        self.bundle = load_bundle(folder / "bundle")
        self.work = Work.of(tiny.TASK, self.bundle)
        self.turns = 0
        self.computing = False

    def run_store(self, name: str) -> RunStore:
        """An empty run store."""
        place = self.folder / name
        place.mkdir()
        kept = tiny.database(place)
        kept.put(tiny.TASK, Stage.TRAINING)
        materials, store = (self.work.fixed, honest_executor(self.work)), BlobStore(place / "blobs")
        return RunStore(tiny.TASK, self.work.program, lambda: materials, SEGMENTS, STEPS, kept, store)

    def together(self, run_store: RunStore) -> WorkerRunner:
        """A runner with two workers for this run store's training."""
        alone = LocalRunner(run_store.executor)
        return WorkerRunner(self.work, self.folder / "bundle", self.hash, 2, alone, self.turn)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A stub of the turn that a step waits for; it counts the turns."""
        self.turns += 1
        self.computing = True
        try:
            yield
        finally:
            self.computing = False

    def alone(self) -> list[bytes]:
        """The roots of a training in this process alone."""
        run_store = self.run_store("alone")
        training = Training(run_store, self.bundle.initial_state)
        while not training.done:
            training.segment(lambda _number, _state: None)
        training.close()
        return run_store.roots()


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return Stand(tmp_path)


@pytest.mark.parametrize("kills", [1, pytest.param(2, marks=pytest.mark.heavy)])
def test_a_run_whose_workers_are_killed_has_the_roots_of_one_process(stand: Stand, kills: int) -> None:
    """After one kill the workers are restarted; after two kills this process continues alone."""
    run_store = stand.run_store("together")
    workers = stand.together(run_store)
    training = Training(run_store, stand.bundle.initial_state, runner=workers)
    left, seen = kills, []

    def tell(number: int, state: State) -> None:
        nonlocal left
        seen.append(number)
        assert "metric.loss" in state
        assert not stand.computing
        if number > STEPS and left:
            left -= 1
            os.kill(workers.pids[-1], signal.SIGKILL)

    while not training.done:
        training.segment(tell)
    assert len(workers.pids) == (2 if kills == 1 else 0)
    training.close()
    assert workers.pids == []
    assert left == 0
    if kills == 1:
        assert stand.turns >= len(seen)  # a turn for each step
    assert seen[:STEPS] == list(range(1, STEPS + 1))
    assert seen[-STEPS:] == list(range(2 * STEPS + 1, SEGMENTS * STEPS + 1))
    assert run_store.roots() == stand.alone()


def test_one_process_looks_for_no_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's program is not searched for work to share if there is only one process."""
    monkeypatch.setattr(processes, "units", lambda _program: pytest.fail("searched"))
    executor: Any = object()
    context: Any = SimpleNamespace(in_turns=lambda *_: executor, settings=SimpleNamespace(processes=1))
    work: Any = SimpleNamespace(task=1)
    assert isinstance(runner(context, work, cast(Any, None), executor), LocalRunner)
