"""What is shown, and what is kept in memory for it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from solver.metrics import Metrics
from solver.record import Materials, Record
from solver.shelf import KEPT_RESULTS, Shelf
from tests.unit.solver import tiny


@contextmanager
def no_collector() -> Iterator[None]:
    """What is freed in here is freed at once, not by a search for cycles that may be long in coming."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "bundles", Metrics())


def records(folder: Path, count: int) -> list[Record]:
    """The same run, kept as that of several tasks."""
    tiny.trained(folder)
    return [
        Record(task, *tiny.parts(folder, tiny.database(folder))[1:])
        for task in range(tiny.TASK, tiny.TASK + count)
    ]


def test_one_replay_is_kept_and_only_until_another_is_asked_for(shelf: Shelf, tmp_path: Path) -> None:
    one, other = records(tmp_path, 2)
    with no_collector():
        kept = weakref.ref(shelf.replay(one))
        assert shelf.replay(one) is kept()
        frame = weakref.ref(shelf.replay(one).frame(1, 1))
        assert frame() is not None
        second = weakref.ref(shelf.replay(other))
        assert (kept(), frame()) == (None, None)
        shelf.forget_replay()
        assert second() is None


def test_a_task_that_is_over_is_shown_without_its_dataset_in_memory(shelf: Shelf, tmp_path: Path) -> None:
    record = tiny.trained(tmp_path)
    shelf.put(record)
    executor = record.executor
    before = list(record.replay().step_roots(2)), record.tensor(3, 0)
    asked = []

    def again() -> Materials:
        asked.append(1)
        return tiny.fixed(), executor

    with no_collector():
        dataset = weakref.ref(record.replay()._fixed[0])
        shelf.retire(tiny.TASK, again)
        assert dataset() is None
    assert shelf.record(tiny.TASK) is record
    assert record.tensor(3, 0) == before[1]
    assert not asked
    assert list(record.replay().step_roots(2)) == before[0]
    assert asked


def test_the_last_tasks_that_are_over_are_shown(shelf: Shelf, tmp_path: Path) -> None:
    shown = records(tmp_path, KEPT_RESULTS + 2)
    for record in shown:
        shelf.put(record)
        shelf.retire(record.task, lambda: (tiny.fixed(), shown[0].executor))
    assert [shelf.record(record.task) for record in shown[:2]] == [None, None]
    assert [shelf.record(record.task) for record in shown[2:]] == shown[2:]
