"""The solver's bundles: fetched once, verified against the terms, kept in the solver's own folder and served on.

A submitter may take its own bundle down once a solver has the task; the solver then answers for every root in the
terms (dispute.md section 7). Before a task is won its bundle is a candidate, deleted when the task does not need it;
afterwards it is with those of kept tasks (`task_folders`). A bundle that another party of this home has is not
fetched.
"""

from __future__ import annotations

import shutil
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.execution.loading import load_torch
from protocol.node.disk import remove
from protocol.tasks.bundles import BundleError, cached_bundle, link_bundle, prune
from protocol.tasks.bundles.write import MANIFEST
from protocol.tasks.task import Terms
from solver.context import Context

if TYPE_CHECKING:
    from protocol.tasks.bundles import Bundle

REFETCH_SECONDS = 60.0
"""Time for refetching a kept bundle that is damaged; meanwhile nothing else is done."""


def task_bundle(context: Context, terms: Terms, seconds: float = REFETCH_SECONDS) -> Bundle:
    """The task's bundle, from disk or, within some seconds, from the submitter. Raises BundleError."""
    load_torch()
    kept, candidate = _folders(context, terms)
    if (candidate / MANIFEST).is_file() and not (kept / MANIFEST).is_file():
        _take_over(candidate, kept)
    link_bundle(context.home.bundle_folders, context.bundles, terms.bundle_hash)
    return cached_bundle(context.bundles, terms, context.limits(seconds))


def is_here(context: Context, terms: Terms) -> bool:
    """Whether the task's bundle is on this machine: its manifest is written last."""
    return any((folder / MANIFEST).is_file() for folder in _folders(context, terms))


def fetch_candidate(context: Context, terms: Terms, seconds: float) -> None:
    """Fetch the bundle of a task that may be bid on, check it, and estimate its program's costs. Raises BundleError
    where it cannot be bid on, also for a bundle that does not fit on the disk; and OSError, MemoryError.
    """
    load_torch()
    from protocol.execution.replay import Work

    limits = context.limits(seconds)
    kept, _ = _folders(context, terms)
    if not (kept / MANIFEST).is_file():
        link_bundle(context.home.bundle_folders, context.candidates, terms.bundle_hash)
        room = min(limits.total_bytes, context.free_disk())
        try:
            found = cached_bundle(context.candidates, terms, replace(limits, total_bytes=room))
            context.expect(Work.of(0, found))
            return
        except (BundleError, OSError):
            # Another task of the same bundle may have been won meanwhile: then its files are kept now.
            if not (kept / MANIFEST).is_file():
                raise
    context.expect(Work.of(0, cached_bundle(context.bundles, terms, limits)))


class Candidates:
    """Which tasks want which candidates. Candidates that no task wants any more are deleted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._wanted: dict[int, str] = {}

    def want(self, task: int, bundle_hash: bytes) -> None:
        """Keep a bundle for a task."""
        with self._lock:
            self._wanted[task] = bundle_hash.hex()

    def drop(self, task: int) -> None:
        """The task will not be trained here. Callable from any thread."""
        with self._lock:
            bundle = self._wanted.pop(task, None)
            if bundle is not None and bundle not in self._wanted.values():
                remove(self._folder / bundle)

    def sweep(self) -> None:
        """Delete what an earlier process left and no task wants."""
        with self._lock:
            prune(self._folder, self._wanted.values())


def _folders(context: Context, terms: Terms) -> tuple[Path, Path]:
    """Where a bundle is kept, and where it lies as a candidate."""
    name = terms.bundle_hash.hex()
    return context.bundles / name, context.candidates / name


def _take_over(candidate: Path, kept: Path) -> None:
    """Move a candidate in one rename: a reader that misses a file in one place finds all in the other. Where another
    party is fetching the same bundle, move it file by file, the manifest last, so that a named bundle is complete.
    """
    with suppress(OSError):  # where there are files already
        kept.parent.mkdir(parents=True, exist_ok=True)
        candidate.rename(kept)
        return
    for path in sorted(candidate.rglob("*"), key=lambda path: path.name == MANIFEST):
        if path.is_file():
            place = kept / path.relative_to(candidate)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)
    shutil.rmtree(candidate, ignore_errors=True)
