"""The short form of the soak: tasks end as expected, each has a sample, and idle nodes make few requests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.soak.__main__ import SHORT
from benchmarks.soak.criteria import CALLS
from tests.toolchain.project import REPOSITORY

pytestmark = [pytest.mark.heavy, pytest.mark.chain, pytest.mark.timeout(3_000)]


def started(folder: Path) -> subprocess.Popen[str]:
    """Start the short soak. Ctrl-C (SIGINT) stops it even if this process ignores SIGINT, as a background job
    of a shell does.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.soak", "--short", "--folder", str(folder)],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_a_soak_that_was_stopped_goes_on_and_is_judged(tmp_path: Path) -> None:
    folder = tmp_path / "soak"
    with started(folder) as first:
        assert first.stdout is not None
        assert first.stdout.readline().startswith(f"1 of {SHORT.tasks}: task ")
        first.send_signal(signal.SIGINT)
        first.communicate()
    assert first.returncode != 0
    with started(folder) as second:
        said, _ = second.communicate()
    assert second.returncode == 0, said
    found = json.loads((folder / "report.json").read_text())
    samples = found["samples"]
    assert sorted(sample["task"] for sample in samples) == list(range(1, SHORT.tasks + 1))
    assert {sample["session"] for sample in samples} == {1, 2}
    for sample in samples:
        assert sample["status"] == ("slashed" if SHORT.is_false(sample["task"]) else "settled")
        assert sorted(sample["parties"]) == sorted(SHORT.parties)
        assert all(size > 0 for party in sample["parties"].values() for size in party.values())
    assert [idle["past"] for idle in found["idle"]] == [0, SHORT.tasks]
    for idle in found["idle"]:
        for asked in idle["asked"].values():
            assert 0 < sum(asked.values()) <= CALLS * idle["blocks"]
    assert [criterion["passed"] for criterion in found["criteria"]] == [True, True]
