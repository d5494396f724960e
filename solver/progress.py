"""How training is shown: a bar for people at a terminal, a log line per quarter of the run everywhere else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

from protocol.node.logs import get
from protocol.node.progress_bar import progress_bar
from protocol.program.step import State, metrics


class Progress:
    """A context: the bar is drawn on stderr while it lasts."""

    def __init__(self, bar: bool) -> None:
        self._log = get("solver.training")
        self._bar: Any = None
        self._rows: dict[int, Any] = {}
        self._totals: dict[int, int] = {}
        if bar:
            self._bar = progress_bar("task {task.fields[number]}", "{task.fields[metrics]}")

    def begin(self, task: int, steps: int, done: int) -> None:
        """A training of `steps` steps, of which `done` are behind it."""
        self._totals[task] = steps
        if self._bar is not None:
            self._rows[task] = self._bar.add_task("", total=steps, completed=done, number=task, metrics="")
        self._log.info("training", task=task, steps=steps, done=done)

    def step(self, task: int, number: int, state: State) -> None:
        """Step `number` gave `state`."""
        total = self._totals[task]
        if self._bar is not None:
            self._bar.update(self._rows[task], completed=number, metrics=_shown(state))
        elif number % -(-total // 4) == 0 or number == total:
            self._log.info(
                "trained",
                task=task,
                step=number,
                of=total,
                **{name: round(value, 6) for name, value in metrics(state).items()},
            )

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
    return "  ".join(f"{name} {value:.4f}" for name, value in metrics(state).items())
