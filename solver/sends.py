"""Transactions of tasks beside the loop: a block that does not take one of them holds nothing else.

A task is looked at while its transaction is under way, for somebody else may move it on. What is due still is not sent
again.
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
        """Send, unless it is `busy`."""
        if not self.busy(task, what):
            self._running[task, what] = in_thread(send)

    def busy(self, task: int, what: str) -> bool:
        """Whether it is under way, or nobody has looked at its end."""
        return (task, what) in self._running

    @property
    def any(self) -> bool:
        """Whether that holds for one of them."""
        return bool(self._running)

    def ended(self) -> list[tuple[int, str]]:
        """Those whose end is to be looked at."""
        return [key for key, running in self._running.items() if running.done()]

    def finish(self, task: int, what: str) -> None:
        """Look at the end of one that has ended: raises what it raised."""
        self._running.pop((task, what)).result()

    def close(self) -> None:
        """Wait for all that is under way."""
        wait(self._running.values())
