"""Work that runs beside the node's loop: one job per key at a time, a bounded number in all, rests after failures.

So a game never waits for another game's receipt, nor a move for a replay. Jobs are idempotent: what a job did not
finish is decided anew, from the chain and the database, when it is offered again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue

FIRST_REST = 0.5


class _Job:
    """One piece of work; `done` is set when it has ended."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.done = threading.Event()
        self.error: Exception | None = None
        self._work = work

    def run(self) -> None:
        """Do the work, in a worker's thread."""
        try:
            self._work()
        except Exception as error:
            self.error = error
        finally:
            self.done.set()


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
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

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
        self._running[key] = _Job(work)
        if self.busy > len(self._threads):
            # Few threads that stay, for each holds a connection to the node. Daemons: an operator's second signal ends
            # them too.
            self._threads.append(threading.Thread(target=self._serve, daemon=True))
            self._threads[-1].start()
        self._queue.put(self._running[key])
        return True

    def collect(self) -> list[tuple[str, Exception]]:
        """Take the finished jobs away; the failures among them, whose keys now rest: twice as long each time."""
        now = self._clock()
        self._rests = {
            key: rest for key, rest in self._rests.items() if now < rest.until + self._longest_rest
        }
        failures = []
        for key, job in [(key, job) for key, job in self._running.items() if job.done.is_set()]:
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
            job.done.wait()

    def close(self) -> None:
        """Until no job runs and all threads have ended; nothing may be offered afterwards."""
        self.wait()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while (job := self._queue.get()) is not None:
            job.run()
