"""Which runs are shown, and what is kept in memory for them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from protocol.execution.turns import Turns
from solver.catalog import Catalog
from solver.metrics import Metrics
from solver.run_store import Materials, RunStore
from tests.unit.solver import tiny


@contextmanager
def no_collector() -> Iterator[None]:
    """Turn the garbage collector off in the block, so that only reference counting frees objects."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "bundles", Metrics(), Turns())


def records(folder: Path, count: int) -> list[RunStore]:
    """The same run, stored as the run of several tasks."""
    tiny.trained(folder)
    return [
        RunStore(task, *tiny.parts(folder, tiny.database(folder))[1:])
        for task in range(tiny.TASK, tiny.TASK + count)
    ]


def test_one_replay_is_kept_and_only_until_another_is_asked_for(catalog: Catalog, tmp_path: Path) -> None:
    one, other = records(tmp_path, 2)
    with no_collector():
        kept = weakref.ref(catalog.replay(one))
        assert catalog.replay(one) is kept()
        frame = weakref.ref(catalog.replay(one).frame(1, 1))
        assert frame() is not None
        second = weakref.ref(catalog.replay(other))
        assert (kept(), frame()) == (None, None)
        catalog.forget_replay()
        assert second() is None


def test_a_task_that_is_over_is_shown_without_its_dataset_in_memory(catalog: Catalog, tmp_path: Path) -> None:
    run_store = tiny.trained(tmp_path)
    catalog.put(run_store)
    executor = run_store.executor
    before = list(run_store.replay().step_roots(2)), run_store.tensor(3, 0)
    asked = []

    def again() -> Materials:
        asked.append(1)
        return tiny.fixed(), executor

    with no_collector():
        dataset = weakref.ref(run_store.replay()._fixed[0])
        catalog.retire(tiny.TASK, again)
        assert dataset() is None
    assert catalog.run_store(tiny.TASK) is run_store
    assert run_store.tensor(3, 0) == before[1]
    assert not asked
    assert list(run_store.replay().step_roots(2)) == before[0]
    assert asked


def test_the_last_tasks_that_are_over_are_shown(catalog: Catalog, tmp_path: Path) -> None:
    shown = records(tmp_path, 18)
    for run_store in shown:
        catalog.put(run_store)
        for _ in range(2):  # a node whose disk was full retires a task again
            catalog.retire(run_store.task, lambda: (tiny.fixed(), shown[0].executor))
    assert [catalog.run_store(run_store.task) for run_store in shown[:2]] == [None, None], "16 are shown"
    assert [catalog.run_store(run_store.task) for run_store in shown[2:]] == shown[2:]


def test_one_replay_is_kept_for_all_deployments(catalog: Catalog, tmp_path: Path) -> None:
    one, other = records(tmp_path, 2)
    beside = Catalog(tmp_path / "bundles", catalog.metrics, catalog.turns, catalog)
    with no_collector():
        kept = weakref.ref(catalog.replay(one))
        second = weakref.ref(beside.replay(other))
        assert kept() is None
        catalog.forget_replay()
        assert second() is None
