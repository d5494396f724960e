"""Shows the progress of training: as a bar at a terminal, otherwise as one log line per quarter of the run.

The bar shows the time left at the present rate, and the time until the deadline.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from protocol.node.logs import get
from protocol.node.progress_bar import progress_bar

if TYPE_CHECKING:
    from protocol.program.step import State


@dataclass
class _Run:
    """One training: its steps, how many are done, and when the first step in this process ended."""

    steps: int
    done: int
    waited: Callable[[], float]
    began_at: int = 0
    began: float | None = None

    def step(self, number: int) -> None:
        self.done = number
        if self.began is None:  # the first step compiles and tests kernels, so it is not timed
            self.began, self.began_at = self._now(), number

    def seconds_needed(self) -> float | None:
        if self.began is None or self.done <= self.began_at:
            return None
        return (self._now() - self.began) / (self.done - self.began_at) * (self.steps - self.done)

    def _now(self) -> float:
        """A clock that stops while other trainings have priority."""
        return time.monotonic() - self.waited()


class Progress:
    """A context manager that shows the progress of all trainings. The bar is on stderr."""

    def __init__(self, bar: bool) -> None:
        self._log = get("solver.training")
        self._bar: Any = None
        self._rows: dict[int, Any] = {}
        self._runs: dict[int, _Run] = {}
        if bar:
            self._bar = progress_bar(
                "task {task.fields[number]} {task.fields[name]}", "{task.fields[metrics]}", deadline=True
            )

    def begin(
        self, task: int, steps: int, done: int, name: str = "", waited: Callable[[], float] = lambda: 0.0
    ) -> None:
        """Show a training of `steps` steps, of which `done` are done; `name` is the submitter's name for the
        task. `waited` returns the seconds so far during which other trainings had priority.
        """
        self._runs[task] = _Run(steps, done, waited)
        if self._bar is not None and task in self._rows:
            self._bar.update(self._rows[task], completed=done)
        elif self._bar is not None:
            self._rows[task] = self._bar.add_task(
                "", total=steps, completed=done, number=task, name=name, metrics=""
            )
        self._log.info("training", task=task, name=name, steps=steps, done=done)

    def step(self, task: int, number: int, state: State) -> None:
        """Record that step `number` gave `state`."""
        run = self._runs.get(task)
        if run is None:  # the training was given up during this step
            return
        run.step(number)
        total = run.steps
        row = self._rows.get(task)
        if row is not None:
            self._bar.update(row, completed=number, metrics=_shown(state))
        elif number % -(-total // 4) == 0 or number == total:
            self._log.info(
                "trained",
                task=task,
                step=number,
                of=total,
                **{name: round(value, 6) for name, value in _metrics(state).items()},
            )

    def due(self, task: int, seconds: float) -> float | None:
        """Record that the deadline is `seconds` from now. Returns how many seconds the remaining steps take
        at the rate so far; None if that is not known yet.
        """
        run = self._runs.get(task)
        if run is None:
            return None
        row = self._rows.get(task)
        if row is not None:
            self._bar.update(row, due=time.monotonic() + seconds)
        return run.seconds_needed()

    def steps(self, task: int) -> tuple[int, int, float | None] | None:
        """The number of finished steps of a running training, the number of all its steps, and the seconds
        that the remaining steps take (None if not known yet). None if the task is not in training.
        """
        run = self._runs.get(task)
        return None if run is None else (run.done, run.steps, run.seconds_needed())

    def end(self, task: int) -> None:
        """Record that the training of a task is over or given up. If it has a bar, hide the bar and log a
        line.
        """
        run = self._runs.pop(task, None)
        row = self._rows.pop(task, None)
        if row is not None and run is not None:
            shown = self._bar.tasks[self._bar.task_ids.index(row)].fields["metrics"]
            # Hidden, not removed, because a running step may still update it.
            self._bar.update(row, due=None, visible=False)
            self._bar.stop_task(row)
            event = "trained" if run.done == run.steps else "training ended early"
            self._log.info(event, task=task, step=run.done, of=run.steps, metrics=shown)

    def __enter__(self) -> Self:
        if self._bar is not None:
            import structlog

            self._bar.start()
            # The bar has replaced stderr by a stream that prints above it; new loggers use that stream.
            structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _shown(state: State) -> str:
    return "  ".join(f"{name} {value:.4f}" for name, value in _metrics(state).items())


def _metrics(state: State) -> dict[str, float]:
    from protocol.program.step import metrics

    return metrics(state)
