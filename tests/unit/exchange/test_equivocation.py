"""If a lane signs two different states for the same round, the error names the lane, and both announcements
are kept as evidence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmarks.lanes.processes import Rows, account, members_file
from protocol.exchange import peers as module
from protocol.exchange.announcements import Announcement
from protocol.exchange.errors import Divergence, Equivocation
from protocol.exchange.jobs import LaneJob
from protocol.exchange.lane import Lane
from protocol.exchange.members import Members
from protocol.exchange.peers import Peers
from protocol.exchange.server import application
from protocol.exchange.shelf import EQUIVOCATIONS, Shelf, tensor_name
from protocol.lanes import Membership
from protocol.node.serving import Serving
from protocol.node.stopping import Stop
from protocol.program.step import State
from tests.exchange.world import announced, fill, oracle, other_message, put, written_job
from tests.listener import Handler, Listener

WIDTH = 3
CHEAT = 2
"""The lane that signs two messages."""
JOINS: Rows = [["counts", "counts", "away"], ["counts"] * WIDTH]
"""Lane 2 joins in round 1, with the state of lane 0."""


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, LaneJob]:
    """A job of one round and a job of two rounds, by number of rounds."""
    folder = tmp_path_factory.mktemp("jobs")
    return {rounds: written_job(folder / str(rounds), rounds, WIDTH) for rounds in (1, 2)}


@pytest.fixture(scope="module")
def states(jobs: Mapping[int, LaneJob]) -> list[State]:
    """The lanes' states after round 0."""
    lanes, interpreter = jobs[1].lanes, jobs[1].interpreter()
    inbox = [lanes.nothing()] * WIDTH
    seeds = jobs[1].seeds
    return [lanes.train(lanes.initial_state(seeds[w], w), inbox, interpreter) for w in range(WIDTH)]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as found:
        yield found


def served(stack: ExitStack, shelf: Shelf) -> str:
    return stack.enter_context(Serving(application(shelf.folder), "127.0.0.1", 0)).url


def members_of(
    job: LaneJob, folder: Path, urls: Sequence[Sequence[str]], rows: Rows | None = None
) -> Members:
    folder.mkdir(parents=True, exist_ok=True)
    return Members.read(members_file(folder / "members.json", urls, rows), job)


def require_evidence(shelf: Shelf, number: int, *announcements: Announcement) -> None:
    """Check that exactly these announcements are kept as evidence."""
    folder = shelf.folder / EQUIVOCATIONS / str(number) / str(announcements[0].lane)
    found = {Announcement.parse(path.read_bytes()) for path in folder.iterdir()}
    assert found == set(announcements)


# two messages in the last round


def finishing(
    job: LaneJob, folder: Path, stack: ExitStack, messages: Sequence[State], rows: Rows | None = None
) -> tuple[list[Shelf], list[dict[str, Tensor] | BaseException | None]]:
    """Run lanes 0 and 1, and return their shelves and their results or exceptions. Lane 2 itself is never
    reached. Instead, the shelf of lane 0 holds `messages[0]` as the state of lane 2, and the shelf of lane 1
    holds `messages[1]`.
    """
    shelves = [Shelf(folder / f"shelf{lane}") for lane in range(2)]
    urls = [[served(stack, shelf)] for shelf in shelves]
    running = []
    for lane, (shelf, message) in enumerate(zip(shelves, messages, strict=True)):
        fill(job, shelf, CHEAT, message)
        members = members_of(job, folder / str(lane), [*urls, []], rows)
        running.append(Lane(job, members, lane, account(lane), shelf, Stop()))
    with ThreadPoolExecutor(2) as pool:
        ends = [pool.submit(lane.run) for lane in running]
        return shelves, [end.exception() or end.result() for end in ends]


def test_two_messages_of_the_last_round_are_found(
    jobs: Mapping[int, LaneJob], states: list[State], tmp_path: Path, stack: ExitStack
) -> None:
    job, both = jobs[1], (states[CHEAT], other_message(states[CHEAT]))
    shelves, ends = finishing(job, tmp_path, stack, both)
    signed = [announced(job, CHEAT, state) for state in both]
    for shelf, end in zip(shelves, ends, strict=True):
        assert isinstance(end, Equivocation)
        assert str(end).startswith(f"lane {CHEAT} in round 0: expected one signed state, got two")
        require_evidence(shelf, 0, *signed)


