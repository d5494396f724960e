"""Reads the metrics of a task's committed segments, if the solver serves them and they match the
commitment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.errors import MetricsError
from assay.watching.curve import Point, shown_metric, sparkline, wanted
from assay.watching.metrics import Committed, metric_tensors, read_manifest, read_points
from protocol.chain.client import Client
from protocol.chain.views import TaskView
from protocol.node.addresses import parsed
from protocol.node.home import Home
from protocol.tasks.bundles import Limits
from protocol.tasks.task import Terms


@dataclass(frozen=True, slots=True)
class Read:
    """The metrics that were read, and the number of re-organisations before the reading began."""

    rewinds: int
    points: Sequence[Point]


class Losses:
    """The checked metrics of one task. Metrics of an abandoned branch of the chain are dropped."""

    def __init__(self, client: Client, home: Home, limits: Limits, terms: Terms) -> None:
        self._client, self._home, self._limits, self._terms = client, home, limits, terms
        self._points: dict[int, Point] = {}
        self._tensors: dict[str, int] | None = None
        self._rewinds = 0

    def missing(self, view: TaskView) -> list[int]:
        """Committed checkpoints whose metrics should be shown but have not been read yet."""
        if self._tensors == {}:
            return []
        return [i for i in wanted(view.size - 1, self._terms.segments) if i not in self._points]

    def reading(self, view: TaskView, checkpoints: Sequence[int]) -> Callable[[], Read]:
        """A function that reads the metrics of some checkpoints from the solver's server. It may run in any
        thread, but only one at a time. It raises MetricsError, BundleError, ChainError.
        """
        rewinds = self._rewinds
        return lambda: Read(rewinds, self._read(view, checkpoints))

    def _read(self, view: TaskView, checkpoints: Sequence[int]) -> list[Point]:
        endpoint = parsed(self._client.market.endpoint_of(view.solver))
        if endpoint is None:
            raise MetricsError("metrics", expected="a solver that says where it serves", got="no address")
        if self._tensors is None:
            copy = endpoint / f"bundles/{self._terms.bundle_hash.hex()}"
            self._tensors = metric_tensors(read_manifest(self._home, self._terms, [copy], self._limits))
        if not self._tensors:
            return []
        base, committed = endpoint / f"tasks/{view.task}", Committed(view.root, view.size)
        return read_points(base, committed, self._terms, self._tensors, checkpoints, self._limits)

    def keep(self, read: Read) -> Sequence[Point]:
        """Add metrics that were read and checked, unless the chain was re-organised since the reading began.
        Returns the metrics that were added.
        """
        read_now = read.points if read.rewinds == self._rewinds else ()
        kept = [point for point in read_now if point.segment not in self._points]
        self._points |= {point.segment: point for point in kept}
        return kept

    def rewind(self) -> None:
        """Drop all metrics after a re-organisation of the chain, so that they are read again: they may belong
        to an abandoned branch.
        """
        self._points = {}
        self._rewinds += 1

    @property
    def points(self) -> Sequence[Point]:
        """All metrics that were read, in the order of the steps."""
        return [self._points[i] for i in sorted(self._points)]

    def curve(self, width: int = 40) -> str:
        """One line that shows all metrics that were read; empty if there are none."""
        points = self.points
        name = shown_metric(points[-1]) if points else None
        if name is None:
            return ""
        values = [point.values[name] for point in points]
        return f"{name} {sparkline(values, width)} {values[-1]:.6g} after segment {points[-1].segment}"
