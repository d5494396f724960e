"""What the events of open tasks tell, kept by task. Valid only as long as the chain confirms it: a re-organisation
may undo it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from protocol.chain.bound_contract import BoundContract
from protocol.chain.client import Client
from protocol.chain.events import Follower, first_block


class Told(Protocol):
    """What is known of one task."""

    @property
    def follower(self) -> Follower:
        """Returns the task's further events."""


Known = TypeVar("Known", bound=Told)


class TaskEvents(Generic[Known]):
    """By task, from its first draw on. One thread, the loop's, notes events; `_lock` protects that and every read,
    and is never held during a query to the chain.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tasks: dict[int, Known] = {}
        self._lock = threading.Lock()

    def forget(self, task: int) -> None:
        """The task is over."""
        with self._lock:
            self._tasks.pop(task, None)

    def _known(
        self, task: int, drawn_at: int, new: Callable[[Follower], Known], *contracts: BoundContract
    ) -> Known:
        """What is known of a task, at first nothing: `new` follows its events in these contracts. Raises ChainError."""
        if task not in self._tasks:
            connection = self._client.connection
            first = first_block(connection, self._client.deployment.block, drawn_at)
            addresses = {calls.address: calls.contract for calls in contracts}
            known = new(Follower(connection, addresses, first, topics=[None, task.to_bytes(32)]))
            with self._lock:
                self._tasks[task] = known
        return self._tasks[task]
