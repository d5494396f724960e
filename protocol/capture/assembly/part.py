"""One part of a step program: a traced graph, the update that its gradients make, and when it acts."""

from __future__ import annotations

from dataclasses import dataclass

from protocol.capture.analysis.roles import Roles
from protocol.capture.optimisers.update import Update
from protocol.capture.streams import FIRST_OPERATION_STREAM, FIRST_UPDATE_STREAM, STREAMS_OF_A_PART
from protocol.capture.tracing.tracer import TracedStep
from protocol.program.step import METRIC


@dataclass(frozen=True)
class Part:
    """`rates` are names of constants, one table for each group of the optimiser. The part acts in each `every`-th step
    from step `first` on. `number` tells it from other parts of the step, `name` its metrics from theirs.
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
        """Whether it acts in every step."""
        return self.every == 1 and self.first == 0

    @property
    def measured(self) -> list[str]:
        """Names in the state of the loss and of the objective's metrics."""
        return [self.metric(name) for name in ("loss", *self.traced.metrics)]

    @property
    def metrics(self) -> list[str]:
        """Names in the state of all its metrics, the update's last."""
        return [*self.measured, *map(self.metric, self.update.metrics)]

    def metric(self, name: str) -> str:
        """The name of a metric in the state."""
        return f"{METRIC}{self.name}.{name}" if self.name else METRIC + name

    @property
    def streams(self) -> tuple[int, int]:
        """The first streams of its graph's and of its update's random numbers."""
        skipped = self.number * STREAMS_OF_A_PART
        return FIRST_OPERATION_STREAM + skipped, FIRST_UPDATE_STREAM + skipped
