"""Facts from the events of open tasks, kept by task. A re-organisation may undo them, so they count only
if the chain confirms them. If the chain shows something that no event has said, the chain's node has left out
events, and all of them are read again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from protocol.chain.bound_contract import BoundContract
from protocol.chain.client import Client
from protocol.chain.events import Follower, first_block


class Told(Protocol):
    """The known facts of one task."""

    follower: Follower
    """The follower that reads the task's events."""


Known = TypeVar("Known", bound=Told)


class TaskEvents(Generic[Known]):
    """The known facts of open tasks, from the first draw on. Only the loop's thread notes events. `_lock`
    protects writes and reads, and is never held during a query to the chain.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks: dict[int, Known] = {}
        self._lock = threading.Lock()

    def forget(self, task: int) -> None:
        """Drop the known facts of a task that is over."""
        with self._lock:
            self._tasks.pop(task, None)

    def _known(
        self, task: int, drawn_at: int, new: Callable[[Follower], Known], *contracts: BoundContract
    ) -> Known:
        """The known facts of a task. The first call for a task makes them: it calls `new` with a follower of
        the task's events in these contracts. The follower has not read any events at that moment. Raises
        ChainError.
        """
        if task not in self._tasks:
            known = new(self._follower(task, drawn_at, *contracts))
            with self._lock:
                self._tasks[task] = known
        return self._tasks[task]

    def _follower(self, task: int, drawn_at: int, *contracts: BoundContract) -> Follower:
        """A new follower of the task's events in these contracts. It has read no events. Raises ChainError."""
        connection = self._client.connection
        first = first_block(connection, self._client.deployment.block, drawn_at)
        addresses = {calls.address: calls.contract for calls in contracts}
        return Follower(connection, addresses, first, topics=[None, task.to_bytes(32)])
