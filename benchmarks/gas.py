"""Measures the gas of the demo's disputes on a real anvil: runs the demo and reads its report."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import Row

REPORT = Path("build/demo/report.json")


def rows() -> list[Row]:
    """Rows for the largest transaction, the largest judgment, and a dispute whose data is served."""
    subprocess.run([sys.executable, "-m", "examples.demo"], check=True, stdout=subprocess.DEVNULL)
    runs: list[dict[str, Any]] = json.loads(REPORT.read_text())["runs"]
    judged = [run for run in runs if run.get("game") and run["gas"]["judge"]]
    single = [gas for run in judged for gas in flat({k: v for k, v in run["gas"].items() if k != "total"})]
    served = [run for run in judged if not run["gas"]["reveal"]]
    return [
        Row("largest transaction of a dispute", f"{max(single):,} gas", "1,000,000"),
        Row("largest judgment", f"{max(run['gas']['judge'] for run in judged):,} gas", "300,000"),
        Row("dispute with data served", f"{max(run['gas']['total'] for run in served):,} gas", "3,000,000"),
        Row("its transactions", str(max(run["transactions"] for run in served)), "12"),
    ]


def flat(gas: dict[str, Any]) -> list[int]:
    """All gas figures of one run as a flat list."""
    return [figure for value in gas.values() for figure in (value if isinstance(value, list) else [value])]
