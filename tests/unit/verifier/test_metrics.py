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
