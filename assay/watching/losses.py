"""The metrics of a task's committed segments, as far as its solver serves them and they are what it committed to."""

from __future__ import annotations

from collections.abc import Sequence

from assay.errors import MetricsError
from assay.watching.curve import Point, shown_metric, sparkline, wanted
from assay.watching.metrics import Committed, metric_tensors, read_manifest, read_points
from protocol.chain.client import Client
from protocol.chain.views import TaskView
from protocol.node.addresses import parsed
from protocol.node.home import Home
from protocol.tasks.bundles import Limits
from protocol.tasks.task import Terms


class Losses:
    """Of one task. Only values that were checked are ever kept here."""

    def __init__(self, client: Client, home: Home, limits: Limits, terms: Terms) -> None:
        self._client, self._home, self._limits, self._terms = client, home, limits, terms
        self._points: dict[int, Point] = {}
        self._tensors: dict[str, int] | None = None

    def missing(self, view: TaskView) -> list[int]:
        """Checkpoints that are committed, whose metrics are to be shown and are not here."""
        if self._tensors == {}:
            return []
        return [i for i in wanted(view.size - 1, self._terms.segments) if i not in self._points]

    def read(self, view: TaskView, checkpoints: Sequence[int]) -> list[Point]:
        """The metrics of some checkpoints from the solver's server; any thread may ask, one at a time. Raises
        MetricsError, BundleError, ChainError.
        """
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

    def keep(self, points: Sequence[Point]) -> None:
        """They were read, and so checked."""
        self._points |= {point.segment: point for point in points}

    def rewind(self) -> None:
        """The chain was re-organised: what was read may have been of another branch, so all of it is read again."""
        self._points = {}

    def curve(self, width: int = 40) -> str:
        """All that is here in one line; empty where there is nothing."""
        points = [self._points[i] for i in sorted(self._points)]
        name = shown_metric(points[-1]) if points else None
        if name is None:
            return ""
        values = [point.values[name] for point in points]
        return f"{name} {sparkline(values, width)} {values[-1]:.6g} after segment {points[-1].segment}"
