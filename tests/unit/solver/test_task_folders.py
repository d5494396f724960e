"""The solver's data on disk: a folder for each task, deleted as a whole, and the bundles of its tasks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from protocol.commitments import BlobStore
from protocol.commitments.checkpoints import load_checkpoint, save_checkpoint
from protocol.node.disk import REMOVED, used
from protocol.tasks.bundles import link_bundle
from solver.database import CheckpointRow, Database, Stage
from solver.task_folders import TaskFolders
from tests.unit.solver import tiny

BUNDLE, OTHER = bytes([1]) * 32, bytes([2]) * 32


def keep(folders: TaskFolders, database: Database, task: int, bundle: bytes) -> None:
    """Keep a task with a bundle and one checkpoint."""
    database.put(task, Stage.TRAINING)
    folders.begin(task, bundle)
    store = folders.store(task)
    add_checkpoint(store, database, task)
    manifest = folders.bundles / bundle.hex() / "manifest.json"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_bytes(b"{}")


def add_checkpoint(store: BlobStore, database: Database, task: int) -> None:
    """Keep the initial state as checkpoint 0."""
    checkpoint = tiny.step_program().checkpoint(tiny.initial())
    row = CheckpointRow(0, save_checkpoint(store, checkpoint), checkpoint.state_root)
    database.add_checkpoint(task, row)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "solver.sqlite", tiny.IDENTITY)


@pytest.fixture
def folders(tmp_path: Path, database: Database) -> TaskFolders:
    return TaskFolders(tmp_path, database)


def test_a_dropped_task_leaves_its_row_and_the_bundles_that_others_need(
    tmp_path: Path, folders: TaskFolders, database: Database
) -> None:
    for task, bundle in ((1, BUNDLE), (2, BUNDLE), (3, OTHER)):
        keep(folders, database, task, bundle)
    database.put(1, Stage.OVER, "settled")
    folders.drop(1)
    assert not folders.has(1)
    assert not database.checkpoints(1)
    row = database.task(1)
    assert row is not None
    assert (row.stage, row.note) == (Stage.OVER, "settled")
    assert database.checkpoints(2)
    assert (folders.bundles / BUNDLE.hex()).is_dir()
    folders.drop(2)
    assert sorted(path.name for path in folders.bundles.iterdir()) == [OTHER.hex()]
    assert not list(tmp_path.rglob(f"{REMOVED}*"))


def test_a_number_that_becomes_another_tasks_needs_the_other_bundle(
    folders: TaskFolders, database: Database
) -> None:
    keep(folders, database, 1, BUNDLE)
    folders.begin(1, OTHER)
    assert folders.bundle_of(1) == OTHER.hex()
    assert not folders.needs_bundle(BUNDLE.hex(), but=2)


def test_only_tasks_that_are_over_are_finished_and_since_when_is_kept(
    tmp_path: Path, folders: TaskFolders, database: Database
) -> None:
    for task in (1, 2, 3):
        keep(folders, database, task, BUNDLE)
    assert folders.finished(100) == []
    database.put(2, Stage.OVER)
    assert folders.finished(100) == [(100, 2)]
    database.put(1, Stage.OVER)
    assert folders.finished(200) == [(100, 2), (200, 1)]
    assert TaskFolders(tmp_path, database).finished(300) == [(100, 2), (200, 1)]
    database.put(3, Stage.OUTBID)
    assert len(folders.finished(300)) == 2, "it may be won again"
    database.put(3, Stage.REFUSED)
    assert folders.finished(300) == [(100, 2), (200, 1), (300, 3)]


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from protocol.node import disk
from solver import task_folders
from solver.database import Database
from tests.unit.solver import tiny

folder, moment = Path(sys.argv[1]), sys.argv[2]
kill = lambda *_a, **_k: os.kill(os.getpid(), signal.SIGKILL)
database = Database(folder / "solver.sqlite", tiny.IDENTITY)
folders = task_folders.TaskFolders(folder, database)
if moment == "rename":
    Path.rename = kill
elif moment == "files":
    def some(path, ignore_errors):
        next(one for one in Path(path).rglob("*") if one.is_file()).unlink()
        kill()
    shutil.rmtree = some
elif moment == "rows":
    database.drop_checkpoints = kill
else:
    task_folders.prune = kill
folders.drop(1)
"""


@pytest.mark.parametrize("moment", ["rename", "files", "rows", "bundles"])
def test_killed_while_it_deletes_a_task_is_whole_or_gone(tmp_path: Path, moment: str) -> None:
    database = Database(tmp_path / "solver.sqlite", tiny.IDENTITY)
    folders = TaskFolders(tmp_path, database)
    keep(folders, database, 1, BUNDLE)
    keep(folders, database, 2, OTHER)
    database.put(1, Stage.OVER, "settled")
    database.close()
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), moment],
        check=False,
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert ended.returncode == -signal.SIGKILL
    database = Database(tmp_path / "solver.sqlite", tiny.IDENTITY)
    folders = TaskFolders(tmp_path, database)
    folders.tidy()
    assert not list(tmp_path.rglob(f"{REMOVED}*"))
    if moment == "rename":
        (row,) = database.checkpoints(1)
        assert load_checkpoint(folders.store(1), row.manifest, state_root=row.root)
        assert (folders.bundles / BUNDLE.hex() / "manifest.json").is_file()
    else:
        assert not folders.has(1)
        assert not database.checkpoints(1)
        assert not (folders.bundles / BUNDLE.hex()).exists()
    (row,) = database.checkpoints(2)
    assert load_checkpoint(folders.store(2), row.manifest, state_root=row.root)
    database.close()


def test_the_one_store_of_an_earlier_release_becomes_a_folder_for_each_task(
    tmp_path: Path, folders: TaskFolders, database: Database
) -> None:
    former = BlobStore(tmp_path / "blobs")
    for task in (1, 2):
        database.put(task, Stage.SUBMITTED)
        add_checkpoint(former, database, task)
    folders.tidy()
    folders.tidy()
    for task in (1, 2):
        (row,) = database.checkpoints(task)
        assert load_checkpoint(folders.store(task), row.manifest, state_root=row.root)
    database.put(1, Stage.OVER)
    folders.tidy()
    (row,) = database.checkpoints(2)
    assert load_checkpoint(former, row.manifest, state_root=row.root), "the earlier release defends it too"
    database.put(2, Stage.OVER)
    folders.tidy()
    assert not (tmp_path / "blobs").exists()
    folders.drop(1)
    (row,) = database.checkpoints(2)
    assert load_checkpoint(folders.store(2), row.manifest, state_root=row.root)


def test_what_is_used_counts_a_linked_file_once(tmp_path: Path) -> None:
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    folder = theirs / BUNDLE.hex()
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(bytes(10_000))
    alone = used([theirs])
    assert alone >= 10_000
    link_bundle([theirs], mine, BUNDLE)
    assert used([tmp_path]) == alone
    assert used([mine, theirs]) == alone
