"""Room on the disk for bundles that are being fetched at the same time.

A fetch that runs alone may take all free space. Fetches at the same time must share it. Otherwise they could
together fill the disk, on which a node also keeps its journal and what it must defend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

from protocol.tasks.bundles.errors import NoRoomYet

Reserve = Callable[[int], None]
"""Reserves bytes of the disk before any of them is fetched. The new reservation replaces the fetch's earlier
one. Raises NoRoomYet.
"""


class Fetches:
    """Counts the bytes that running fetches may still write. Its methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._reserved: dict[object, int] = {}

    @property
    def bytes(self) -> int:
        """The bytes reserved by all running fetches. They count until the fetch ends, even when they have
        been written.
        """
        with self._lock:
            return sum(self._reserved.values())

    @contextmanager
    def fetch(self, room: Callable[[], int]) -> Iterator[Reserve]:
        """A context for one fetch. It gives the fetch's `Reserve`, and the reservation ends with the fetch.
        `room` returns the bytes that all fetches together may take. If no other fetch has reserved any bytes,
        a fetch may reserve any number of bytes; then only the caller's limits apply.
        """
        own = object()

        def reserve(count: int) -> None:
            with self._lock:
                self._reserved.pop(own, None)
                others = self.bytes
                if others and count and count > (left := room() - others):
                    raise NoRoomYet(
                        "disk",
                        expected=f"room for {count} bytes of a bundle beside those that are being fetched",
                        got=f"{max(0, left)} bytes",
                        remedy="none needed: it is fetched later; to fetch several at once, free some of the disk",
                    )
                self._reserved[own] = count

        try:
            yield reserve
        finally:
            with self._lock:
                self._reserved.pop(own, None)
