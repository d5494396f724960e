"""The solver's Prometheus metrics. Each node has a separate registry, so that two nodes may live in one
process. There is one exception: a node shares its registry with the nodes that it makes for earlier
deployments (`Metrics.of`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from solver.database import Stage
from solver.gpu import read_gpus


class Metrics:
    """The node's counters and gauges, in `registry`. The gauges of tasks and games have a label `market`, the
    address of the deployment's market contract. The counters and the readings of GPUs do not have this label.
    """

    def __init__(self, market: str = "") -> None:
        self._market = market
        self._stages: set[Stage] = set()
        self.registry = CollectorRegistry()
        self.steps = self._counter("steps", "Training steps run")
        self.checkpoints = self._counter("checkpoints", "Checkpoints kept")
        self.transactions = self._counter("transactions", "Transactions mined, by function", "function")
        self.gas = self._counter("gas", "Gas used, by function", "function")
        self.failures = self._counter(
            "failures", "Errors kept to one task or one game, by the error's class", "kind", "error"
        )
        self.earned = self._counter("earned_tokens", "Prices of tasks that were settled")
        self.lost = self._counter(
            "lost_tokens", "What tasks that were not paid cost, by what was lost", "what"
        )
        self.requests = self._counter("requests", "HTTP answers, by status", "status")
        self._games = Gauge(
            "assay_solver_open_games", "Games open against this solver", ["market"], registry=self.registry
        )
        self.games = self._games.labels(market)
        self.tasks = Gauge(
            "assay_solver_tasks", "Tasks by stage", ["market", "stage"], registry=self.registry
        )
        self.registry.register(_Gpus())

    def count_tasks(self, counts: Mapping[Stage, int]) -> None:
        """Set the number of tasks in each stage."""
        self._stages |= counts.keys()
        for stage in self._stages:
            self.tasks.labels(self._market, stage).set(counts.get(stage, 0))

    def of(self, market: str) -> Metrics:
        """The same counters, with gauges for another market."""
        made = copy(self)
        made._market, made._stages = market, set()
        made.games = self._games.labels(market)
        return made

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"assay_solver_{name}", text, labels, registry=self.registry)


class _Gpus(Collector):
    """Reads the GPUs through NVML when Prometheus collects the metrics."""

    def collect(self) -> Iterator[Metric]:
        """The metrics of each GPU."""
        labels = ["index", "name"]
        busy = GaugeMetricFamily("assay_solver_gpu_utilization_ratio", "Of its time, busy", labels=labels)
        memory = GaugeMetricFamily("assay_solver_gpu_memory_bytes", "Memory in use", labels=labels)
        energy = CounterMetricFamily(
            "assay_solver_gpu_energy_joules", "Since its driver started", labels=labels
        )
        for gpu in read_gpus():
            which = [str(gpu.index), gpu.name]
            busy.add_metric(which, gpu.utilisation / 100)
            memory.add_metric(which, gpu.memory_used)
            if gpu.energy is not None:
                energy.add_metric(which, gpu.energy / 1000)
        yield from (busy, memory, energy)

    def describe(self) -> Iterator[Metric]:
        """Returns nothing, so that registration does not read the GPUs."""
        return iter(())
