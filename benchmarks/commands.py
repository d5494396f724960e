"""Measures how long `--help` of each command takes, from the start of the command's process to its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median

from benchmarks.measure import Row, seconds

COMMANDS = ("assay", "solver", "verifier", "sim")


def rows() -> list[Row]:
    """Rows with the seconds of `--help` for each command."""
    return [Row(f"`{command} --help`", f"{median(times(command)):.2f} s", "0.3 s") for command in COMMANDS]


def times(command: str) -> list[float]:
    """Seconds that each of seven runs of the command takes."""
    binary = str(Path(sys.executable).parent / command)

    def run() -> None:
        subprocess.run([binary, "--help"], check=True, capture_output=True)

    return [seconds(run) for _ in range(7)]
