"""Writes the answers of the solver's server as files to a public bucket or folder, so that a node behind NAT
needs no open port.

Below, this bucket or folder is called the place. A file's name in the place is its path in `solver.server`,
so clients use the place like a server. The place has the bundles, the committed roots, and the groups of
tensors of committed checkpoints. Replays, digests and results need no more than that. The place lacks the
answers about the inside of a segment, which a server computes on request; the parties of a game demand these
on-chain (docs/spec/dispute.md section 6).

A task's roots are written after the tensors under them. So the roots in the place tell a restarted process
how far the process before it came, and no reader finds a root whose state is missing.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from protocol.commitments.hashing import HASH_BYTES
from protocol.tasks.bundles.write import MANIFEST
from solver.background import in_thread
from solver.context import Context
from solver.failures import Failures
from solver.public_place import PublicPlace

if TYPE_CHECKING:
    from solver.run_store import RunStore


class Publisher:
    """Publishes run stores in the background, one task at a time. Does nothing without a place. `see` and
    `tick` are called by the loop's thread, `withdraw` by any thread.
    """

    def __init__(self, context: Context, place: PublicPlace | None) -> None:
        self._context = context
        self._place = place
        self._failures = Failures("publishing", context.metrics, context.log)
        self._run_stores: dict[int, RunStore] = {}
        self._done: dict[int, int] = {}
        """By task: the number of leaves of the largest published tree, or 0 if so far only the bundle is
        published.
        """
        self._running: tuple[int, Future[int], float] | None = None
        self._writing = threading.Lock()

    @property
    def pending(self) -> bool:
        """Whether at least one task can be published now. Such a task has a bundle or committed checkpoints
        that are not published yet, and is not paused after a failed attempt to publish it.
        """
        run_stores = list(self._run_stores.items())
        return any(self._is_due(one) and not self._failures.rests(task) for task, one in run_stores)

    def see(self, run_store: RunStore) -> None:
        """Publish a task's bundle, what the task has committed, and what it commits later."""
        if self._place is not None:
            self._run_stores[run_store.task] = run_store

    def tick(self) -> None:
        """Begin to write the next task, if nothing is being written."""
        if self._running is not None:
            task, writing, began = self._running
            if not writing.done():
                return
            self._running = None
            with self._failures.kept(task, lambda: time.monotonic() - began):
                self._done[task] = writing.result()
        for task, run_store in list(self._run_stores.items()):
            if self._is_due(run_store) and not self._failures.rests(task):
                self._running = task, in_thread(partial(self._publish, run_store)), time.monotonic()
                return

    def withdraw(self, task: int) -> None:
        """Delete the published files of a finished task, and its bundle if no other kept task has it. Raises
        PublicPlaceError.
        """
        self._run_stores.pop(task, None)
        if self._place is None:
            return
        with self._writing:
            self._done.pop(task, None)
            self._place.remove(f"tasks/{task}")
            bundle = self._context.folders.bundle_of(task)
            if bundle is not None and not self._context.folders.needs_bundle(bundle, task):
                self._place.remove(f"bundles/{bundle}")

    def _is_due(self, run_store: RunStore) -> bool:
        return self._done.get(run_store.task, -1) < run_store.committed

    def _publish(self, run_store: RunStore) -> int:
        """Write the missing files. Returns how many roots are published; 0 if the task was withdrawn. Raises
        PublicPlaceError, RunStoreError, OSError.
        """
        with self._writing:
            return self._write(run_store) if run_store.task in self._run_stores else 0

    def _write(self, run_store: RunStore) -> int:
        assert self._place is not None
        place, task = self._place, run_store.task
        if task not in self._done:
            self._publish_bundle(place, task)
        roots = run_store.roots(run_store.committed)
        done = self._done.get(task) or _common(place.read(f"tasks/{task}/segments"), roots)
        for number in range(done, len(roots)):
            for group in range(len(run_store.groups)):
                place.write(
                    f"tasks/{task}/checkpoints/{number}/groups/{group}", run_store.group(number, group)
                )
        if done < len(roots):
            place.write(f"tasks/{task}/segments", b"".join(roots))
            self._context.log.info("published", task=task, checkpoints=len(roots))
        return len(roots)

    def _publish_bundle(self, place: PublicPlace, task: int) -> None:
        bundle = self._context.folders.bundle_of(task)
        assert bundle is not None, "an assignment has noted it"
        folder = self._context.bundles / bundle
        manifest = (folder / MANIFEST).read_bytes()
        if place.read(f"bundles/{bundle}/{MANIFEST}") == manifest:
            return
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != MANIFEST and not path.name.startswith("."):
                place.copy(path, f"bundles/{bundle}/{path.relative_to(folder)}")
        place.write(f"bundles/{bundle}/{MANIFEST}", manifest)  # last, so that a named bundle is complete


def _common(published: bytes | None, roots: list[bytes]) -> int:
    """How many of `roots` are already published. This is 0 if the place has the roots of another run, for
    example on another chain. If later roots were lost here and are computed again, the place may have more
    roots than `roots` has; then all of `roots` are published.
    """
    own, there = b"".join(roots), published or b""
    shorter = min(len(own), len(there))
    return shorter // HASH_BYTES if own[:shorter] == there[:shorter] else 0
