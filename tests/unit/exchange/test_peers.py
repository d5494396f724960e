"""Answers of hostile peers are rejected, and the message is fetched from another place."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.lanes.processes import members_file
from protocol.exchange import peers as module
from protocol.exchange.jobs import LaneJob
from protocol.exchange.members import Members
from protocol.exchange.peers import Peers
from protocol.exchange.server import application
from protocol.exchange.shelf import Shelf, announcement_name
from protocol.node.addresses import Address
from protocol.node.lookups import Permit
from protocol.node.reach import OutOfReach, Reach
from protocol.node.serving import Serving
from protocol.program.step import State
from tests.adversaries.waiting import until
from tests.campaign.peer_proxy import MODES, Mode, PeerProxy
from tests.exchange.world import fill, written_job


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> LaneJob:
    return written_job(tmp_path_factory.mktemp("job") / "job", 1, width=2)


@pytest.fixture(scope="module")
def state(job: LaneJob) -> State:
    """The state of lane 1 after round 0."""
    lanes = job.lanes
    return lanes.train(lanes.initial_state(job.seeds[1], 1), [lanes.nothing()] * 2, job.interpreter())


@pytest.fixture(scope="module")
def served(job: LaneJob, state: State, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the state of lane 1, which includes the lane's message, and yield the server's address."""
    shelf = Shelf(tmp_path_factory.mktemp("shelf"))
    fill(job, shelf, 1, state)
    with Serving(application(shelf.folder), "127.0.0.1", 0, [IPv4Address("127.0.0.1")]) as serving:
        yield serving.url


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.5)


def fetched(
    job: LaneJob, folder: Path, urls: list[str], mirrors: list[str]
) -> tuple[Peers, tuple[torch.Tensor, ...]]:
    members = Members.read(members_file(folder / "members.json", [[], urls], mirrors=mirrors), job)
    peers = Peers(job, members, 0, Shelf(folder / "shelf"))
    found = asyncio.run(peers.messages(0, [1], lambda _: None))
    return peers, found[1]


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "honest"])
def test_a_hostile_place_keeps_no_message_back(
    job: LaneJob, state: State, served: str, tmp_path: Path, mode: Mode
) -> None:
    with PeerProxy(served) as proxy:
        proxy.mode = mode
        _, message = fetched(job, tmp_path, [proxy.url], [served])
        assert all(map(torch.equal, message, job.lanes.message(state)))
        assert proxy.asked


@pytest.mark.parametrize("nat", [False, True])
def test_a_silent_place_does_not_delay_a_message_that_is_announced_later(
    job: LaneJob, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nat: bool
) -> None:
    """A message is fetched once it is announced, although another place is asked and stays silent. This is
    tested for a lane with addresses, and for a lane behind NAT that is reached only through a mirror.
    """
    monkeypatch.setattr(module, "ANSWER_SECONDS", 3_600.0)
    shelf = Shelf(tmp_path / "served")
    with (
        PeerProxy("http://127.0.0.1:1") as proxy,
        Serving(application(shelf.folder), "127.0.0.1", 0) as serving,
    ):
        proxy.mode = "silent"
        urls, mirrors = ([], [proxy.url, serving.url]) if nat else ([serving.url], [proxy.url])
        members = Members.read(members_file(tmp_path / "members.json", [[], urls], mirrors=mirrors), job)
        peers = Peers(job, members, 0, Shelf(tmp_path / "shelf"))

        async def question() -> Mapping[int, tuple[torch.Tensor, ...]]:
            asked = asyncio.create_task(peers.messages(0, [1], lambda _: None))
            await asyncio.to_thread(until, "the silent place is asked", lambda: bool(proxy.asked))
            fill(job, shelf, 1, state)
            async with asyncio.timeout(60):
                return await asked

        assert all(map(torch.equal, asyncio.run(question())[1], job.lanes.message(state)))
        assert set(proxy.asked) == {f"/{announcement_name(0, 1)}"}


def test_all_questions_about_a_round_share_one_client_for_each_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of ten lanes asks each of the nine others for all nine messages, with only one client for each
    place. This matters because a server grants each address only eight connections.
    """
    width = 10
    job = written_job(tmp_path / "job", 1, width=width)
    lanes = job.lanes
    state = lanes.train(lanes.initial_state(job.seeds[1], 1), [lanes.nothing()] * width, job.interpreter())
    monkeypatch.setattr(module, "ANSWER_SECONDS", 60.0)
    monkeypatch.setattr(module, "HEAD_START", 60.0)  # a place that takes a second here is busy, not silent
    failed: list[tuple[object, ...]] = []
    monkeypatch.setattr(Peers, "_failed", lambda *what: failed.append(what[1:]))
    shelves = [Shelf(tmp_path / f"served{lane}") for lane in range(width)]
    with ExitStack() as stack:
        servers = [Serving(application(shelf.folder), "127.0.0.1", 0) for shelf in shelves]
        urls = [[stack.enter_context(server).url] for server in servers]
        members = Members.read(members_file(tmp_path / "members.json", urls), job)
        peers = Peers(job, members, 0, Shelf(tmp_path / "shelf"))
        asked: set[tuple[Address, str]] = set()
        clients: Counter[Address] = Counter()
        permit = Reach.permit

        def counted(self: Reach, place: Address) -> Permit | None:
            clients[place] += 1
            return permit(self, place)

        monkeypatch.setattr(Reach, "permit", counted)
        once = Peers._asked

        async def seen(self: Peers, of: Any, place: Address, file: Any) -> Any:
            found = await once(self, of, place, file)
            asked.add((place, file.name))
            return found

        monkeypatch.setattr(Peers, "_asked", seen)
        others = range(1, width)

        async def question() -> Mapping[int, tuple[torch.Tensor, ...]]:
            waiting = asyncio.create_task(peers.messages(0, [*others], lambda _: None))
            count = len(others) ** 2
            await asyncio.to_thread(until, "all are asked for all", lambda: len(asked) == count)
            for lane in others:
                fill(job, shelves[lane], lane, state)
            return await waiting

        found = asyncio.run(question())
    assert set(found) == set(others)
    assert not failed
    assert len(clients) == len(others)
    assert set(clients.values()) == {1}


def test_what_was_fetched_is_served_on(job: LaneJob, state: State, served: str, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    with ExitStack() as stack:
        peers, _ = fetched(job, tmp_path / "first", [served], [])
        mirror = stack.enter_context(Serving(application(peers.shelf.folder), "127.0.0.1", 0))
        _, message = fetched(job, tmp_path / "second", [], [mirror.url])
    assert all(map(torch.equal, message, job.lanes.message(state)))


def test_only_names_of_files_are_served(served: str) -> None:
    for path in (
        "/",
        "/table.json",
        "/rounds/0/1.json/..",
        "/rounds/../table.json",
        "/tensors/00/..%2f..%2flock",
    ):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(served + path)
        assert caught.value.code in (404, 422)
        caught.value.close()


class Refused(Exception):
    """Raised when a peer fails."""


def test_a_name_that_leads_behind_the_firewall_is_not_asked(
    job: LaneJob, served: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(_peers: Peers, _place: object, _name: str, error: Exception) -> None:
        raise Refused from error

    monkeypatch.setattr(Peers, "_failed", failed)
    members = Members.read(members_file(tmp_path / "members.json", [[], [served]]), job)
    peers = Peers(job, members, 0, Shelf(tmp_path / "shelf"), Reach(this_machine=False))
    with pytest.raises(Refused) as caught:
        asyncio.run(peers.messages(0, [1], lambda _: None))
    assert isinstance(caught.value.__cause__, OutOfReach)
