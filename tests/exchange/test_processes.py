"""Whole jobs in which each lane is a process. The results have the oracle's bits, even if lanes are late,
absent, evicted or killed, and if links are poor.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import torch

from benchmarks.lanes.processes import four_times_slower, members_file
from benchmarks.lanes.shaping import Link, Network
from benchmarks.lanes.shaping import Path as Route
from protocol.errors import ExitCode
from protocol.exchange import peers
from protocol.exchange.shelf import EQUIVOCATIONS, Shelf, announcement_name, tensor_name
from protocol.lanes.splitting import EXPONENT, Inbox
from protocol.lanes.splitting import Lanes as Split
from protocol.program.execute import Interpreter
from protocol.program.step import State
from solver.lane import RESULT
from tests.adversaries.waiting import PATIENCE, until
from tests.exchange.world import Lanes, fill, other_message, written_job
from tests.listener import Handler, Listener

pytestmark = pytest.mark.timeout(2 * PATIENCE)
"""One wait may use up its patience, and is then reported with what it waited for."""

ROWS = [
    ["counts", "counts", "counts"],
    ["counts", "away", "late"],
    ["late", "away", "counts"],
    ["counts", "counts", "counts"],
    ["counts", "late", "away"],
    ["counts", "counts", "away"],
]
"""What each lane does: one list per round, one entry per lane. Each lane is late once. Lane 1 is away for two
rounds and returns; lane 2 is slow and is evicted in the end.
"""


def dies_at(count: int, done: bool) -> None:
    """Make a lane's process kill itself at the first rename after `count` others. It dies after that rename
    if `done`, otherwise before it.
    """
    replace, left = os.replace, iter(range(count))

    def replacing(old: str, new: str) -> None:
        if next(left, None) is not None:
            replace(old, new)
            return
        if done:
            replace(old, new)
        os.kill(os.getpid(), signal.SIGKILL)

    os.replace = replacing  # type: ignore[assignment]


def test_the_oracles_bits_over_poor_links(tmp_path: Path) -> None:
    job = written_job(tmp_path / "job", len(ROWS))
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


def test_a_lane_that_is_killed_again_and_again_goes_on(tmp_path: Path) -> None:
    rows = [["counts"] * 2] * 2
    job = written_job(tmp_path / "job", len(rows), width=2, density="1")
    with Lanes(tmp_path, job, rows) as lanes:
        members = members_file(tmp_path / "members.json", [[url] for url in lanes.urls])
        lanes.start(0, members)
        deaths = 0
        while lanes.ends(1, members, before=[partial(dies_at, 12, deaths % 2 == 0)]):
            assert lanes.running[1].poll() == -signal.SIGKILL, lanes.log(1).read_text()
            deaths += 1
        lanes.until_finished([0, 1])
        assert deaths > 2
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
    rows = [["counts"] * 4] * 3
    job = written_job(tmp_path / "job", len(rows), width=4)
    with Lanes(tmp_path, job, rows) as lanes:
        everybody = [[url] for url in lanes.urls]
        for lane in range(4):
            seen = [[refusing], *everybody[1:]] if lane > 1 else everybody
            members = members_file(tmp_path / f"members{lane}.json", seen)
            lanes.start(lane, members, environment={"ASSAY_KEEP_ROUNDS": "2"})
        lanes.until_finished(range(4))
        lanes.require_oracles_bits()
        for number, kept in ((0, False), (1, True), (2, True)):
            for root in lanes.announced(number, 0).roots[-4:-1]:
                assert (lanes.kept(3) / tensor_name(root)).exists() == kept, f"a message of round {number}"


def garbage() -> None:
    """Make a lane's process send messages with exponents that are not allowed, and make it accept such
    messages itself.
    """
    once = Split.train

    def train(self: Split, state: State, inbox: Inbox, interpreter: Interpreter) -> dict[str, torch.Tensor]:
        trained = once(self, state, inbox, interpreter)
        return {**trained, EXPONENT: torch.full_like(trained[EXPONENT], 100)}

    Split.train = train  # type: ignore[method-assign]
    setattr(peers, "require_message", lambda *_: None)  # noqa: B010


def test_lanes_stop_at_garbage_and_go_on_without_its_lane(tmp_path: Path) -> None:
    before = [["counts"] * 3] * 3
    after = [["counts"] * 3, ["counts", "counts", "away"], ["counts", "counts", "away"]]
    job = written_job(tmp_path / "job", 3)
    with Lanes(tmp_path, job, after) as lanes:
        urls = [[url] for url in lanes.urls]
        members = members_file(tmp_path / "members.json", urls, before)
        lanes.start(2, members, before=[garbage])
        for lane in (0, 1):
            assert lanes.ends(lane, members)
            assert lanes.running[lane].poll() == 2
            said = lanes.log(lane).read_text()
            assert (
                "message.exponent of message of lane 2 in round 0: expected -95 to 0, got 100 to 100" in said
            )
        # Nothing is trained on round 0 yet, so its row may be changed: lane 2 no longer counts in it.
        after[0] = ["counts", "counts", "late"]
        members = members_file(tmp_path / "members.json", urls, after)
        for lane in (0, 1):
            lanes.start(lane, members)
        lanes.until_finished([0, 1])
        lanes.require_oracles_bits([0, 1])


def test_both_lanes_that_a_third_gave_different_messages_name_it(tmp_path: Path) -> None:
    """A third lane gives two lanes different messages, and both name it. The lane that is the first to see
    the difference continues to serve; without its announcements, the other lane would see nothing.
    """
    rows = [["counts"] * 3] * 2
    job = written_job(tmp_path / "job", 2)
    split = job.lanes
    state = split.train(split.initial_state(job.seeds[2], 2), [split.nothing()] * 3, job.interpreter())
    with Lanes(tmp_path, job, rows) as lanes:
        members = members_file(tmp_path / "members.json", [[lanes.urls[0]], [lanes.urls[1]], []])
        for lane, given in ((0, state), (1, other_message(state))):
            fill(job, Shelf(lanes.kept(lane)), 2, given)
            lanes.start(lane, members)
        said = "lane 2 in round 0: expected one signed state, got two"
        for lane in (0, 1):
            lanes.until_logged(said, [lane])
            assert len([*(lanes.kept(lane) / EQUIVOCATIONS / "0" / "2").iterdir()]) == 2
        for lane in (0, 1):
            lanes.running[lane].terminate()
            assert lanes.running[lane].wait(30) == ExitCode.HOPELESS
            assert not (lanes.kept(lane) / RESULT).exists()


def test_rounds_that_are_trained_cannot_be_changed(tmp_path: Path) -> None:
    rows = [["counts"] * 2] * 3
    job = written_job(tmp_path / "job", 3, width=2)
    with Lanes(tmp_path, job, rows) as lanes:
        urls = [[url] for url in lanes.urls]
        members = members_file(tmp_path / "members.json", urls, rows)
        for lane in (0, 1):
            lanes.start(lane, members)
        lanes.until_finished([0, 1])
        lanes.running[0].kill()
        lanes.running[0].wait(30)
        changed = members_file(tmp_path / "changed.json", urls, [["counts", "late"], *rows[1:]])
        assert lanes.ends(0, changed, finished=False)
        assert lanes.running[0].poll() == 2
        assert "in round 0, which is trained, counts, counts, got counts, late" in lanes.log(0).read_text()


def test_a_lane_that_is_put_out_of_a_round_it_has_trained_joins_again(tmp_path: Path) -> None:
    rows = [["counts", "away"], ["counts", "counts"], ["counts", "counts"]]
    job = written_job(tmp_path / "job", 3, width=2)
    with Lanes(tmp_path, job, rows) as lanes:
        urls = [[url] for url in lanes.urls]
        process = lanes.start(1, members_file(tmp_path / "members.json", urls))
        until("lane 1 has trained a round", lambda: lanes.has_announced(0, 1))
        process.kill()
        process.wait(30)
        changed = members_file(tmp_path / "changed.json", urls, rows)
        for lane in (0, 1):
            lanes.start(lane, changed)
        lanes.until_finished([0, 1])
        (lanes.kept(1) / announcement_name(0, 1)).unlink()
        lanes.require_oracles_bits()


class Static(Handler):
    """Serves the files of a folder, like a public bucket."""

    def do_GET(self) -> None:
        path = Path(self.server.owner) / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as found:
        yield found


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    folder = tmp_path / "bucket"
    folder.mkdir()
    listener = Listener(Static, folder)
    yield folder, listener.url
    listener.close()


def test_lanes_that_nobody_reaches_meet_in_a_bucket(tmp_path: Path, bucket: tuple[Path, str]) -> None:
    rows = [["counts", "counts", "away"], ["counts"] * 3]
    job = written_job(tmp_path / "job", 2)
    folder, url = bucket
    with Lanes(tmp_path, job, rows) as lanes:
        below = f"{url}/{job.id.hex()[:16]}"
        members = members_file(tmp_path / "members.json", [[]] * 3, rows, [below])
        for lane in range(3):
            lanes.start(lane, members, "--publish", f"file://{folder}")
        lanes.until_finished(range(3))
        lanes.require_oracles_bits()


def test_a_job_is_trained_again_although_places_serve_what_its_lanes_signed_before(
    tmp_path: Path, bucket: tuple[Path, str], stack: ExitStack
) -> None:
    rows = [["counts"] * 3] * 3
    job = written_job(tmp_path / "job", 3)
    folder, url = bucket
    below = f"{url}/{job.id.hex()[:16]}"
    publishes = ("--publish", f"file://{folder}")
    with Lanes(tmp_path, job, rows) as lanes:
        members = members_file(tmp_path / "members.json", [[]] * 3, rows, [below])
        for lane in range(3):
            lanes.start(lane, members, *publishes)
        lanes.until_finished(range(3))
    old = Listener(Static, shutil.copytree(folder, tmp_path / "old"))
    stack.callback(old.close)
    mirrors = [below.replace(url, old.url), below]
    changed = [["counts", "counts", "away"], *rows[1:]]
    with Lanes(tmp_path, job, changed, run=1) as lanes:
        members = members_file(tmp_path / "changed.json", [[]] * 3, changed, mirrors, run=1)
        for lane in range(3):
            lanes.start(lane, members, *publishes)
        lanes.until_finished(range(3))
        lanes.require_oracles_bits()


def test_a_lane_that_is_put_out_of_a_round_joins_again_over_a_bucket(
    tmp_path: Path, bucket: tuple[Path, str]
) -> None:
    """Lane 1 is put out of a round that both lanes have already trained. Only then does lane 0 learn that
    lane 1 will join from lane 0's state.
    """
    rows = [["counts", "away"], ["counts", "counts"], ["counts", "counts"]]
    job = written_job(tmp_path / "job", 3, width=2)
    folder, url = bucket
    publishes = ("--publish", f"file://{folder}")
    with Lanes(tmp_path, job, rows) as lanes:
        below = [f"{url}/{job.id.hex()[:16]}"]
        before = members_file(tmp_path / "members.json", [[], []], mirrors=below)
        for lane, arguments in ((1, ()), (0, publishes)):
            process = lanes.start(lane, before, *arguments)
            until(f"lane {lane} has trained a round", partial(lanes.has_announced, 0, lane))
            process.kill()
            process.wait(30)
        changed = members_file(tmp_path / "changed.json", [[], []], rows, below)
        for lane in (0, 1):
            lanes.start(lane, changed, *publishes)
        lanes.until_finished([0, 1])
        (lanes.kept(1) / announcement_name(0, 1)).unlink()
        lanes.require_oracles_bits()


def test_a_lane_runs_once_in_a_home_folder(tmp_path: Path) -> None:
    job = written_job(tmp_path / "job", 1, width=2)
    with Lanes(tmp_path, job, [["counts"] * 2]) as lanes:
        members = members_file(tmp_path / "members.json", [[url] for url in lanes.urls])
        first = lanes.start(0, members)
        until("lane 0 serves", lambda: "serves" in lanes.log(0).read_text())
        assert lanes.ends(0, members, "--port", "0")
        assert lanes.running[0].poll() == 1
        assert "expected no other process that runs this lane" in lanes.log(0).read_text()
        lanes.running[0] = first
