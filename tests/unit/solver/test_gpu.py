"""GPU readings: their description in words, their metrics, and the power that the GPUs may draw."""

from __future__ import annotations

from prometheus_client import generate_latest
from structlog.testing import capture_logs

from protocol.tasks import usual_solver
from solver.gpu import Reading, describe, powered, read_gpus, watts
from solver.metrics import Metrics
from solver.settings import SolverSettings


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


def test_what_gpus_may_draw_is_the_machines_power_unless_its_owner_says_otherwise() -> None:
    drawn = [Reading(index, "GPU", 0, 0, 1, None, limit) for index, limit in enumerate((300.0, None, 700.0))]
    assert watts(drawn, 1) == 700
    assert watts(drawn, 2) == 1000
    assert watts([], 1) is None
    assert watts([drawn[1]], 1) is None
    assert SolverSettings().with_gpus(700).watts == 700
    assert SolverSettings().with_gpus(None).watts == usual_solver.WATTS
    assert SolverSettings(watts=50).with_gpus(700).watts == 50
    assert SolverSettings().with_gpus(700).costs(1).power > SolverSettings().costs(1).power


def test_gpus_that_report_no_power_are_named_unless_the_owner_says_what_the_machine_draws() -> None:
    reporting, silent = (Reading(0, "GPU", 0, 0, 1, None, limit) for limit in (300.0, None))
    for readings, devices, counted, uncounted in (
        ([reporting, silent], 2, 300, 1),
        ([silent], 1, usual_solver.WATTS, 1),
        ([], 2, usual_solver.WATTS, 2),
    ):
        with capture_logs() as said:
            assert powered(SolverSettings(), readings, devices).watts == counted
        (line,) = said
        assert (line["log_level"], line["uncounted"], line["gpus"]) == ("warning", uncounted, devices)
        assert line["watts"] == counted
    with capture_logs() as said:
        assert powered(SolverSettings(watts=50), [silent], 1).watts == 50
        assert powered(SolverSettings(), [reporting, silent], 1).watts == 300
    assert not said
