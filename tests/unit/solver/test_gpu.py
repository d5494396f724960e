"""GPU readings: said in words where there is one, and where there is none."""

from __future__ import annotations

from prometheus_client import generate_latest

from solver.gpu import Reading, describe, read_gpus
from solver.metrics import Metrics


def test_no_gpu_is_said_clearly() -> None:
    assert describe([]) == "no GPU: training on the CPU"


def test_a_reading_is_one_line() -> None:
    reading = Reading(0, "NVIDIA H200", 37, 3 << 30, 139 << 30, None)
    assert describe([reading]) == "GPU 0 NVIDIA H200: 37 % busy, 3072 of 142336 MiB used"


def test_metrics_show_the_gpus_that_nvml_sees() -> None:
    found = read_gpus()
    shown = generate_latest(Metrics().registry).decode()
    assert shown.count("assay_solver_gpu_utilization_ratio{") == len(found)
    assert all(reading.name in shown for reading in found)
