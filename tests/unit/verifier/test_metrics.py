"""The verifier's counters, as Prometheus reads them."""

from __future__ import annotations

from urllib.error import URLError
from urllib.request import urlopen

import pytest

from protocol.node.http import free_port
from verifier.metrics import Metrics


def test_failures_are_counted_by_kind_and_served_while_the_node_runs() -> None:
    metrics, port = Metrics(), free_port("127.0.0.1")
    metrics.failures.labels("fetch").inc()
    with metrics.served(port), urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert 'verifier_failures_total{kind="fetch"} 1.0' in answer.read().decode()
    with pytest.raises(URLError):
        urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10)


def test_nothing_is_served_without_a_port() -> None:
    with Metrics().served(None):
        pass


def test_deployments_share_counters_and_have_gauges_of_their_own() -> None:
    new = Metrics("0xnew")
    old = new.of("0xold")
    for metrics, tasks in ((new, 1), (old, 2)):
        metrics.tasks.set(tasks)
        metrics.informed.inc()
    read = new.registry.get_sample_value
    assert [read("verifier_open_tasks", {"market": market}) for market in ("0xnew", "0xold")] == [1, 2]
    assert read("verifier_informed_total") == 2
