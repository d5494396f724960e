"""Lanes that nobody can reach exchange their messages through an S3 bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lanes.processes import members_file
from tests.exchange.world import Lanes, written_job
from tests.storage.server import StorageServer

pytestmark = pytest.mark.heavy


def test_lanes_meet_in_a_bucket(tmp_path: Path, storage: StorageServer) -> None:
    rows = [["counts", "counts", "away"], ["counts"] * 3]
    job = written_job(tmp_path / "job", 2)
    url = storage.make_bucket("lanes")
    with Lanes(tmp_path, job, rows) as lanes:
        mirror = f"{url}/assay/{job.id.hex()[:16]}"
        members = members_file(tmp_path / "members.json", [[]] * 3, rows, [mirror])
        for lane in range(3):
            lanes.start(lane, members, "--publish", "s3://lanes/assay")
        lanes.until_finished(range(3))
        lanes.require_oracles_bits()
    assert any("/rounds/1/2.json" in key for key in storage.keys("lanes"))
