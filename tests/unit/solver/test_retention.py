"""Data of finished tasks is deleted after `hold_days`, or earlier if the disk is over its limit. Data of
tasks at stake is never deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.node.home import Home
from solver import task_folders
from solver.context import Context
from solver.database import Database, Stage
from solver.publishing import Publisher
from solver.retention import Retention
from solver.settings import SolverSettings
from solver.task_folders import TaskFolders
from tests.unit.solver import tiny

DAY = 86_400
MIB = 1 << 20


class Scene:
    """A solver's folder with tasks of a MiB each, and a stub publisher."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.database = Database(folder / "solver.sqlite", tiny.IDENTITY)
        self.folders = TaskFolders(folder, self.database)
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.forgotten: list[int] = []
        self.withdrawn: list[int] = []
        self.failure: Exception | None = None
        log = SimpleNamespace(info=self.say, warning=self.say)
        home = Home(folder)
        self.context = Context(
            *(cast(Any, None),) * 2,
            SolverSettings.model_validate(settings),
            cast(Any, None),
            home,
            self.database,
            self.folders,
            cast(Any, SimpleNamespace(forget=self.forgotten.append)),
            cast(Any, None),
            folder / "candidates",
            log=cast(Any, log),
        )
        self.retention = Retention(self.context, cast(Publisher, SimpleNamespace(withdraw=self.withdraw)))

    def say(self, what: str, **about: Any) -> None:
        self.said.append((what, about))

    def withdraw(self, task: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.withdrawn.append(task)

    def keep(self, task: int, stage: Stage) -> None:
        self.database.put(task, stage)
        self.folders.begin(task, bytes([task]) * 32)
        self.folders.store(task).put(bytes([task]) * MIB)

    def look(self, now: int) -> None:
        self.retention.soon()
        self.retention.tick(now)
        until(lambda: not self.retention.busy)

    @property
    def kept(self) -> list[int]:
        return [task for task in range(1, 9) if self.folders.has(task)]


def until(what: Callable[[], bool]) -> None:
    deadline = monotonic() + 60
    while not what():
        assert monotonic() < deadline
        sleep(0.01)


@pytest.fixture(autouse=True)
def measured_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_folders, "MEASURED_SECONDS", -1.0)


def test_a_finished_task_goes_after_its_days_and_none_that_is_at_stake(tmp_path: Path) -> None:
    scene = Scene(tmp_path, hold_days=2)
    for task, stage in enumerate((Stage.OVER, Stage.SUBMITTED, Stage.TRAINING, Stage.BID), 1):
        scene.keep(task, stage)
    scene.look(1_000)
    scene.look(1_000 + 2 * DAY)
    assert scene.kept == [1, 2, 3, 4]
    scene.look(1_001 + 2 * DAY)
    assert scene.kept == [2, 3, 4]
    assert scene.forgotten == scene.withdrawn == [1]
    assert scene.said == [
        ("deleted what was kept", {"task": 1, "reason": "over for 2 days (hold_days)"}),
    ]


def test_over_the_limit_the_earliest_finished_go_first_and_only_as_many_as_needed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, disk_limit_gib=3.5 * MIB / 2**30)
    for task in (1, 2, 3, 4):
        scene.keep(task, Stage.SUBMITTED)
    scene.look(1)
    assert scene.kept == [1, 2, 3, 4]
    assert [what for what, _ in scene.said] == ["over the disk limit: no new task"]
    assert scene.context.free_disk() == 0
    scene.look(2)
    assert len(scene.said) == 1, "it is said once"
    for now, task in enumerate((3, 1), 3):
        scene.database.put(task, Stage.OVER)
        scene.look(now)
    assert scene.kept == [1, 2, 4]
    assert 0 < scene.context.free_disk() < MIB
    assert scene.said[-1][0] == "deleted what was kept"
    assert "disk_limit_gib" in scene.said[-1][1]["reason"]


def test_what_the_bucket_still_has_is_not_forgotten_here(tmp_path: Path) -> None:
    scene = Scene(tmp_path, hold_days=0)
    scene.keep(1, Stage.OVER)
    scene.look(1)
    scene.failure = OSError("no bucket")
    scene.look(2)
    assert scene.kept == [1]
    scene.failure = None
    scene.look(3)
    assert scene.kept == []
    assert scene.said[0][0] == "not deleted"


def test_a_bucket_needs_an_address_that_it_is_read_at() -> None:
    with pytest.raises(ValueError, match="url"):
        SolverSettings(publish="s3://mine/assay")
    for place in ("mine", "s3://key:secret@mine", "s3://mine/../others", "filecache::s3://mine"):
        with pytest.raises(ValueError, match="s3://bucket/prefix"):
            SolverSettings(publish=place, url="https://mine.example")
