"""Failures of one task are contained, counted and logged. After a failure, the task rests for as long as the
failed attempt took.
"""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from protocol.chain.errors import RpcRefused
from protocol.execution.turns import Stopped
from protocol.node.logs import get
from protocol.numerics.errors import SelfCheckError
from solver.errors import RunStoreError
from solver.failures import Failures
from solver.metrics import Metrics


def fail(error: Exception) -> None:
    """Raise an error; mypy must not know that this function always raises."""
    raise error


def test_it_rests_as_long_as_it_took_and_no_other_task_does() -> None:
    now = 50.0
    failures = Failures("task", Metrics(), get("test"), lambda: now)
    with failures.kept(1):
        now += 0.2
        fail(ZeroDivisionError())
    now += 0.19
    assert failures.rests(1)
    assert not failures.rests(2)
    now += 0.02
    assert not failures.rests(1)
    with failures.kept(1, took=lambda: 1000.0):
        fail(ZeroDivisionError())
    assert failures.rests(1)


def test_every_failure_is_counted_and_the_powers_of_two_are_logged() -> None:
    metrics = Metrics()
    failures = Failures("game", metrics, get("test"))
    with capture_logs() as lines:
        for _ in range(9):
            with failures.kept(3, task=7):
                raise RunStoreError("blob")
    assert [line["times"] for line in lines] == [1, 2, 4, 8]
    assert {(line["event"], line["game"], line["task"]) for line in lines} == {("game failed", 3, 7)}
    failed = {"error": "RunStoreError", "kind": "game"}
    assert metrics.registry.get_sample_value("assay_solver_failures_total", failed) == 9


def test_a_defect_keeps_its_traceback_and_an_operators_error_is_a_line() -> None:
    failures = Failures("task", Metrics(), get("test"))
    errors = (ZeroDivisionError("one"), RunStoreError("two"), RpcRefused("three", "busy"))
    with capture_logs() as lines:
        for number, error in enumerate(errors):
            with failures.kept(number):
                raise error
    assert [line["log_level"] for line in lines] == ["error", "error", "warning"]
    assert [line["exc_info"] for line in lines] == [errors[0], None, None]


@pytest.mark.parametrize("error", [SelfCheckError("other bits"), Stopped(), KeyboardInterrupt()])
def test_what_is_no_tasks_matter_passes(error: BaseException) -> None:
    failures = Failures("task", Metrics(), get("test"))
    with pytest.raises(type(error)), failures.kept(1):
        raise error
    assert not failures.rests(1)