def test_the_row_of_the_result_leaves_out_a_lane_that_has_gone(
    jobs: Mapping[int, LaneJob], states: list[State], tmp_path: Path, stack: ExitStack
) -> None:
    job, rows = jobs[1], [["counts"] * WIDTH]
    _, ends = finishing(job, tmp_path, stack, [states[CHEAT]] * 2, [*rows, ["counts", "counts", "away"]])
    _, result = oracle(job, rows)
    for end in ends:
        assert isinstance(end, dict)
        assert all(torch.equal(end[name], result[name]) for name in job.lanes.parameters)


def test_a_lane_that_announces_another_result_is_named(
    jobs: Mapping[int, LaneJob], states: list[State], tmp_path: Path
) -> None:
    job = jobs[1]
    shelf = Shelf(tmp_path / "shelf")
    for other in (1, 2):
        fill(job, shelf, other, states[other])
    name = job.lanes.parameters[0]
    false = {**states[1], name: states[1][name] + 1}
    shelf.announce(announced(job, 1, false, 1))
    lane = Lane(job, members_of(job, tmp_path, [[], [], []]), 0, account(0), shelf, Stop())
    with pytest.raises(Divergence, match="lane 1 in round 1: expected the parameters that all lanes share"):
        lane.run()
    assert not (shelf.folder / EQUIVOCATIONS).exists()


def test_a_table_may_have_a_row_for_the_result(jobs: Mapping[int, LaneJob], tmp_path: Path) -> None:
    job, rows = jobs[2], [["counts", "counts", "away"], ["counts", "late", "counts"]]
    urls: list[list[str]] = [[]] * WIDTH
    assert members_of(job, tmp_path, urls, rows).table == Membership.of([*rows, rows[-1]])
    more = [*rows, ["counts", "away", "late"]]
    assert members_of(job, tmp_path, urls, more).table == Membership.of(more)


# an announcement whose tensors are withheld


def test_a_withheld_message_of_a_lane_that_gave_others_another_is_found(
    jobs: Mapping[int, LaneJob], states: list[State], tmp_path: Path, stack: ExitStack
) -> None:
    job, first, second = jobs[1], states[CHEAT], other_message(states[CHEAT])
    cheats, honest, own = (Shelf(tmp_path / name) for name in ("cheats", "honest", "own"))
    cheats.announce(announced(job, CHEAT, second))
    fill(job, honest, CHEAT, first)
    members = members_of(job, tmp_path, [[served(stack, honest)], [], [served(stack, cheats)]])
    with pytest.raises(Equivocation, match=f"lane {CHEAT} in round 0"):
        asyncio.run(Peers(job, members, 1, own).messages(0, [CHEAT], lambda _: None))
    require_evidence(own, 0, announced(job, CHEAT, second), announced(job, CHEAT, first))
    assert own.announced(0, CHEAT) is None


