"""Runs work beside the node's loop: one job per key at a time, on a limited number of workers, with pauses
after failures.

So a game never waits for another game's receipt, nor a move for a replay. A job whose deadline is earlier
than that of every running job starts even if no worker is free. An error in a job counts against its task:
the task pauses in this kind of work, and other tasks come first. Jobs are idempotent: when unfinished work is
offered again, it is decided again from the chain and the database.
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
"""Each further failure of a task doubles its pause; doubling ends at this many seconds."""
IDLE = 60.0
"""Seconds after which a thread without work ends."""
GRACE = 20
"""Head start in seconds for the account that gains most from a call that anyone may make."""

Sent = TypeVar("Sent")


class Job(NamedTuple):
    """A piece of work. `what` names it within its task. If `task` is None, the job is the node's own, such as
    a withdrawal. The computing, or the sending, must be done by `until`, which is infinite if the job can
    wait for all other work.
    """

    task: int | None
    what: str
    work: Callable[[], None]
    until: float = math.inf

    @property
    def key(self) -> tuple[int | None, str]:
        """Identifies the job."""
        return self.task, self.what


def finds_worker(job: Job, running: Iterable[Job], workers: int) -> bool:
    """Whether a job may begin beside the running ones: if a worker is free, or if the job is due before all
    running ones. So urgent work never waits for the end of a replay. But each job that begins without a free
    worker holds one more replay in memory.
    """
    others = list(running)
    return len(others) < workers or all(job.until < other.until for other in others)


def first_due(jobs: Iterable[Job]) -> Job | None:
    """The job that a worker takes next: the one with the earliest deadline or, of several, the one offered
    first. None if there are no jobs.
    """
    return min(jobs, key=lambda job: job.until, default=None)


def unless_refused(log: FilteringBoundLogger, task: int, what: str, call: Callable[[], Sent]) -> Sent | None:
    """The result of a call that anyone may make; None if the contract refuses it, because another party
    was faster. Raises other ChainErrors.
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
    """The pause of a task after failures: its length, its end, and the seconds that all failures took."""

    seconds: float = 0.0
    until: float = 0.0
    lost: float = 0.0


class Rests:
    """The pauses of tasks, in seconds. The first pause is as long as the failed work took, but at least
    `FIRST_REST`. Each further pause is the longer of two times: the time that the failed work took, and twice
    the last pause (at most `DOUBLED`). No pause is longer than `longest`.

    The seconds that a task's failures took are kept until `forget`.
    """

    def __init__(self, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest = longest
        self._clock = clock
        self._rests: dict[int | None, _Rest] = {}

    def resting(self, task: int | None) -> bool:
        """Whether a task pauses now."""
        return self._clock() < self._of(task).until

    def lost(self, task: int | None) -> float:
        """Seconds that a task's failures took in all."""
        return self._of(task).lost

    def failed(self, task: int | None, took: float) -> None:
        """Start a pause after work that failed after `took` seconds."""
        last = self._of(task)
        doubled = FIRST_REST if not last.seconds else min(2 * last.seconds, DOUBLED)
        seconds = min(max(took, doubled), self._longest)
        self._rests[task] = _Rest(seconds, self._clock() + seconds, last.lost + took)

    def succeeded(self, task: int | None) -> None:
        """End the pause. The next failure counts as the first again."""
        if task in self._rests:
            self._rests[task] = _Rest(lost=self._rests[task].lost)

    def forget(self, task: int | None) -> None:
        """Drop the pause and the lost seconds of a task that is over."""
        self._rests.pop(task, None)

    def _of(self, task: int | None) -> _Rest:
        return self._rests.get(task, _NONE)


_NONE = _Rest()


Due = Callable[[float], AbstractContextManager[None]]
"""Sets the deadline of what this thread computes inside the context (`Turns.due`)."""


def at_once(_until: float) -> AbstractContextManager[None]:
    """Default `Due`, which sets no deadline."""
    return nullcontext()


class _Running:
    """A job in the queue or being run by a worker; `done` is set when it has ended."""

    def __init__(self, job: Job, clock: Callable[[], float], due: Due) -> None:
        self.job = job
        self._due = due
        self.done = threading.Event()
        self.error: Exception | None = None
        self.seconds = 0.0
        self._clock = clock

    def run(self) -> None:
        """Run the job, and note its error and the seconds that it took."""
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
    """Runs at most `workers` jobs side by side, in addition to urgent ones (`finds_worker`). A task whose job
    failed pauses for up to `longest_rest` seconds. If `queued`, a job that finds no worker is kept waiting. A
    worker that becomes free takes a waiting job at once, before the loop looks at the chain again. The next
    `collect` drops the jobs that still wait. Only the loop's thread calls the public methods.
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
        """`idle` is the number of seconds without work after which a thread ends."""
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
        """The number of jobs that have begun and have not been collected yet."""
        return len(self._running)

    @property
    def full(self) -> bool:
        """Whether at least `workers` jobs are busy."""
        return self.busy >= self._workers

    def __contains__(self, key: tuple[int | None, str]) -> bool:
        return key in self._running

    def offer(self, job: Job) -> bool:
        """Start a job and return True. Returns False if the job's task pauses, if a job with the same key has
        begun and has not been collected yet, or if no worker is found (`finds_worker`).
        """
        with self._lock:
            if job.key in self._running or self.rests.resting(job.task):
                return False
            if not finds_worker(job, self._active(), self._workers):
                if self._queued:
                    self._waiting[job.key] = job
                return False
            self._queue.put(self._begun(job))
            if len(self._active()) > len(self._threads):
                # Threads stay while there is work. They are few, as each holds a connection to the node, and
                # daemons, so that an operator's second signal ends them too.
                self._threads.append(threading.Thread(target=self._serve, daemon=True))
                self._threads[-1].start()
        return True

    def collect(self) -> list[Failure]:
        """Remove the finished jobs, and return the failed ones, whose tasks now pause."""
        failures = []
        with self._lock:
            self._waiting.clear()  # it is decided again which jobs are due
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
        """Let each thread end when its job ends; do not wait for it. Nothing may be offered afterwards."""
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
        """Whether the calling thread must end, because the queue is empty. If so, the thread is removed from
        the list of threads.
        """
        with self._lock:
            idle = self._queue.empty()
            if idle:
                self._threads.remove(threading.current_thread())
            return idle

    def _next(self) -> _Running | None:
        """Begin the most urgent of the waiting jobs. Returns None if none waits, or if no worker is free. A
        waiting job is passed over if a job of its task has failed and has not been collected yet.
        """
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
