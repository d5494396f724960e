"""Deletes the data of finished tasks `hold_days` after their end, or earlier if the disk limit requires it.

Data that may still be needed is never deleted: a task is over only when nothing on the chain can revive it
(`SolverNode._work_on`), so no game, jury, claim or re-organisation can follow. The task's row, which says
how it ended, stays.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future

from protocol.errors import AssayError
from solver.background import in_thread
from solver.context import Context
from solver.publishing import Publisher

PAUSE = 60.0
"""Seconds between two checks of the disk. Deletions are due after days, so they can wait a minute."""


class Retention:
    """Deletes the data in the background. The node's loop only starts each check of the disk (`tick`). After
    a failure, it tries again at the next check.
    """

    def __init__(self, context: Context, publisher: Publisher) -> None:
        self._context = context
        self._publisher = publisher
        self._next = 0.0
        self._looking: Future[None] | None = None
        self._is_over_limit = False

    @property
    def busy(self) -> bool:
        """Whether a check of the disk, or a deletion, is running."""
        return self._looking is not None and not self._looking.done()

    def soon(self) -> None:
        """Look at the disk in the next `tick`, because a task is over."""
        self._next = 0.0

    def tick(self, now: int) -> None:
        """Start a check of the disk, if it is time; `now` is the chain's time."""
        if self.busy or time.monotonic() < self._next:
            return
        if self._looking is not None and (error := self._looking.exception()) is not None:
            defect = None if isinstance(error, AssayError | OSError) else error
            self._context.log.warning(
                "not deleted", error=f"{type(error).__name__}: {error}", exc_info=defect
            )
        self._next = time.monotonic() + PAUSE
        self._looking = in_thread(lambda: self._look(now))

    def _look(self, now: int) -> None:
        for task, why in self._due(now):
            self._context.catalog.forget(task)
            self._publisher.withdraw(task)
            self._context.folders.drop(task)
            self._context.log.info("deleted what was kept", task=task, reason=why)

    def _due(self, now: int) -> Iterator[tuple[int, str]]:
        """The tasks to delete, each with the reason. The caller deletes each before requesting the next."""
        folders, settings = self._context.folders, self._context.settings
        finished = folders.finished(now)
        for over, task in finished:
            if over + settings.hold_seconds < now:
                yield task, f"over for {settings.hold_days:g} days (hold_days)"
            elif settings.disk_limit is not None and (taken := folders.used()) > settings.disk_limit:
                yield task, f"{taken} bytes are taken, disk_limit_gib allows {settings.disk_limit}"
        self._warn(folders.used() if settings.disk_limit is not None else 0)

    def _warn(self, taken: int) -> None:
        """Warn once if tasks that cannot be deleted take more than the limit."""
        limit = self._context.settings.disk_limit
        over = limit is not None and taken > limit
        if over and not self._is_over_limit:
            self._context.log.warning("over the disk limit: no new task", bytes=taken, limit=limit)
        self._is_over_limit = over
