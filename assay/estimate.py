"""Shows how long replays will take: a progress bar at a terminal, otherwise one line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from protocol.node.progress_bar import progress_bar
from protocol.node.words import duration

WARM: Final = 2
"""Number of first steps that are not timed, because they compile and test kernels."""
TOLD_AFTER: Final = 5.0
"""The remaining time is shown once the timed steps have taken this many seconds."""


class Estimate:
    """Estimates the time for the remaining steps from the rate so far. `clock` returns seconds."""

    def __init__(self, steps: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._steps = steps
        self._clock = clock
        self._done = 0
        self._began = 0.0

    def step(self) -> None:
        """Count one finished step."""
        self._done += 1
        if self._done == WARM:
            self._began = self._clock()

    @property
    def measured(self) -> float:
        """Seconds that the timed steps took."""
        return self._clock() - self._began if self._done > WARM else 0.0

    @property
    def left(self) -> float | None:
        """Seconds for the remaining steps; None until a step was timed."""
        counted = self._done - WARM
        return self.measured / counted * (self._steps - self._done) if counted > 0 else None


class Progress:
    """A context manager that shows the progress of a run. If stderr is a terminal, it shows a bar there.
    Otherwise it calls `say` once with the remaining time, if the run takes long.
    """

    def __init__(self, steps: int, say: Callable[[str], None]) -> None:
        self._steps = steps
        self._say = say
        self._estimate = Estimate(steps)
        self._told = False
        self._bar: Any = (
            progress_bar("{task.description}", "steps", elapsed=True) if sys.stderr.isatty() else None
        )
        self._row: Any = None

    def step(self, *_state: object) -> None:
        """Count one finished step."""
        self._estimate.step()
        if self._bar is not None:
            self._bar.update(self._row, advance=1)
        elif not self._told and self._estimate.measured > TOLD_AFTER:
            self._told = True
            self._say(f"the rest takes about {duration(self._estimate.left or 0.0)} at the rate so far")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._row = self._bar.add_task("replaying", total=self._steps)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
