"""What the solver keeps of each task on disk: a folder with its checkpoints and the name of its bundle.

What says that a task is kept is its folder, which goes at once (`protocol.node.disk.remove`); its rows follow, and what
a killed process has left of either goes at the next start. The row that says how the task ended stays. Bundles lie in
the account's own folder too, and go with the last task that needs them: other parties of this home have their own names
for the same files (`link_bundle`).
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
"""Names of the file that names the bundle of a task, and of that which says when the task was over."""

MEASURED_SECONDS = 30.0
"""A folder of many checkpoints is read in tenths of a second."""


class TaskFolders:
    """Below the `folder` of an account's data in one deployment. Any thread may ask."""

    def __init__(self, folder: Path, database: Database) -> None:
        self._folder = folder
        self._tasks = folder / "tasks"
        self._database = database
        self._lock = threading.Lock()
        self._measured: tuple[float, int] | None = None
        """When, and what was found."""
        self._tasks.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def bundles(self) -> Path:
        """Bundles of kept tasks, by hash."""
        return self._folder / "bundles"

    def begin(self, task: int, bundle_hash: bytes) -> None:
        """Note that a task needs its bundle. Raises OSError."""
        with self._lock:
            path = self._tasks / str(task) / _BUNDLE
            if not path.is_file():
                write_atomically(path, bundle_hash.hex().encode())

    def store(self, task: int) -> BlobStore:
        """Where a task's checkpoints are kept."""
        return BlobStore(self._tasks / str(task) / "blobs")

    def has(self, task: int) -> bool:
        """Whether anything of a task is kept."""
        return (self._tasks / str(task)).is_dir()

    def bundle_of(self, task: int) -> str | None:
        """The hash of a kept task's bundle, in hexadecimal digits."""
        try:
            return (self._tasks / str(task) / _BUNDLE).read_text()
        except FileNotFoundError:
            return None

    def needs_bundle(self, bundle: str, but: int) -> bool:
        """Whether another task needs a bundle."""
        return any(self.bundle_of(task) == bundle for task in self._kept() if task != but)

    def finished(self, now: int) -> list[tuple[int, int]]:
        """(when it was over in seconds of the chain's time, task) of kept tasks that are over, the earliest first. Of
        those of which that is not noted yet, it is noted to be `now`.
        """
        found = []
        for task in self._kept():
            row = self._database.task(task)
            if row is None or row.stage is not Stage.OVER:
                continue
            path = self._tasks / str(task) / _OVER
            if not path.is_file():
                write_atomically(path, str(now).encode())
            found.append((int(path.read_text()), task))
        return sorted(found)

    def used(self) -> int:
        """Bytes that the account's data take, as they were at most `MEASURED_SECONDS` ago."""
        with self._lock:
            if self._measured is None or time.monotonic() - self._measured[0] > MEASURED_SECONDS:
                self._measured = time.monotonic(), used([self._folder])
            return self._measured[1]

    def drop(self, task: int) -> None:
        """Delete what is kept of a task that is over, and its bundle if no other task needs that."""
        with self._lock:
            remove(self._tasks / str(task))
            self._database.drop_checkpoints(task)
            self._prune_bundles()
            self._measured = None

    def tidy(self) -> None:
        """At the start: delete what a killed process has left, and give the tasks of an earlier release, whose
        checkpoints lay in one store, a folder each. Raises OSError.
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
        """The one store stays while a task of it is not over: the earlier release finds it if it is taken up again."""
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
    """The blobs of a checkpoint; none of a damaged one, which is computed again when it is needed."""
    try:
        stored = stored_tensors(store, row.manifest, row.root)
    except (CommitmentError, OSError):
        return ()
    return (row.manifest, *(tensor.blob for tensor in stored if store.has(tensor.blob)))
