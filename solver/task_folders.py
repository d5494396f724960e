"""What the solver keeps on disk for each task: a folder with the task's checkpoints and the name of its
bundle.

A task is kept as long as its folder exists. The folder is removed in one step (`protocol.node.disk.remove`),
and then the rows of its checkpoints are deleted; leftovers of a killed process are removed at the next start.
The row that says how the task ended stays. Bundles are in the account's own folder, and are deleted with the
last task that needs them. Other parties of this home folder have their own links to the same files
(`link_bundle`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from pathlib import Path

from protocol.commitments import BlobStore, CommitmentError
from protocol.commitments.atomic import write_atomically
from protocol.commitments.checkpoints import stored_tensors
from protocol.node.disk import remove, remove_rests, used
from protocol.tasks.bundles import prune
from solver.database import LIVE, CheckpointRow, Database, Stage

_BUNDLE, _OVER = "bundle", "over"
"""Names of the file that holds the hash of a task's bundle, and of the file that says when the task was over.
"""

MEASURED_SECONDS = 30.0
"""Seconds between measurements: a folder of many checkpoints takes tenths of a second to read."""


class TaskFolders:
    """The folders of tasks, below the `folder` of an account's data in one deployment. Callable from any
    thread.
    """

    def __init__(self, folder: Path, database: Database) -> None:
        self._folder = folder
        self._tasks = folder / "tasks"
        self._database = database
        self._lock = threading.Lock()
        self._measured: tuple[float, int] | None = None
        """Time and result of the last measurement."""
        self._tasks.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def bundles(self) -> Path:
        """The folder of kept tasks' bundles, by hash."""
        return self._folder / "bundles"

    def begin(self, task: int, bundle_hash: bytes) -> None:
        """Begin to keep a task, and note the hash of the bundle that it needs. A re-organisation may have given
        the number to another task, with another bundle. Raises OSError.
        """
        with self._lock:
            if self.bundle_of(task) != bundle_hash.hex():
                write_atomically(self._tasks / str(task) / _BUNDLE, bundle_hash.hex().encode())

    def store(self, task: int) -> BlobStore:
        """The store of a task's checkpoints."""
        return BlobStore(self._tasks / str(task) / "blobs")

    def has(self, task: int) -> bool:
        """Whether anything of a task is kept."""
        return (self._tasks / str(task)).is_dir()

    def bundle_of(self, task: int) -> str | None:
        """The hash of a kept task's bundle, in hexadecimal digits; None if there is none."""
        try:
            return (self._tasks / str(task) / _BUNDLE).read_text()
        except FileNotFoundError:
            return None

    def needs_bundle(self, bundle: str, but: int) -> bool:
        """Whether a kept task other than `but` needs a bundle."""
        return any(self.bundle_of(task) == bundle for task in self._kept() if task != but)

    def finished(self, now: int) -> list[tuple[int, int]]:
        """The kept tasks that have ended: they are over, or a re-organisation has taken them from this solver
        for good. Each is a pair (time, task), the earliest first. The time is the chain's time, in seconds,
        at which the end of the task was first noted. If it was not noted before, `now` is noted.
        """
        found = []
        for task in self._kept():
            row = self._database.task(task)
            if row is None or row.stage not in (Stage.OVER, Stage.REFUSED):
                continue
            path = self._tasks / str(task) / _OVER
            if not path.is_file():
                write_atomically(path, str(now).encode())
            found.append((int(path.read_text()), task))
        return sorted(found)

    def used(self) -> int:
        """Bytes that the account's data take, measured at most `MEASURED_SECONDS` ago."""
        with self._lock:
            if self._measured is None or time.monotonic() - self._measured[0] > MEASURED_SECONDS:
                self._measured = time.monotonic(), used([self._folder])
            return self._measured[1]

    def drop(self, task: int) -> None:
        """Delete the data of a finished task, and its bundle if no other task needs it."""
        with self._lock:
            remove(self._tasks / str(task))
            self._database.drop_checkpoints(task)
            self._prune_bundles()
            self._measured = None

    def tidy(self) -> None:
        """At the start: delete leftovers of a killed process. If an earlier release kept the checkpoints of
        all tasks in one store, give each task a folder. Raises OSError.
        """
        remove_rests(self._tasks)
        remove_rests(self._folder)
        former = self._folder / "blobs"
        if former.is_dir():
            self._split(former)
        for task in self._database.kept_tasks():
            row = self._database.task(task)
            if not self.has(task) and row is not None and row.stage is Stage.OVER:
                self._database.drop_checkpoints(task)
        with self._lock:
            self._prune_bundles()

    def _split(self, former: Path) -> None:
        """Move the shared store of an earlier release into the tasks' folders. The store stays while a task
        in it is not over, so that the earlier release can still be started again.
        """
        store, is_needed = BlobStore(former), False
        live = self._database.live(*LIVE)
        for task in self._database.kept_tasks():
            rows = self._database.checkpoints(task)
            is_needed |= task in live and store.has(rows[0].manifest)
            blobs = self._tasks / str(task) / "blobs"
            for row in rows:
                for blob in _blobs(store, row):
                    store.link(blob, blobs / blob[:2] / blob)
        if not is_needed:
            remove(former)

    def _prune_bundles(self) -> None:
        wanted = [self.bundle_of(task) for task in self._kept()]
        prune(self.bundles, [bundle for bundle in wanted if bundle is not None])

    def _kept(self) -> list[int]:
        return [int(path.name) for path in self._tasks.iterdir() if path.name.isdecimal()]


def _blobs(store: BlobStore, row: CheckpointRow) -> Iterable[str]:
    """The blobs of a checkpoint that exist; none if its manifest is damaged. If anything is missing, the
    checkpoint is computed again when it is needed.
    """
    try:
        stored = stored_tensors(store, row.manifest, row.root)
    except (CommitmentError, OSError):
        return ()
    return (row.manifest, *(tensor.blob for tensor in stored if store.has(tensor.blob)))
