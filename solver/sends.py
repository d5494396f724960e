"""Transactions of tasks beside the loop: a block that does not take one task's holds no other task.

Which task has one under way is looked at before the task is: so what is decided next comes from a state that has it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait

from solver.background import in_thread


class Sends:
    """One transaction a task at a time, each waited for on a thread of its own. Used by one thread."""

    def __init__(self) -> None:
        self._running: dict[int, Future[object]] = {}

    def begin(self, task: int, send: Callable[[], object]) -> None:
        """Send for a task that is not `busy`."""
        assert task not in self._running, "one transaction of a task at a time"
        self._running[task] = in_thread(send)

    def busy(self, task: int) -> bool:
        """Whether a transaction of the task is under way, or its end was not looked at."""
        return task in self._running

    @property
    def any(self) -> bool:
        """Whether that holds for some task."""
        return bool(self._running)

    def ended(self) -> list[int]:
        """Tasks whose end is to be looked at."""
        return [task for task, running in self._running.items() if running.done()]

    def finish(self, task: int) -> None:
        """Look at the end of one that has ended: raises what it raised."""
        self._running.pop(task).result()

    def close(self) -> None:
        """Wait for all that is under way."""
        wait(self._running.values())
