"""What the solver counts, for Prometheus. One registry per node, so that two nodes may live in one process."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from solver.database import Stage
from solver.gpu import read_gpus


class Metrics:
    """The node's counters and gauges; `render` is the body of GET /metrics. Gauges are of one `market`."""

    def __init__(self, market: str = "") -> None:
        self._market = market
        self._stages: set[Stage] = set()
        self._registry = CollectorRegistry()
        self.steps = Counter("solver_steps", "Training steps run", registry=self._registry)
        self.checkpoints = Counter("solver_checkpoints", "Checkpoints kept", registry=self._registry)
        self.transactions = Counter(
            "solver_transactions", "Transactions mined, by function", ["function"], registry=self._registry
        )
        self.gas = Counter("solver_gas", "Gas used, by function", ["function"], registry=self._registry)
        self.failures = Counter(
            "solver_failures",
            "Errors kept to one task or one game, by the error's class",
            ["kind", "error"],
            registry=self._registry,
        )
        self._games = Gauge(
            "solver_open_games", "Games open against this solver", ["market"], registry=self._registry
        )
        self.games = self._games.labels(market)
        self.tasks = Gauge("solver_tasks", "Tasks by stage", ["market", "stage"], registry=self._registry)
        self.gpus = Gauge(
            "solver_gpu",
            "NVML: utilisation in percent, memory in bytes, energy in millijoules",
            ["index", "name", "what"],
            registry=self._registry,
        )
        self.requests = Counter(
            "solver_requests", "HTTP answers, by status", ["status"], registry=self._registry
        )

    def count_tasks(self, counts: Mapping[Stage, int]) -> None:
        """Note how many tasks there are of each stage."""
        self._stages |= counts.keys()
        for stage in self._stages:
            self.tasks.labels(self._market, stage).set(counts.get(stage, 0))

    def of(self, market: str) -> Metrics:
        """The same counters, and gauges of another market."""
        made = copy(self)
        made._market, made._stages = market, set()
        made.games = self._games.labels(market)
        return made

    def render(self) -> bytes:
        """The text format that Prometheus reads; GPUs are read when asked for."""
        for gpu in read_gpus():
            for what, value in (("utilisation", gpu.utilisation), ("memory", gpu.memory_used)):
                self.gpus.labels(str(gpu.index), gpu.name, what).set(value)
            if gpu.energy is not None:
                self.gpus.labels(str(gpu.index), gpu.name, "energy").set(gpu.energy)
        return generate_latest(self._registry)
