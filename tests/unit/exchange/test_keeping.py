"""A lane removes the messages of old rounds from its shelf."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lanes.processes import account, members_file
from protocol.exchange.announcements import Announcement
from protocol.exchange.jobs import LaneJob
from protocol.exchange.lane import Lane
from protocol.exchange.members import Members
from protocol.exchange.shelf import Shelf
from protocol.node.stopping import Stop
from tests.exchange.world import written_job

ROUNDS, STOPPED = 7, 4


class Stopping(Shelf):
    """A shelf that asks its lane to stop after round `STOPPED`."""

    def __init__(self, folder: Path, stop: Stop) -> None:
        super().__init__(folder)
        self._stop = stop

    def announce(self, announcement: Announcement) -> None:
        super().announce(announcement)
        if announcement.number == STOPPED:
            self._stop.ask()


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> LaneJob:
    return written_job(tmp_path_factory.mktemp("job"), ROUNDS, width=1)


def messages(job: LaneJob, shelf: Shelf, number: int) -> list[bool]:
    """For each tensor of the lane's message of a round: whether it is on the shelf."""
    announced = shelf.announced(number, 0)
    assert announced is not None
    return [shelf.tensor(root) is not None for root in announced.roots[-len(job.lanes.message_types) :]]


@pytest.mark.parametrize("before", [None, 4])
def test_a_lane_that_goes_on_with_fewer_rounds_to_keep_forgets_all_older_ones(
    job: LaneJob, tmp_path: Path, before: int | None
) -> None:
    members = Members.read(members_file(tmp_path / "members.json", [[]]), job)
    stop, folder = Stop(), tmp_path / "shelf"
    Lane(job, members, 0, account(0), Stopping(folder, stop), stop, keep_rounds=before).run()
    shelf = Shelf(folder)
    first = 0 if before is None else STOPPED + 1 - before
    assert shelf.rounds() == [*range(STOPPED + 1)]
    assert [all(messages(job, shelf, number)) for number in shelf.rounds()] == [
        number >= first for number in shelf.rounds()
    ]
    assert Lane(job, members, 0, account(0), shelf, Stop(), keep_rounds=2).run() is not None
    kept = [all(messages(job, shelf, number)) for number in range(ROUNDS)]
    assert kept == [False] * (ROUNDS - 2) + [True] * 2
