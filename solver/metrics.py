"""What the solver counts, for Prometheus. One registry per node, so that two nodes may live in one process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


class Metrics:
    """The node's counters and gauges; `render` is the body of GET /metrics."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.steps = Counter("solver_steps", "Training steps run", registry=self._registry)
        self.checkpoints = Counter("solver_checkpoints", "Checkpoints kept", registry=self._registry)
        self.transactions = Counter(
            "solver_transactions", "Transactions mined, by function", ["function"], registry=self._registry
        )
        self.gas = Counter("solver_gas", "Gas used, by function", ["function"], registry=self._registry)
        self.games = Gauge("solver_open_games", "Games open against this solver", registry=self._registry)
        self.tasks = Gauge("solver_tasks", "Tasks by stage", ["stage"], registry=self._registry)
        self.requests = Counter(
            "solver_requests", "HTTP answers, by status", ["status"], registry=self._registry
        )

    def render(self) -> bytes:
        """The text format that Prometheus reads."""
        return generate_latest(self._registry)
