"""Work that runs beside the node's loop: one job per key at a time, a bounded number in all, rests after failures.

So a game never waits for another game's receipt, nor a move for a replay. Jobs are idempotent: what a job did not
finish is decided anew, from the chain and the database, when it is offered again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

FIRST_REST = 0.5


class _Job:
    """One piece of work in a thread of its own. The thread is a daemon: an operator's second signal ends it too."""

    def __init__(self, key: str, work: Callable[[], None]) -> None:
        self.error: Exception | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, name=key, daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether the work has ended."""
        return not self._thread.is_alive()

    def wait(self) -> None:
        """Until the work has ended."""
        self._thread.join()

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            self.error = error


@dataclass(frozen=True, slots=True)
class _Rest:
    """How long a key that failed rests, and until when."""

    seconds: float
    until: float


class Jobs:
    """At most `workers` jobs side by side; what failed rests up to `longest_rest` seconds. For the loop's thread."""

    def __init__(
        self, workers: int, longest_rest: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._workers = workers
        self._longest_rest = longest_rest
        self._clock = clock
        self._running: dict[str, _Job] = {}
        self._rests: dict[str, _Rest] = {}

    @property
    def busy(self) -> int:
        """Jobs that run."""
        return len(self._running)

    @property
    def full(self) -> bool:
        """Whether all workers are busy."""
        return self.busy >= self._workers

    def __contains__(self, key: str) -> bool:
        return key in self._running

    def offer(self, key: str, work: Callable[[], None]) -> bool:
        """Start a job, unless one of its key runs or rests, or all workers are busy; whether it was started."""
        rest = self._rests.get(key)
        resting = rest is not None and self._clock() < rest.until
        if key in self._running or resting or self.full:
            return False
        self._running[key] = _Job(key, work)
        return True

    def collect(self) -> list[tuple[str, Exception]]:
        """Take the finished jobs away; the failures among them, whose keys now rest: twice as long each time."""
        now = self._clock()
        self._rests = {
            key: rest for key, rest in self._rests.items() if now < rest.until + self._longest_rest
        }
        failures = []
        for key, job in [(key, job) for key, job in self._running.items() if job.done]:
            del self._running[key]
            if job.error is None:
                self._rests.pop(key, None)
                continue
            last = self._rests.get(key)
            seconds = FIRST_REST if last is None else min(2 * last.seconds, self._longest_rest)
            self._rests[key] = _Rest(seconds, now + seconds)
            failures.append((key, job.error))
        return failures

    def wait(self) -> None:
        """Until no job runs."""
        for job in self._running.values():
            job.wait()
