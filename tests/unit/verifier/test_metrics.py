"""The verifier's counters, as Prometheus reads them."""

from __future__ import annotations

from verifier.metrics import Metrics


def test_failures_are_counted_by_kind() -> None:
    metrics = Metrics()
    metrics.failures.labels("fetch").inc()
    assert metrics.registry.get_sample_value("assay_verifier_failures_total", {"kind": "fetch"}) == 1


def test_deployments_share_counters_and_have_gauges_of_their_own() -> None:
    new = Metrics("0xnew")
    old = new.of("0xold")
    for metrics, tasks in ((new, 1), (old, 2)):
        metrics.tasks.set(tasks)
        metrics.informed.inc()
    read = new.registry.get_sample_value
    assert [read("assay_verifier_open_tasks", {"market": market}) for market in ("0xnew", "0xold")] == [1, 2]
    assert read("assay_verifier_informed_total") == 2
