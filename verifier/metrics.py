"""What the verifier counts, for Prometheus. One registry per node, so that two nodes may live in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server


class Metrics:
    """The node's counters and gauges."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.failures = Counter(
            "verifier_failures", "Work on a task that failed, by kind", ["kind"], registry=self.registry
        )
        self.challenges = Gauge(
            "verifier_open_challenges", "Challenges that are not over", registry=self.registry
        )
        self.salts = Gauge(
            "verifier_offered_salts", "Salts of others' seats that are kept", registry=self.registry
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
        self.tasks = Gauge("verifier_open_tasks", "Tasks that are not over", registry=self.registry)

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
