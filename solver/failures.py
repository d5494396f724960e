"""Confines a failure in one task or game: the failure is logged and counted, and the work is tried again
after a pause.

A peer, a bundle, a model or an answer of the chain may fail in unforeseen ways, and the stake of one task
must not depend on another task's data. A pause lasts as long as the failed work took, so slow failures leave
at least half of the time to other tasks. Of repeated failures, the first, second, fourth and so on are
logged. If this machine computes wrong bits, that is not the task's fault, and the error is raised.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from protocol.beacon.errors import NoRelay
from protocol.chain.errors import ChainError
from protocol.errors import AssayError
from protocol.execution.turns import Stopped
from protocol.execution.workers import WorkerFailed
from protocol.numerics.errors import SelfCheckError
from protocol.tasks.bundles import BundleUnavailable
from solver.metrics import Metrics

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

WRONG_BITS = (SelfCheckError, WorkerFailed)
"""After these errors no computation of this machine can be trusted."""
ELSEWHERE = (ChainError, BundleUnavailable, NoRelay)
"""Everyday failures of other machines, which are logged as warnings."""
QUIET_SECONDS = 600.0
"""If a pause is followed by more than this many seconds without a failure, the next failure counts as the
first again.
"""


class Failures:
    """Failures and pauses of tasks or games, by number. `kind` is the name for them in the log, such as
    "task"; `clock` returns seconds. Used by one thread.
    """

    def __init__(
        self,
        kind: str,
        metrics: Metrics,
        log: FilteringBoundLogger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kind = kind
        self._metrics = metrics
        self._log = log
        self._clock = clock
        self._rests_until: dict[int, float] = {}
        self._times: dict[int, int] = {}  # consecutive failures

    def rests(self, number: int) -> bool:
        """Whether a task or game pauses after a failure, and must not be tried yet."""
        return self._clock() < self._rests_until.get(number, 0.0)

    @contextmanager
    def kept(self, number: int, took: Callable[[], float] = lambda: 0.0, **about: object) -> Iterator[None]:
        """A context that catches and notes every error, except `Stopped` and the errors that mean wrong bits
        on this machine. These two kinds are raised.

        `took` returns the seconds that the failed work took in another thread.
        """
        began = self._clock()
        try:
            yield
        except (*WRONG_BITS, Stopped):
            raise
        except Exception as error:
            self.note(number, error, max(took(), self._clock() - began), **about)

    def note(self, number: int, error: Exception, took: float, **about: object) -> None:
        """Record an error that ended work after `took` seconds, and let the task or game pause for the same
        time.
        """
        now = self._clock()
        if now - self._rests_until.get(number, 0.0) > QUIET_SECONDS:
            self._times.pop(number, None)
        self._rests_until[number] = now + took
        self._metrics.failures.labels(self._kind, type(error).__name__).inc()
        times = self._times[number] = self._times.get(number, 0) + 1
        if times & (times - 1):  # not a power of two
            return
        log = self._log.warning if isinstance(error, ELSEWHERE) else self._log.error
        log(
            f"{self._kind} failed",
            **{self._kind: number, **about},
            error=f"{type(error).__name__}: {error}",
            times=times,
            rest=round(took, 1),
            exc_info=None if isinstance(error, AssayError) else error,  # a defect keeps its traceback
        )
