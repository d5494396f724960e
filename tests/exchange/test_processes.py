"""Whole jobs by processes: the oracle's bits for late, absent, returning and evicted lanes, on poor links, killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from benchmarks.lanes.processes import four_times_slower, members_file
from benchmarks.lanes.shaping import Link, Network
from benchmarks.lanes.shaping import Path as Route
from tests.exchange.world import Lanes, written_job
from tests.listener import Handler, Listener

ROWS = [
    ["counts", "counts", "counts"],
    ["counts", "away", "late"],
    ["late", "away", "counts"],
    ["counts", "counts", "counts"],
    ["counts", "late", "away"],
    ["counts", "counts", "away"],
]
"""Lane 1 is away for two rounds and comes back; lane 2, which is slow, is late once, and then evicted."""


def dies_at(count: int, done: bool) -> None:
    """In a lane's process: SIGKILL at the file of this number that takes its name, before it does or after."""
    replace, left = os.replace, iter(range(count))

    def replacing(old: str, new: str) -> None:
        if next(left, None) is not None:
            replace(old, new)
            return
        if done:
            replace(old, new)
        os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replacing  # type: ignore[assignment]


@pytest.mark.parametrize("density", ["1/8", "1"])
def test_the_oracles_bits_over_poor_links(tmp_path: Path, density: str) -> None:
    job = written_job(tmp_path / "job", len(ROWS), density=density)
    with Network() as network, Lanes(tmp_path, job, ROWS) as lanes:
        up, down = [Link(2.0) for _ in lanes.urls], [Link(2.0) for _ in lanes.urls]
        for lane in range(3):
            seen = [
                [network.address(url, Route((up[number], down[lane]), delay=0.002, loss=0.05))]
                for number, url in enumerate(lanes.urls)
            ]
            slow = [four_times_slower] if lane == 2 else []
            lanes.start(lane, members_file(tmp_path / f"members{lane}.json", seen, ROWS), before=slow)
        lanes.until_finished([0, 1])
        lanes.require_oracles_bits()
        assert all(link.passed for link in (*up, *down))


def test_a_lane_that_is_killed_at_every_file_goes_on(tmp_path: Path) -> None:
    rows = [["counts"] * 2] * 3
    job = written_job(tmp_path / "job", len(rows), width=2)
    with Lanes(tmp_path, job, rows) as lanes:
        members = members_file(tmp_path / "members.json", [[url] for url in lanes.urls])
        lanes.start(0, members)
        deaths = 0
        while lanes.ends(1, members, before=[partial(dies_at, 5, deaths % 2 == 0)]):
            assert lanes.running[1].poll() == -signal.SIGKILL, lanes.log(1).read_text()
            deaths += 1
        lanes.until_finished([0, 1])
        assert deaths > 5
        lanes.require_oracles_bits()


class Refusing(Handler):
    """Answers everything with 503."""

    def do_GET(self) -> None:
        self.send_error(503)


@pytest.fixture
def refusing() -> Iterator[str]:
    listener = Listener(Refusing, None)
    yield listener.url
    listener.close()


def test_a_message_that_is_withheld_from_half_of_the_lanes_reaches_them(
    tmp_path: Path, refusing: str
) -> None:
    rows = [["counts"] * 4] * 2
    job = written_job(tmp_path / "job", len(rows), width=4)
    with Lanes(tmp_path, job, rows) as lanes:
        everybody = [[url] for url in lanes.urls]
        for lane in range(4):
            seen = [[refusing], *everybody[1:]] if lane > 1 else everybody
            lanes.start(lane, members_file(tmp_path / f"members{lane}.json", seen))
        lanes.until_finished(range(4))
        lanes.require_oracles_bits()
