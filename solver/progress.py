"""How training is shown: a bar for people at a terminal, a log line per quarter of the run everywhere else.

The bar shows the time that the rest takes at the present rate, and the time until the deadline.
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
    """One training: its steps, how many are done, and when the first one that this process ran had ended."""

    steps: int
    done: int
    waited: Callable[[], float]
    began_at: int = 0
    began: float | None = None

    def step(self, number: int) -> None:
        self.done = number
        if self.began is None:  # the first step compiles and tests kernels: the rate is that of the others
            self.began, self.began_at = self._now(), number

    def seconds_needed(self) -> float | None:
        if self.began is None or self.done <= self.began_at:
            return None
        return (self._now() - self.began) / (self.done - self.began_at) * (self.steps - self.done)

    def _now(self) -> float:
        """A clock that stops while other trainings go first."""
        return time.monotonic() - self.waited()


class Progress:
    """A context: the bar is drawn on stderr while it lasts."""

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
        """A training of `steps` steps, of which `done` are done; `name` is the submitter's. `waited` are the seconds
        so far during which other trainings went first.
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
        """Step `number` gave `state`."""
        run = self._runs.get(task)
        if run is None:  # given up while this step ran
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
        """There are that many seconds until the deadline: the seconds that the rest takes at the rate so far, None
        while that is not known.
        """
        run = self._runs.get(task)
        if run is None:
            return None
        row = self._rows.get(task)
        if row is not None:
            self._bar.update(row, due=time.monotonic() + seconds)
        return run.seconds_needed()

    def steps(self, task: int) -> tuple[int, int, float | None] | None:
        """Steps done and to do of a running training, and the seconds that the rest takes, as far as is known."""
        run = self._runs.get(task)
        return None if run is None else (run.done, run.steps, run.seconds_needed())

    def end(self, task: int) -> None:
        """The training of a task is over or given up: its bar disappears, and a line of the log stays."""
        run = self._runs.pop(task, None)
        row = self._rows.pop(task, None)
        if row is not None and run is not None:
            shown = self._bar.tasks[self._bar.task_ids.index(row)].fields["metrics"]
            # Hidden, not removed: a step that runs still may show itself again.
            self._bar.update(row, due=None, visible=False)
            self._bar.stop_task(row)
            event = "trained" if run.done == run.steps else "training ended early"
            self._log.info(event, task=task, step=run.done, of=run.steps, metrics=shown)

    def __enter__(self) -> Self:
        if self._bar is not None:
            import structlog

            self._bar.start()
            # The bar has put a stream in stderr's place that prints above it; loggers not yet used take that one.
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
