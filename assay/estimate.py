"""How long replays take: a bar for people at a terminal, otherwise a line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self

from protocol.node.progress_bar import progress_bar
from protocol.node.words import duration

WARM: Final = 2
"""Steps that are not counted: the first ones compile and test kernels."""
TOLD_AFTER: Final = 5.0
"""Seconds of counted steps before a rate is shown."""


class Estimate:
    """Seconds that the remaining steps take, by the rate so far. `clock` gives seconds."""

    def __init__(self, steps: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._steps = steps
        self._clock = clock
        self._done = 0
        self._began = 0.0

    def step(self) -> None:
        """One more step is done."""
        self._done += 1
        if self._done == WARM:
            self._began = self._clock()

    @property
    def measured(self) -> float:
        """Seconds that the counted steps took."""
        return self._clock() - self._began if self._done > WARM else 0.0

    @property
    def left(self) -> float | None:
        """Seconds for the remaining steps; None before a step was counted."""
        counted = self._done - WARM
        return self.measured / counted * (self._steps - self._done) if counted > 0 else None


class Progress:
    """A context: steps of a run, drawn as a bar on stderr while it lasts if that is a terminal. Otherwise `say` is
    told once how long the rest takes, if that is long.
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
        """One step is done."""
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
