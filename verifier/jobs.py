"""Work that runs beside the node's loop: one job per key at a time, a bounded number in all, pauses after failures.

So a game never waits for another game's receipt, nor a move for a replay. Work that is due before everything running
starts even without a free worker. An error in a job counts against its task: the task pauses in this kind of work,
and the others come first. Jobs are idempotent: what a job did not finish is decided again, from the chain and the
database, when it is offered again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from protocol.chain.errors import Reverted

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

FIRST_REST = 0.5
DOUBLED = 30.0
"""Limit in seconds up to which each failure of a task doubles its pause."""
IDLE = 60.0
"""Seconds that a thread without work stays alive."""
GRACE = 20
"""Head start in seconds for the account that gains most by a call that anyone may make."""

Sent = TypeVar("Sent")


class Job(NamedTuple):
    """A piece of work: `what` it is about, unique within its task. Without a task it is the node's own, such as a
    withdrawal. Its computing is due by `until`; infinite where it can wait for all work that is due.
    """

    task: int | None
    what: str
    work: Callable[[], None]
    until: float = math.inf

    @property
    def key(self) -> tuple[int | None, str]:
        """Identifies it among others."""
        return self.task, self.what


def finds_worker(job: Job, running: Iterable[Job], workers: int) -> bool:
    """Whether a job may begin beside the running ones: while a worker is free, or without one if it is due before all
    of them. So urgent work never waits for the end of a replay; each such job holds one more replay in memory.
    """
    others = list(running)
    return len(others) < workers or all(job.until < other.until for other in others)


def first_due(jobs: Iterable[Job]) -> Job | None:
    """The job that a worker takes next; at equal deadlines the one offered first."""
    return min(jobs, key=lambda job: job.until, default=None)


def unless_refused(log: FilteringBoundLogger, task: int, what: str, call: Callable[[], Sent]) -> Sent | None:
    """The result of a call that anyone may make; None where the contract refuses it, because somebody else was
    faster. Raises ChainError otherwise.
    """
    try:
        return call()
    except Reverted as error:
        log.debug("refused by the contract", what=what, task=task, error=error.name)
        return None


class Failure(NamedTuple):
    """A job that raised `error` after `seconds`."""

    task: int | None
    what: str
    error: Exception
    seconds: float


@dataclass(frozen=True, slots=True)
class _Rest:
    """How long a failed task pauses, and until when; how many seconds its failures took in all."""

    seconds: float = 0.0
    until: float = 0.0
    lost: float = 0.0


class Rests:
    """Pauses of tasks: each as long as the failure took, and twice the last one up to `DOUBLED`, but at most
    `longest`.

    In seconds. `forget` ends them; what a task has cost is kept while the task lasts.
    """

    def __init__(self, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest = longest
        self._clock = clock
        self._rests: dict[int | None, _Rest] = {}

    def resting(self, task: int | None) -> bool:
        """Whether others come first."""
        return self._clock() < self._of(task).until

    def lost(self, task: int | None) -> float:
        """Seconds that its failures took."""
        return self._of(task).lost

    def failed(self, task: int | None, took: float) -> None:
        """Start a pause now."""
        last = self._of(task)
        doubled = FIRST_REST if not last.seconds else min(2 * last.seconds, DOUBLED)
        seconds = min(max(took, doubled), self._longest)
        self._rests[task] = _Rest(seconds, self._clock() + seconds, last.lost + took)

    def succeeded(self, task: int | None) -> None:
        """The next failure counts as the first again."""
        if task in self._rests:
            self._rests[task] = _Rest(lost=self._rests[task].lost)

    def forget(self, task: int | None) -> None:
        """The task is over."""
        self._rests.pop(task, None)

    def _of(self, task: int | None) -> _Rest:
        return self._rests.get(task, _NONE)


_NONE = _Rest()


Due = Callable[[float], AbstractContextManager[None]]
"""The deadline of what a thread computes meanwhile (`Turns.due`)."""


def at_once(_until: float) -> AbstractContextManager[None]:
    """It can wait for everything."""
    return nullcontext()


class _Running:
    """A job in the queue or in a worker's hands; `done` is set when it has ended."""

    def __init__(self, job: Job, clock: Callable[[], float], due: Due) -> None:
        self.job = job
        self._due = due
        self.done = threading.Event()
        self.error: Exception | None = None
        self.seconds = 0.0
        self._clock = clock

    def run(self) -> None:
        """At most `workers` jobs side by side, except urgent ones; failed tasks pause up to `longest_rest` seconds.
        With `queued` a free worker takes a job that found none since the last `collect`, without waiting for the next
        look. For the loop's thread.
        """
        started = self._clock()
        try:
            with self._due(self.job.until):
                self.job.work()
        except Exception as error:
            self.error = error
        finally:
            self.seconds = self._clock() - started
            self.done.set()


