"""Held results are deleted after their time, or if the disk is over its limit. Leftovers of killed nodes are
deleted at the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.node.disk import REMOVED
from tests.unit.solver import tiny
from verifier import retention
from verifier.context import Context
from verifier.database import UNTIL_OVER, Database
from verifier.results import Results
from verifier.retention import Disk
from verifier.settings import VerifierSettings

MIB = 1 << 20


class Scene:
    """Results of a MiB each, held until `until`."""

    def __init__(self, folder: Path, database: Database, **settings: object) -> None:
        self.folder, self.database = folder, database
        self.results = Results(folder / "results")
        self.said: list[tuple[int, str]] = []
        chosen = VerifierSettings.model_validate(settings)
        self.disk = Disk(folder, chosen.disk_limit)
        context = SimpleNamespace(
            database=database,
            results=self.results,
            disk=self.disk,
            settings=chosen,
            log=SimpleNamespace(info=self.say),
        )
        self.context = cast(Context, context)

    def say(self, _what: str, task: int, reason: str) -> None:
        self.said.append((task, reason))

    def hold(self, task: int, until: int) -> None:
        self.results.hold(task, 3, [bytes([task]) * MIB])
        self.database.hold(task, until)

    @property
    def held(self) -> list[int]:
        kept = [task for task in range(1, 9) if self.results.path(task, 3, 0).is_file()]
        assert kept == [task for task in range(1, 9) if self.database.is_held(task)]
        return kept


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database(tmp_path / "verifier.sqlite", tiny.IDENTITY)
    yield made
    made.close()


def test_results_go_after_their_time_each_with_a_reason(tmp_path: Path, database: Database) -> None:
    scene = Scene(tmp_path, database, hold_days=3)
    for task, until in ((1, 200), (2, 100), (3, UNTIL_OVER)):
        scene.hold(task, until)
    retention.release(scene.context, 100)
    assert scene.held == [1, 2, 3]
    retention.release(scene.context, 101)
    assert scene.held == [1, 3]
    assert scene.said == [(2, "its time is over (hold_days = 3)")]


def test_over_the_limit_the_earliest_goes_first_and_none_whose_task_is_not_over(
    tmp_path: Path, database: Database
) -> None:
    scene = Scene(tmp_path, database, disk_limit_gib=2.5 * MIB / 2**30)
    for task, until in ((1, UNTIL_OVER), (2, 300), (3, 200), (4, 400)):
        scene.hold(task, until)
    assert scene.disk.room(0) < 0
    retention.release(scene.context, 100)
    assert scene.held == [1, 4]
    assert [task for task, _ in scene.said] == [3, 2]
    assert 0 < scene.disk.room(0) < MIB
    for task in (5, 6):
        scene.hold(task, UNTIL_OVER)
    scene.disk.changed()
    retention.release(scene.context, 100)
    assert scene.held == [1, 5, 6], "what is at stake stays, however much it is"
    assert scene.disk.room(0) < 0


def test_what_killed_processes_left_goes_at_the_start(tmp_path: Path, database: Database) -> None:
    scene = Scene(tmp_path, database)
    for task in (1, 2, 3):
        for name in ("tasks", "items"):
            (tmp_path / name / str(task)).mkdir(parents=True)
            (tmp_path / name / str(task) / "file").write_bytes(b"1")
    scene.hold(1, 100)
    scene.hold(2, UNTIL_OVER)
    scene.results.hold(3, 3, [b"noted nowhere"])
    (tmp_path / "tasks" / f"{REMOVED}1").mkdir()
    database.finish(1, 3)
    retention.tidy(tmp_path, database)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*") if path.is_dir())
    assert found == ["items/2", "results/1", "results/2", "tasks/2"]


def test_without_a_limit_nothing_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(_folders: Any) -> int:
        raise AssertionError

    monkeypatch.setattr("verifier.retention.used", measured)
    disk = Disk(tmp_path, None)
    assert not disk.is_over_limit
    assert disk.room(0) > 0
