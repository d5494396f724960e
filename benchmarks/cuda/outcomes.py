"""A pytest plugin, `-p benchmarks.cuda.outcomes`: writes a cell for each test.

A cell is written as soon as its test ends, so that results remain if time runs out.
"""

from __future__ import annotations

import pytest

from benchmarks.cuda.cells import write

LINES = 30
"""Number of lines kept from the end of a failed test's report."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the outcome of a test, or of a set-up or tear-down that did not pass."""
    if report.when == "call" or not report.passed:
        line: dict[str, object] = {"outcome": report.outcome}
        line["seconds"] = round(report.duration, 3)
        if report.failed:
            line["report"] = report.longreprtext.splitlines()[-LINES:]
        elif report.skipped and isinstance(report.longrepr, tuple):
            line["reason"] = report.longrepr[2]
        write(report.nodeid, line)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write a cell for a file that cannot be collected."""
    if report.failed:
        write(report.nodeid, {"outcome": "error", "report": report.longreprtext.splitlines()[-LINES:]})
