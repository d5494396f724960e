"""What goes wrong in one task, or in one game, stays there: logged, counted, tried again after a rest.

A peer, a bundle, an answer of the chain or a model may fail in ways that nobody foresaw, and one stake must not depend
on another task's data. The rest lasts as long as the failure took, so what fails slowly leaves at least half of the
time to all others. What fails again and again is logged the first time, the second, the fourth, and so on. A machine
that computes wrong bits is no task's failure and passes.
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
"""After these nothing that this machine computes may be believed."""
ELSEWHERE = (ChainError, BundleUnavailable, NoRelay)
"""Another machine's failures, as they happen every day: warnings."""
QUIET_SECONDS = 600.0
"""Without a failure: the next one is the first again."""


class Failures:
    """Failures of tasks or games, by number. `kind` names them in the log: "task"; `clock` gives seconds. Used by one
    thread."""

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
        self._times: dict[int, int] = {}  # that it failed, one soon after the other

    def rests(self, number: int) -> bool:
        """Whether it failed a moment ago and is not to be tried yet."""
        return self._clock() < self._rests_until.get(number, 0.0)

    @contextmanager
    def kept(self, number: int, took: Callable[[], float] = lambda: 0.0, **about: object) -> Iterator[None]:
        """Keep every error inside, but for a machine that computes wrong bits, and the end of the solver.

        `took` is asked for the seconds that the failure took elsewhere.
        """
        began = self._clock()
        try:
            yield
        except (*WRONG_BITS, Stopped):
            raise
        except Exception as error:
            self.note(number, error, max(took(), self._clock() - began), **about)

    def note(self, number: int, error: Exception, took: float, **about: object) -> None:
        """An error that this work ended with after some seconds."""
        now = self._clock()
        if now - self._rests_until.get(number, 0.0) > QUIET_SECONDS:
            self._times.pop(number, None)
        self._rests_until[number] = now + took
        self._metrics.failures.labels(self._kind, type(error).__name__).inc()
        times = self._times[number] = self._times.get(number, 0) + 1
        if times & (times - 1):  # no power of two
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
