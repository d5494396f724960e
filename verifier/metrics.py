"""What the verifier counts, for Prometheus. One registry per node, so that two nodes may live in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

_GAUGES = {
    "open_tasks": "Tasks that are not over",
    "open_challenges": "Challenges that are not over",
    "offered_salts": "Salts of others' seats that are kept",
}


class Metrics:
    """The node's counters and gauges. Gauges are of one `market`."""

    def __init__(self, market: str = "") -> None:
        self.registry = CollectorRegistry()
        self._gauges = {
            name: Gauge(f"verifier_{name}", text, ["market"], registry=self.registry)
            for name, text in _GAUGES.items()
        }
        self._point_at(market)
        self.failures = Counter(
            "verifier_failures", "Work on a task that failed, by kind", ["kind"], registry=self.registry
        )
        self.informed = Counter(
            "verifier_informed", "Seats that lost their lock to this informer", registry=self.registry
        )
        self.caught = Counter(
            "verifier_caught", "Seats that lost their lock to a look of this verifier", registry=self.registry
        )
        self.claims = Counter(
            "verifier_claimed", "Claims that an item cannot be fetched", registry=self.registry
        )
        self.votes = Counter("verifier_votes", "Votes in juries", ["vote"], registry=self.registry)
        self.objections = Counter(
            "verifier_objected", "Objections to juries that have what is claimed", registry=self.registry
        )
        self.openings = Counter(
            "verifier_opened", "Chunks opened as a juror for a claimant that objected", registry=self.registry
        )

    def of(self, market: str) -> Metrics:
        """The same counters, and gauges of another market."""
        made = copy(self)
        made._point_at(market)
        return made

    def _point_at(self, market: str) -> None:
        self.tasks, self.challenges, self.salts = (gauge.labels(market) for gauge in self._gauges.values())

    @contextmanager
    def served(self, port: int | None) -> Iterator[None]:
        """Answer GET /metrics on this machine's loopback, if there is a port. Raises OSError."""
        if port is None:
            yield
            return
        server, thread = start_http_server(port, "127.0.0.1", self.registry)
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
