"""The verifier's Prometheus metrics. Each node has a separate registry, so that two nodes may live in one
process. The exception is a node of an earlier deployment: it shares the registry of its leading node
(`Metrics.of`).
"""

from __future__ import annotations

from copy import copy

from prometheus_client import CollectorRegistry, Counter, Gauge

_GAUGES = {
    "open_tasks": "Tasks that are not over",
    "open_challenges": "Challenges that are not over",
    "offered_salts": "Salts of others' seats that are kept",
}


class Metrics:
    """The node's counters and gauges, in `registry`. The gauges have a label `market`, the address of the
    deployment's market contract.
    """

    def __init__(self, market: str = "") -> None:
        self.registry = CollectorRegistry()
        self._gauges = {
            name: Gauge(f"assay_verifier_{name}", text, ["market"], registry=self.registry)
            for name, text in _GAUGES.items()
        }
        self._point_at(market)
        self.failures = self._counter("failures", "Work on a task that failed, by kind", "kind")
        self.steps = self._counter("steps", "Steps replayed")
        self.withdrawn = self._counter("withdrawn_tokens", "Tokens taken out of the vault")
        self.late = self._counter("late_seats", "Own seats whose time ran out unattested")
        self.informed = self._counter("informed", "Seats that lost their lock to this informer")
        self.caught = self._counter("caught", "Seats that lost their lock to a look of this verifier")
        self.claims = self._counter("claimed", "Claims that an item cannot be fetched")
        self.votes = self._counter("votes", "Votes in juries", "vote")
        self.objections = self._counter("objected", "Objections to juries that have what is claimed")
        self.openings = self._counter("opened", "Chunks opened as a juror for a claimant that objected")

    def of(self, market: str) -> Metrics:
        """The same counters, with gauges for another market."""
        made = copy(self)
        made._point_at(market)
        return made

    def _point_at(self, market: str) -> None:
        self.tasks, self.challenges, self.salts = (gauge.labels(market) for gauge in self._gauges.values())

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"assay_verifier_{name}", text, labels, registry=self.registry)
