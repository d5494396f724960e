"""Work beside the loop, on strangers' servers: one piece of each kind at a time, in threads that keep no process alive.

What failed is begun again after a rest, which doubles each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

REST, LONGEST_REST = 2.0, 300.0
"""Seconds before a second try, and at most."""
_NEVER: Final = float("-inf")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a piece of work: its result, or its error."""

    kind: str
    result: Any = None
    error: Exception | None = None


@dataclass
class _Kind:
    running: bool = False
    failures: int = 0
    rests_until: float = _NEVER


class Beside:
    """Pieces of work by their kinds. Used by one thread."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Outcome] = SimpleQueue()
        self._kinds: dict[str, _Kind] = {}

    def failures(self, kind: str) -> int:
        """How often it failed since it last succeeded."""
        return self._of(kind).failures

    def may_begin(self, kind: str) -> bool:
        """Whether none of this kind is running, or paused after a failure."""
        found = self._of(kind)
        return not found.running and time.monotonic() >= found.rests_until

    def hurry(self, kind: str) -> None:
        """There is news: end the pause."""
        self._of(kind).rests_until = _NEVER

    def begin(self, kind: str, work: Callable[[], Any]) -> None:
        """Begin it in a thread."""
        self._of(kind).running = True

        def run() -> None:
            try:
                outcome = Outcome(kind, work())
            except Exception as error:
                outcome = Outcome(kind, error=error)
            self._queue.put(outcome)

        Thread(target=run, name=f"watch-{kind}", daemon=True).start()

    def wait(self, seconds: float) -> Outcome | None:
        """The next end of a piece of work within some seconds."""
        try:
            outcome = self._queue.get(timeout=max(0.0, seconds))
        except Empty:
            return None
        found = self._of(outcome.kind)
        found.running = False
        if outcome.error is None:
            found.failures, found.rests_until = 0, _NEVER
        else:
            found.rests_until = time.monotonic() + min(LONGEST_REST, REST * 2**found.failures)
            found.failures += 1
        return outcome

    def _of(self, kind: str) -> _Kind:
        return self._kinds.setdefault(kind, _Kind())
