"""Sends transactions of tasks beside the loop, so that one that is not mined delays nothing else.

A task is looked at while its transaction is in progress, because somebody else may advance it. A transaction that is
still due is not sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait

from solver.background import in_thread


class Sends:
    """Transactions by task and name, each waited for on its own thread. Used by one thread."""

    def __init__(self) -> None:
        self._running: dict[tuple[int, str], Future[object]] = {}

    def begin(self, task: int, what: str, send: Callable[[], object]) -> None:
        """Send, unless one of this name is `busy`."""
        if not self.busy(task, what):
            self._running[task, what] = in_thread(send)

    def busy(self, task: int, what: str) -> bool:
        """Whether it is in progress, or its end was not looked at yet."""
        return (task, what) in self._running

    @property
    def any(self) -> bool:
        """Whether one of them is busy."""
        return bool(self._running)

    def ended(self) -> list[tuple[int, str]]:
        """Those that ended and were not looked at yet."""
        return [key for key, running in self._running.items() if running.done()]

    def finish(self, task: int, what: str) -> None:
        """Take the end of a finished one: raises what it raised."""
        self._running.pop((task, what)).result()

    def close(self) -> None:
        """Wait for all that are in progress."""
        wait(self._running.values())
