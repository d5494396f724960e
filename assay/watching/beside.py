"""Runs work that waits for strangers' servers, in daemon threads beside the loop of `command`. Only one piece
of each kind runs at a time.

Failed work may begin again after a pause, which doubles with each failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

REST, LONGEST_REST = 2.0, 300.0
"""Seconds of the first pause after a failure, and of the longest pause."""
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
    before: int = 0
    """The failures before the newest piece of work."""
    rests_until: float = _NEVER


class Beside:
    """Runs pieces of work, one of each kind at a time. Only one thread may use it."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Outcome] = SimpleQueue()
        self._kinds: dict[str, _Kind] = {}

    def failures(self, kind: str) -> int:
        """How often work of this kind failed since it last succeeded."""
        return self._of(kind).failures

    def may_begin(self, kind: str) -> bool:
        """Whether work of this kind may begin: none is running, and any pause after a failure is over."""
        found = self._of(kind)
        return not found.running and time.monotonic() >= found.rests_until

    def hurry(self, kind: str) -> None:
        """End the pause after failed work of this kind. Called when there is news."""
        self._of(kind).rests_until = _NEVER

    def spoil(self, kind: str) -> None:
        """Count the newest piece of work of this kind, which had succeeded, as failed: its result could not
        be used.
        """
        self._failed(self._of(kind))

    def begin(self, kind: str, work: Callable[[], Any]) -> None:
        """Begin work of this kind in a thread."""
        self._of(kind).running = True

        def run() -> None:
            try:
                outcome = Outcome(kind, work())
            except Exception as error:
                outcome = Outcome(kind, error=error)
            self._queue.put(outcome)

        Thread(target=run, name=f"watch-{kind}", daemon=True).start()

    def wait(self, seconds: float) -> Outcome | None:
        """The next outcome; None if there is none within `seconds`."""
        try:
            outcome = self._queue.get(timeout=max(0.0, seconds))
        except Empty:
            return None
        found = self._of(outcome.kind)
        found.running, found.before = False, found.failures
        if outcome.error is None:
            found.failures, found.rests_until = 0, _NEVER
        else:
            self._failed(found)
        return outcome

    @staticmethod
    def _failed(found: _Kind) -> None:
        found.rests_until = time.monotonic() + min(LONGEST_REST, REST * 2**found.before)
        found.failures = found.before + 1

    def _of(self, kind: str) -> _Kind:
        return self._kinds.setdefault(kind, _Kind())
