"""A large sweep needs little memory: 100 x 100 points of 100 runs, measured over the process tree."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

MOST_BYTES = 4 << 30
COMMAND = "import sim.cli as cli; cli.main()"
SWEEP = ["sweep", "baseline", "--param", "stake=100:5000:100", "--param", "gain=1:200:100"]
FIXED = ["--param", "false_share=0.1", "--param", "honest_share=0.7", "--runs", "100", "--rounds", "2"]


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_a_million_rows_are_swept_and_reported_in_less_than_4_gb(tmp_path: Path) -> None:
    arguments = [
        sys.executable,
        "-c",
        COMMAND,
        *SWEEP,
        *FIXED,
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, sum(map(resident, tree(process.pid))))
            time.sleep(0.1)
        assert process.returncode == 0
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert told["points"] == 10_000
    assert len(list((tmp_path / "out" / "parts").iterdir())) == told["parts"]
    assert (tmp_path / "out" / "report.html").stat().st_size < 10 << 20
    print(f"peak of the whole tree: {peak >> 20} MB")
    assert 0 < peak < MOST_BYTES


def tree(pid: int) -> list[int]:
    """The ids of a process and its descendants, without processes that have ended."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(found for child in children for found in tree(int(child)))]


def resident(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:")), 0)