class Jobs:
    """At most `workers` jobs side by side, but for what is due before them all; who failed rests up to `longest_rest`
    seconds. With `queued` a worker that is free takes what found none since the last `collect`, and does not wait for
    the next look. For the loop's thread.
    """

    def __init__(
        self,
        workers: int,
        longest_rest: float,
        clock: Callable[[], float] = time.monotonic,
        due: Due = at_once,
        *,
        queued: bool = False,
        idle: float = IDLE,
    ) -> None:
        """`idle` are the seconds without work after which a thread ends."""
        self.rests = Rests(longest_rest, clock)
        self._workers = workers
        self._clock = clock
        self._due = due
        self._queued = queued
        self._idle = idle
        self._lock = threading.Lock()
        self._running: dict[tuple[int | None, str], _Running] = {}
        self._waiting: dict[tuple[int | None, str], Job] = {}
        self._queue: SimpleQueue[_Running | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    @property
    def busy(self) -> int:
        """Jobs that run."""
        return len(self._running)

    @property
    def full(self) -> bool:
        """Start a job, unless one of its key runs, its task pauses, or no worker is free (`finds_worker`); whether it
        was started.
        """
        return self.busy >= self._workers

    def __contains__(self, key: tuple[int | None, str]) -> bool:
        return key in self._running

    def offer(self, job: Job) -> bool:
        """Remove the finished jobs and return the failed ones, whose tasks now pause."""
        with self._lock:
            if job.key in self._running or self.rests.resting(job.task):
                return False
            if not finds_worker(job, self._active(), self._workers):
                if self._queued:
                    self._waiting[job.key] = job
                return False
            self._queue.put(self._begun(job))
            if len(self._active()) > len(self._threads):
                # Few threads, for each holds a connection to the node: they stay while there is work. Daemons: an
                # operator's second signal ends them too.
                self._threads.append(threading.Thread(target=self._serve, daemon=True))
                self._threads[-1].start()
        return True

    def collect(self) -> list[Failure]:
        """Take the finished jobs away; the failures among them, whose tasks now rest."""
        failures = []
        with self._lock:
            self._waiting.clear()  # what is due is decided again
            ended = [running for running in self._running.values() if running.done.is_set()]
            for running in ended:
                del self._running[running.job.key]
        for running in ended:
            job, error, seconds = running.job, running.error, running.seconds
            if error is None:
                self.rests.succeeded(job.task)
            else:
                self.rests.failed(job.task, seconds)
                failures.append(Failure(job.task, job.what, error, seconds))
        return failures

    def wait(self) -> None:
        """Wait until no job runs."""
        with self._lock:
            self._waiting.clear()
            running = list(self._running.values())
        for one in running:
            one.done.wait()

    def abandon(self) -> None:
        """Let each thread end with its job, without waiting; nothing may be offered afterwards."""
        with self._lock:
            for _ in self._threads:
                self._queue.put(None)

    def close(self) -> None:
        """Wait until no job runs and all threads have ended; nothing may be offered afterwards."""
        self.wait()
        with self._lock:
            threads = list(self._threads)
        self.abandon()
        for thread in threads:
            thread.join()

    def _serve(self) -> None:
        while True:
            try:
                running = self._queue.get(timeout=self._idle)
            except Empty:
                if self._ends():
                    return
                continue
            if running is None:
                return
            while running is not None:
                running.run()
                running = self._next()

    def _ends(self) -> bool:
        """Whether the calling thread must end, because it had no work for long."""
        with self._lock:
            idle = self._queue.empty()
            if idle:
                self._threads.remove(threading.current_thread())
            return idle

    def _next(self) -> _Running | None:
        """Jobs that found no worker before, except those of tasks that have failed since and must pause."""
        with self._lock:
            failed = {running.job.task for running in self._running.values() if running.error is not None}
            if len(self._active()) >= self._workers:
                return None
            job = first_due(job for job in self._waiting.values() if job.task not in failed)
            return None if job is None else self._begun(job)

    def _active(self) -> list[Job]:
        return [running.job for running in self._running.values() if not running.done.is_set()]

    def _begun(self, job: Job) -> _Running:
        self._waiting.pop(job.key, None)
        running = self._running[job.key] = _Running(job, self._clock, self._due)
        return running
