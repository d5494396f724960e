"""A pytest plugin, `-p benchmarks.cuda.outcomes`: one line of JSON for each test in the file that ASSAY_OUTCOMES names.

Written as each test ends, so that what has run is known where the time runs out.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

LINES = 30
"""Of the report of a test that failed."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the outcome of a test, or of a part around it that did not pass."""
    if report.when == "call" or not report.passed:
        line: dict[str, object] = {"cell": report.nodeid, "outcome": report.outcome}
        line["seconds"] = round(report.duration, 3)
        if report.failed:
            line["report"] = report.longreprtext.splitlines()[-LINES:]
        elif report.skipped and isinstance(report.longrepr, tuple):
            line["reason"] = report.longrepr[2]
        _write(line)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write down a file that cannot be collected."""
    if report.failed:
        _write(
            {"cell": report.nodeid, "outcome": "error", "report": report.longreprtext.splitlines()[-LINES:]}
        )


def _write(line: dict[str, object]) -> None:
    with Path(os.environ["ASSAY_OUTCOMES"]).open("a") as file:
        file.write(json.dumps(line) + "\n")
