"""Answers of hostile peers are rejected, and the message is fetched from another place."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path

import pytest
import torch

from benchmarks.lanes.processes import account, members_file
from protocol.exchange import peers as module
from protocol.exchange.announcements import Announcement
from protocol.exchange.jobs import LaneJob
from protocol.exchange.members import Members
from protocol.exchange.peers import Peers
from protocol.exchange.server import application
from protocol.exchange.shelf import Shelf
from protocol.node.reach import OutOfReach, Reach
from protocol.node.serving import Serving
from protocol.numerics.types import to_bytes
from protocol.program.step import State
from tests.campaign.peer_proxy import MODES, Mode, PeerProxy
from tests.exchange.world import written_job


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
    """Serve lane 1's state, which has its message, and yield the address."""
    shelf = Shelf(tmp_path_factory.mktemp("shelf"))
    step = job.lanes.inner
    roots = step.tensor_roots(state)
    for root, x, type_ in zip(roots, step.order(state), step.state_types, strict=True):
        shelf.put(root, to_bytes(x, type_.dtype))
    shelf.announce(Announcement.signed(account(1), job.id, 0, 0, 1, roots))
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
