"""Deletes the results of finished tasks after `hold_days`, or earlier if the disk limit requires it. At the
start, deletes leftovers of killed processes.

The data for replays, games, juries and answers to looks are kept until a task is over for good
(`VerifierNode._over`), however large they are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.node.disk import remove, remove_rests, room, used
from verifier.database import Database

if TYPE_CHECKING:
    from verifier.context import Context

MEASURED_SECONDS = 30.0
"""Seconds between measurements: a folder of many states takes tenths of a second to read."""


class Disk:
    """The bytes that a node's `folder` takes, compared with a `limit` if there is one. Callable from any
    thread.
    """

    def __init__(self, folder: Path, limit: int | None) -> None:
        self._folder = folder
        self._limit = limit
        self._lock = threading.Lock()
        self._measured: tuple[float, int] | None = None

    def room(self, spare: int) -> int:
        """How many more bytes may be stored for other parties, so that two conditions still hold: `spare`
        bytes of the disk, or a tenth of it if that is less, are free, and the limit, if there is one, is
        kept. Negative if a condition does not hold now. Raises OSError.
        """
        free = room(self._folder, spare)
        return free if self._limit is None else min(free, self._limit - self.used())

    @property
    def is_over_limit(self) -> bool:
        """Whether the folder exceeds the limit."""
        return self._limit is not None and self.used() > self._limit

    def used(self) -> int:
        """Bytes in use, measured at most `MEASURED_SECONDS` ago and not before the last `changed`."""
        with self._lock:
            if self._measured is None or time.monotonic() - self._measured[0] > MEASURED_SECONDS:
                self._measured = time.monotonic(), used([self._folder])
            return self._measured[1]

    def changed(self) -> None:
        """Measure again at the next use, because something was deleted."""
        with self._lock:
            self._measured = None


def tidy(folder: Path, database: Database) -> None:
    """Delete leftovers of killed processes: half-deleted folders, and data of tasks that are over for good,
    except results that are still held.
    """
    for name in ("tasks", "items", "results"):
        remove_rests(folder / name)
        for path in (folder / name).glob("[0-9]*"):
            task = int(path.name)
            is_held = name == "results" and database.is_held(task)
            if database.is_finished(task) and not is_held:
                remove(path)


def release(context: Context, now: int) -> None:
    """Delete results that need not be held any more; `now` is the chain's time."""
    for task, why in _due(context, now):
        context.results.drop(task)
        context.database.let_go(task)
        context.disk.changed()
        context.log.info("deleted the result", task=task, reason=why)


def _due(context: Context, now: int) -> Iterator[tuple[int, str]]:
    """The tasks whose results are to be deleted, each with the reason. The caller deletes each result before
    requesting the next.
    """
    settings = context.settings
    for task in context.database.held_before(now):
        yield task, f"its time is over (hold_days = {settings.hold_days:g})"
    for task in context.database.held_after_end() if context.disk.is_over_limit else ():
        if context.disk.is_over_limit:
            yield task, f"{context.disk.used()} bytes are taken, disk_limit_gib allows {settings.disk_limit}"
