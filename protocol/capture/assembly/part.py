"""One part of a step program: a traced graph, its update, and the steps in which the part acts."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.capture.analysis.roles import Roles
from protocol.capture.optimisers.update import Update
from protocol.capture.streams import FIRST_OPERATION_STREAM, FIRST_UPDATE_STREAM, STREAMS_OF_A_PART
from protocol.capture.tracing.tracer import TracedStep
from protocol.program.step import METRIC


@dataclass(frozen=True)
class Part:
    """One part of a step program. For each group of the optimiser, `rates` holds the name of the constant
    that is the group's table of learning rates. The part acts in the steps `first`, `first + every`, `first +
    2 * every`, and so on. `number` is the part's position within the step; `name` prefixes its metrics.
    """

    traced: TracedStep
    roles: Roles
    update: Update
    rates: tuple[str, ...]
    number: int = 0
    name: str = ""
    every: int = 1
    first: int = 0

    @property
    def always(self) -> bool:
        """Whether the part acts in every step."""
        return self.every == 1 and self.first == 0

    @property
    def measured(self) -> list[str]:
        """State names of the loss and of the objective's metrics."""
        return [self.metric(name) for name in ("loss", *self.traced.metrics)]

    @property
    def metrics(self) -> list[str]:
        """State names of all metrics; those of the update come last."""
        return [*self.measured, *map(self.metric, self.update.metrics)]

    def metric(self, name: str) -> str:
        """The state name of a metric."""
        return f"{METRIC}{self.name}.{name}" if self.name else METRIC + name

    @property
    def streams(self) -> tuple[int, int]:
        """The number of the graph's first random-number stream, and the number of the update's first one."""
        skipped = self.number * STREAMS_OF_A_PART
        return FIRST_OPERATION_STREAM + skipped, FIRST_UPDATE_STREAM + skipped