def test_a_long_wait_for_an_announced_tensor_is_logged(
    jobs: Mapping[int, LaneJob],
    states: list[State],
    tmp_path: Path,
    stack: ExitStack,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job, shelf = jobs[1], Shelf(tmp_path / "cheats")
    shelf.announce(announced(job, CHEAT, states[CHEAT]))
    logged: list[dict[str, object]] = []

    def warning(_said: str, **about: object) -> None:
        logged.append(about)
        put(job, shelf, states[CHEAT])

    monkeypatch.setattr(module, "LONG_SECONDS", 0.0)
    monkeypatch.setattr(module._log, "warning", warning)
    members = members_of(job, tmp_path, [[], [], [served(stack, shelf)]])
    found = asyncio.run(Peers(job, members, 1, Shelf(tmp_path / "own")).messages(0, [CHEAT], lambda _: None))
    assert all(map(torch.equal, found[CHEAT], job.lanes.message(states[CHEAT])))
    root = announced(job, CHEAT, states[CHEAT]).roots[-len(job.lanes.message_types)]
    assert logged == [{"lane": CHEAT, "round": 0, "file": tensor_name(root)}]


# a lane that joins


class TwoFaced(Handler):
    """Serves a folder. The first requests for lane 0's announcement of round 0 get a different announcement."""

    def do_GET(self) -> None:
        folder, first = self.server.owner
        path = folder / self.path.lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        data = first.pop() if self.path == "/rounds/0/0.json" and first else path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def doctored(job: LaneJob, state: State, parameter: bool) -> dict[str, Tensor]:
    """A member's state with one tensor changed: a parameter if `parameter`, otherwise a tensor of the optimiser."""
    lanes = job.lanes
    names = [name for name in lanes.taken_over if state[name].dtype is torch.float32 and state[name].dim()]
    name = next(name for name in names if (name in lanes.parameters) is parameter)
    return {**state, name: state[name] + 1}


def joining(
    job: LaneJob,
    folder: Path,
    stack: ExitStack,
    false: State,
    states: Sequence[State],
    honest: Shelf,
    times: int = 1,
) -> tuple[Lane, Peers]:
    """Lane 2, which joins with the state of lane 0, and the peers of lane 2. Lane 0 answers the first `times`
    requests for its announcement with an announcement of the state `false`.
    """
    cheats = Shelf(folder / "cheats")
    put(job, cheats, false)
    fill(job, cheats, 0, states[0])
    answers = cheats.folder, [announced(job, 0, false).encode()] * times
    listener = Listener(TwoFaced, answers)
    stack.callback(listener.close)
    members = members_of(job, folder, [[listener.url], [served(stack, honest)], []], JOINS)
    lane = Lane(job, members, 2, account(2), Shelf(folder / "own"), Stop())
    return lane, Peers(job, members, 2, lane.shelf)


@pytest.mark.parametrize("parameter", [True, False])
def test_a_member_that_gives_a_joining_lane_another_state_is_found_before_it_trains(
    jobs: Mapping[int, LaneJob], states: list[State], tmp_path: Path, stack: ExitStack, parameter: bool
) -> None:
    job, honest = jobs[2], Shelf(tmp_path / "honest")
    for other in (0, 1):
        fill(job, honest, other, states[other])
    false = doctored(job, states[0], parameter)
    lane, peers = joining(job, tmp_path, stack, false, states, honest)
    with pytest.raises(Equivocation, match="lane 0 in round 0"):
        lane._round(1, None, peers, job.interpreter())
    require_evidence(lane.shelf, 0, announced(job, 0, false), announced(job, 0, states[0]))
    assert lane.shelf.announced(1, 2) is None


def test_a_member_that_gives_the_others_its_state_late_is_found_a_round_later(
    jobs: Mapping[int, LaneJob], states: list[State], tmp_path: Path, stack: ExitStack
) -> None:
    job, honest = jobs[2], Shelf(tmp_path / "honest")
    fill(job, honest, 1, states[1])
    false = doctored(job, states[0], parameter=False)
    lane, peers = joining(job, tmp_path, stack, false, states, honest, times=100)
    assert lane._round(1, None, peers, job.interpreter()) is not None
    fill(job, honest, 0, states[0])
    lanes = job.lanes
    inbox = [lanes.message(states[0]), lanes.message(states[1]), lanes.nothing()]
    for other in (0, 1):
        fill(job, honest, other, lanes.train(states[other], inbox, job.interpreter()), 1)
    with pytest.raises(Equivocation, match="lane 0 in round 0"):
        lane._inbox(2, peers)
    require_evidence(lane.shelf, 0, announced(job, 0, false), announced(job, 0, states[0]))


def test_the_state_that_a_lane_joins_with_is_kept_as_evidence_if_its_lane_does_not_count(
    jobs: Mapping[int, LaneJob], states: list[State], tmp_path: Path, stack: ExitStack
) -> None:
    job, late, own = jobs[2], Shelf(tmp_path / "late"), Shelf(tmp_path / "own")
    fill(job, late, 0, states[0])
    rows = [["late", "counts", "away"], ["counts"] * WIDTH]
    members = members_of(job, tmp_path, [[served(stack, late)], [], []], rows)
    asyncio.run(Peers(job, members, 2, own).state(0, 0, job.lanes.taken_over))
    kept = own.announced(0, 0)
    assert kept == announced(job, 0, states[0])
    assert all(own.tensor(root) is not None for root in kept.roots[-len(job.lanes.message_types) :])


def test_a_lane_that_joins_refuses_other_parameters_than_it_joins_with(
    jobs: Mapping[int, LaneJob], states: list[State], tmp_path: Path
) -> None:
    job, own = jobs[2], Shelf(tmp_path / "own")
    fill(job, own, 0, states[0])
    lane = Lane(job, members_of(job, tmp_path, [[], [], []], JOINS), 2, account(2), own, Stop())
    lane._require_shared(announced(job, 1, states[1]))
    with pytest.raises(Divergence, match=r"lane 1 in round 0: .* as lane 0 has announced them"):
        lane._require_shared(announced(job, 1, doctored(job, states[1], parameter=True)))
