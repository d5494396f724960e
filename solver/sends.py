"""Sends transactions of tasks in the background, so that an unmined transaction delays nothing else.

A task is still looked at while its transaction is being sent, because another party may advance it. A
transaction that is already being sent is not sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait

from solver.background import in_thread


class Sends:
    """Transactions by task and name, each waited for on its own thread. All methods are called by one
    thread.
    """

    def __init__(self) -> None:
        self._running: dict[tuple[int, str], Future[object]] = {}

    def begin(self, task: int, what: str, send: Callable[[], object]) -> None:
        """Send a transaction, unless the task's transaction of this name is `busy`."""
        if not self.busy(task, what):
            self._running[task, what] = in_thread(send)

    def busy(self, task: int, what: str) -> bool:
        """Whether a transaction is being sent, or has ended and has not been collected yet (`finish`)."""
        return (task, what) in self._running

    @property
    def any(self) -> bool:
        """Whether any transaction is busy."""
        return bool(self._running)

    def ended(self) -> list[tuple[int, str]]:
        """The transactions that have ended and have not been collected yet."""
        return [key for key, running in self._running.items() if running.done()]

    def finish(self, task: int, what: str) -> None:
        """Collect an ended transaction. Raises its error, if any."""
        self._running.pop((task, what)).result()

    def close(self) -> None:
        """Wait for all transactions that are being sent."""
        wait(self._running.values())
