"""The solver's bundles: fetched once, checked against the terms, kept in the solver's folder and served to
others.

A submitter may take its bundle offline once a solver has the task; the solver must then answer for every root
in the terms (dispute.md section 7). Until a task is won, its bundle is a candidate, which is deleted if the
task is lost. The bundle of a won task is kept (`task_folders`). If another party of this home folder already
has the bundle, it is linked, not fetched.
"""

from __future__ import annotations

import shutil
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.execution.loading import load_torch
from protocol.node.disk import remove, used
from protocol.tasks.bundles import (
    BundleError,
    NoRoomYet,
    TensorsTooLarge,
    cached_bundle,
    link_bundle,
    prune,
)
from protocol.tasks.bundles.write import MANIFEST
from protocol.tasks.task import Terms
from solver.context import Context
from solver.database import Stage

if TYPE_CHECKING:
    from protocol.tasks.bundles import Bundle

REFETCH_SECONDS = 60.0
"""A kept bundle that is damaged is fetched again. This is the time limit for that, in seconds."""


def task_bundle(context: Context, terms: Terms, seconds: float = REFETCH_SECONDS) -> Bundle:
    """The task's bundle, from disk or, within `seconds`, from the submitter. Raises BundleError, OSError."""
    load_torch()
    kept, candidate = _folders(context, terms)
    if (candidate / MANIFEST).is_file() and not (kept / MANIFEST).is_file():
        _take_over(candidate, kept)
    link_bundle(context.home.bundle_folders, context.bundles, terms.bundle_hash)
    return cached_bundle(context.bundles, terms, context.limits(seconds))


def is_here(context: Context, terms: Terms) -> bool:
    """Whether the task's complete bundle is in one of this solver's folders. The manifest is written last, so
    a bundle with a manifest is complete.
    """
    return any((folder / MANIFEST).is_file() for folder in _folders(context, terms))


def fetch_candidate(context: Context, terms: Terms, seconds: float) -> None:
    """Fetch the bundle of a task that may be bid on, check it, and estimate its program's costs. Raises
    OSError, MemoryError, ChainError, and, if the task cannot be bid on, BundleError. The BundleError is
    NoRoomYet if the bundle does not fit on the disk beside other fetches, or beside other candidates that may
    soon make room. Otherwise, it is TensorsTooLarge if the bundle does not fit on the disk or exceeds the
    limits on all bundles (`Context.limits`).
    """
    load_torch()
    from protocol.execution.replay import Work

    limits = context.limits(seconds)
    kept, candidate = _folders(context, terms)
    if not (kept / MANIFEST).is_file():
        link_bundle(context.home.bundle_folders, context.candidates, terms.bundle_hash)
        here = (candidate / MANIFEST).is_file()
        # What earlier attempts have fetched is not free any more, and is not fetched again.
        room = limits.total_bytes if here else context.free_disk() + used([candidate])
        room, passing = min(limits.total_bytes, room), _others_lie_here(context, terms)
        try:
            with context.fetches.fetch(context.free_disk) as reserve:
                granted = replace(limits, total_bytes=room, reserve=reserve)
                found = cached_bundle(context.candidates, terms, granted)
            context.expect(Work.of(0, found), terms.bundle_hash, found.held)
            return
        except (BundleError, OSError) as error:
            # Another task with the same bundle may have been won meanwhile: then the bundle was moved.
            if not (kept / MANIFEST).is_file():
                if isinstance(error, TensorsTooLarge) and room < limits.total_bytes and passing:
                    raise _no_room_yet(room) from error
                raise
    found = cached_bundle(context.bundles, terms, limits)
    context.expect(Work.of(0, found), terms.bundle_hash, found.held)


class Candidates:
    """Keeps track of which task wants which candidate bundle. Unwanted candidates are deleted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._wanted: dict[int, str] = {}

    def want(self, task: int, bundle_hash: bytes) -> None:
        """Record that a task wants a bundle."""
        with self._lock:
            self._wanted[task] = bundle_hash.hex()

    def drop(self, task: int) -> None:
        """The task will not be trained here: delete its bundle unless another task wants it. Callable from
        any thread.
        """
        with self._lock:
            bundle = self._wanted.pop(task, None)
            if bundle is not None and bundle not in self._wanted.values():
                remove(self._folder / bundle)

    def sweep(self) -> None:
        """Delete bundles that an earlier process left and that no task wants."""
        with self._lock:
            prune(self._folder, self._wanted.values())


def _folders(context: Context, terms: Terms) -> tuple[Path, Path]:
    """The folder where a bundle is kept once its task is won, and the folder where it is kept as a candidate."""
    name = terms.bundle_hash.hex()
    return context.bundles / name, context.candidates / name


def _others_lie_here(context: Context, terms: Terms) -> bool:
    """Whether the folder of candidates has a bundle that may soon make room: it is neither for these terms
    nor needed by a standing bid or a won task. Soon, such a bundle is deleted or its task is bid on.
    """
    others = context.engaged(Stage.BID, Stage.TRAINING, Stage.SUBMITTED).values()
    needed = {terms.bundle_hash.hex(), *(other.bundle_hash.hex() for other in others)}
    return any(folder.name not in needed for folder in context.candidates.glob("*"))


def _no_room_yet(room: int) -> NoRoomYet:
    return NoRoomYet(
        "disk",
        expected="room for a bundle beside other candidates",
        got=f"{room} bytes",
        remedy="none needed: it is fetched later; to fetch several at once, free some of the disk",
    )


def _take_over(candidate: Path, kept: Path) -> None:
    """Move a candidate to the kept bundles in one rename, so that a reader finds all files in one of the two
    folders. If the folder `kept` already has files, because another party is fetching the bundle, move the
    files one by one, with the manifest last, so that a bundle with a manifest is complete.
    """
    with suppress(OSError):  # if there are files already
        kept.parent.mkdir(parents=True, exist_ok=True)
        candidate.rename(kept)
        return
    for path in sorted(candidate.rglob("*"), key=lambda path: path.name == MANIFEST):
        if path.is_file():
            place = kept / path.relative_to(candidate)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)
    shutil.rmtree(candidate, ignore_errors=True)
