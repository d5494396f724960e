"""What the verifier keeps on disk of tasks that are over goes: results after `hold_days`, or before that where the disk
limit asks for it; what a killed process has left of others at the start.

What replays, games, juries and answers to looks need stays until a task is over for good (`VerifierNode._over`),
however much it is.
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
"""A folder of many states is read in tenths of a second."""


class Disk:
    """What a node's `folder` takes, of a `limit` in bytes if there is one. Any thread may ask."""

    def __init__(self, folder: Path, limit: int | None) -> None:
        self._folder = folder
        self._limit = limit
        self._lock = threading.Lock()
        self._measured: tuple[float, int] | None = None

    def room(self, spare: int) -> int:
        """Bytes that may be taken for others, beside what is spared. Raises OSError."""
        free = room(self._folder, spare)
        return free if self._limit is None else min(free, self._limit - self.used())

    @property
    def is_over_limit(self) -> bool:
        """Whether more is taken than the limit."""
        return self._limit is not None and self.used() > self._limit

    def used(self) -> int:
        """Bytes that are taken, as they were at most `MEASURED_SECONDS` ago, or after the last `changed`."""
        with self._lock:
            if self._measured is None or time.monotonic() - self._measured[0] > MEASURED_SECONDS:
                self._measured = time.monotonic(), used([self._folder])
            return self._measured[1]

    def changed(self) -> None:
        """Something was deleted."""
        with self._lock:
            self._measured = None


def tidy(folder: Path, database: Database) -> None:
    """Delete what killed processes have left: of folders that they were deleting, and of tasks that nothing can happen
    with any more.
    """
    for name in ("tasks", "items", "results"):
        remove_rests(folder / name)
        for path in (folder / name).glob("[0-9]*"):
            task = int(path.name)
            is_held = name == "results" and database.is_held(task)
            if database.is_finished(task) and not is_held:
                remove(path)


def release(context: Context, now: int) -> None:
    """Release results that need not be held any more; `now` is the chain's."""
    for task, why in _due(context, now):
        context.results.drop(task)
        context.database.let_go(task)
        context.disk.changed()
        context.log.info("deleted the result", task=task, reason=why)


def _due(context: Context, now: int) -> Iterator[tuple[int, str]]:
    """Tasks whose results go, with the reason; each is gone when the next one is asked for."""
    settings = context.settings
    for task in context.database.held_before(now):
        yield task, f"its time is over (hold_days = {settings.hold_days:g})"
    for task in context.database.held_after_end() if context.disk.is_over_limit else ():
        if context.disk.is_over_limit:
            yield task, f"{context.disk.used()} bytes are taken, disk_limit_gib allows {settings.disk_limit}"
