"""Many clients and slow clients: turns, shares of the server, and the bytes of answers in memory."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import weakref
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pytest
from fastapi import FastAPI, Response

from protocol.execution.replay import Replay
from protocol.execution.turns import Turns
from protocol.node import http_shares
from protocol.node.http_shares import CONNECTIONS_EACH
from solver.answers import FILE_PIECE, PIECE, FileOnDisk, Share, binary
from solver.catalog import Catalog
from solver.concurrency import Budget, Busy, OneAtATime
from solver.database import Stage
from solver.limits import Limits, Message, Receive, Send
from solver.metrics import Metrics
from solver.run_store import RunStore, TensorEntry
from solver.server import application
from tests.unit.node.apps import served
from tests.unit.solver import tiny
from tests.unit.solver.asking import client, get, roots

T = tiny.TASK


@pytest.fixture(scope="module")
def run_store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return tiny.trained(tmp_path_factory.mktemp("solver"))


@pytest.fixture
def catalog(run_store: RunStore, tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "bundles", Metrics(), Turns())
    catalog.put(run_store)
    return catalog


@dataclass
class Pace:
    """Work that lasts until `go` is set; `most` is the largest number of calls that ran at once."""

    go: threading.Event = field(default_factory=threading.Event)
    running: int = 0
    most: int = 0

    def take(self) -> None:
        """Wait until `go` is set."""
        self.running += 1
        self.most = max(self.most, self.running)
        self.go.wait(10)
        self.running -= 1


class SlowRecord(RunStore):
    """A run store that answers slowly."""

    pace: Pace

    def replay(self) -> Replay:
        """A slow replay."""
        return SlowReplay(self)

    def open_tensor(self, number: int, tensor: int) -> BinaryIO:
        """A tensor, after a wait."""
        self.pace.take()
        return super().open_tensor(number, tensor)


class SlowReplay(Replay):
    """A replay that returns one root, after a wait."""

    def __init__(self, run_store: SlowRecord) -> None:
        self.run_store = run_store

    def step_roots(self, segment: int) -> list[bytes]:
        """A made-up root: only the number of simultaneous calls matters here."""
        self.run_store.pace.take()
        return [bytes(32)]


OTHER = T + 1


@pytest.fixture
def slow(tmp_path: Path) -> tuple[Pace, Catalog]:
    """Two tasks with the same run in one catalog."""
    tiny.trained(tmp_path)
    kept, catalog, pace = tiny.database(tmp_path), Catalog(tmp_path / "bundles", Metrics(), Turns()), Pace()
    kept.put(OTHER, Stage.SUBMITTED)
    for row in kept.checkpoints(T):
        kept.add_checkpoint(OTHER, row)
    kept.put_sent(OTHER, tiny.SEGMENTS + 1)
    for task in (T, OTHER):
        run_store = SlowRecord(task, *tiny.parts(tmp_path, kept)[1:])
        run_store.pace = pace
        catalog.put(run_store)
    return pace, catalog


def test_one_replay_at_a_time_and_a_bounded_queue(slow: tuple[Pace, Catalog]) -> None:
    pace, catalog = slow

    async def ask() -> list[int]:
        async with client(application(catalog, OneAtATime(waiting=3, patience=20))) as session:
            tasks = [T, OTHER] * 4
            asked = [asyncio.create_task(session.get(f"/tasks/{task}/segments/1/steps")) for task in tasks]
            await asyncio.sleep(0.3)
            quick = await session.get(f"/tasks/{T}")
            pace.go.set()
            return [quick.status_code, *[(await answer).status_code for answer in asked]]

    quick, *answers = asyncio.run(ask())
    assert quick == 200
    assert sorted(answers) == [200] * 4 + [503] * 4
    assert pace.most == 1


def test_one_tensor_is_read_at_a_time(slow: tuple[Pace, Catalog]) -> None:
    pace, catalog = slow

    async def ask() -> list[int]:
        async with client(application(catalog)) as session:
            places = [f"/tasks/{task}/checkpoints/{i}/tensors/0" for task in (T, OTHER) for i in range(4)]
            asked = [asyncio.create_task(session.get(place)) for place in places]
            await asyncio.sleep(0.3)
            pace.go.set()
            return [(await answer).status_code for answer in asked]

    assert asyncio.run(ask()) == [200] * 8
    assert pace.most == 1


def test_waiting_ends(slow: tuple[Pace, Catalog]) -> None:
    pace, catalog = slow

    async def ask() -> tuple[int, str]:
        async with client(application(catalog, OneAtATime(waiting=3, patience=0.1))) as session:
            first = asyncio.create_task(session.get(f"/tasks/{T}/segments/1/steps"))
            await asyncio.sleep(0.1)
            second = await session.get(f"/tasks/{T}/segments/1/steps")
            pace.go.set()
            assert (await first).status_code == 200
            return second.status_code, second.headers["retry-after"]

    assert asyncio.run(ask()) == (503, "5")


def test_what_was_replayed_is_let_go_when_nobody_asks(catalog: Catalog, run_store: RunStore) -> None:
    async def ask() -> None:
        async with client(application(catalog, OneAtATime(idle=0.01))) as session:
            kept = weakref.ref(catalog.replay(run_store))
            await session.get(f"/tasks/{T}/segments/1/steps/2/trace")
            while kept() is not None:
                await asyncio.sleep(0.01)

    gc.disable()
    try:
        asyncio.run(ask())
    finally:
        gc.enable()


def test_only_answers_of_several_pieces_are_counted(catalog: Catalog, run_store: RunStore) -> None:
    budget = Budget(most=PIECE)
    held = binary(bytes(PIECE + 1), budget)  # a client that reads slowly
    with pytest.raises(Busy):
        binary(bytes(PIECE + 1), budget)
    tensor, segments = get(
        application(catalog, budget=budget), f"/tasks/{T}/checkpoints/1/tensors/0", f"/tasks/{T}/segments"
    )
    assert tensor.content == run_store.tensor(1, 0)
    assert roots(segments) == run_store.roots()
    del held


def test_a_solver_that_is_busy_says_when_to_come_again(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise Busy

    monkeypatch.setattr("solver.server.hashes", busy)
    (answer,) = get(application(catalog), f"/tasks/{T}/segments")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


SIZE = 1 << 24
"""The size in bytes of an answer that is too large for a socket to take as a whole."""


def unread(port: int, source: str, target: str = "/answer") -> socket.socket:
    """A client at `source` that asks for `target` and reads nothing yet."""
    asking = socket.socket()
    asking.settimeout(60)
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    asking.bind((source, 0))
    asking.connect(("127.0.0.1", port))
    asking.sendall(f"GET {target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    return asking


@pytest.mark.parametrize("kept", ["on disk", "in memory"])
def test_unread_answers_of_one_address_keep_nobody_else_from_theirs(
    kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_shares, "TURN_SECONDS", 0.01)
    budget, api = Budget(most=6 * SIZE), FastAPI()
    (tmp_path / "tensor").write_bytes(bytes(SIZE))

    @api.get("/answer")
    async def answer(share: Share) -> Response:
        if kept == "on disk":
            return FileOnDisk((tmp_path / "tensor").open("rb"))
        try:
            return binary(bytes(SIZE), budget, share)
        except Busy:
            return Response(status_code=503)

    with ExitStack() as stack:
        _, port = stack.enter_context(served(Limits(api, Metrics())))
        held = [
            stack.enter_context(closing(unread(port, "127.0.0.1"))).recv(12) for _ in range(CONNECTIONS_EACH)
        ]
        other = stack.enter_context(closing(unread(port, "127.0.0.2")))
        assert other.recv(12) == b"HTTP/1.1 200"
        assert held.count(b"HTTP/1.1 200") == (CONNECTIONS_EACH if kept == "on disk" else 1)


def await_waiting(turns: OneAtATime, count: int) -> None:
    """Wait until `count` clients wait for their turn."""
    for _ in range(6_000):
        if turns.waiting == count:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{turns.waiting} wait, not {count}")


@pytest.mark.parametrize("target", [f"/tasks/{T}/checkpoints/1", f"/tasks/{T}/result"])
def test_unread_manifests_of_one_address_keep_nobody_else_from_theirs(
    catalog: Catalog, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_shares, "TURN_SECONDS", 0.01)
    entry = TensorEntry("t" * 128, "f32", (1,), bytes(32), 4)
    monkeypatch.setattr(RunStore, "manifest", lambda *_: [entry] * 65_535)  # 16 MB of JSON
    with ExitStack() as stack:
        _, port = stack.enter_context(served(application(catalog, budget=Budget(most=6 * SIZE))))
        held = [
            stack.enter_context(closing(unread(port, "127.0.0.1", target))).recv(12)
            for _ in range(CONNECTIONS_EACH)
        ]
        other = stack.enter_context(closing(unread(port, "127.0.0.2", target)))
        assert other.recv(12) == b"HTTP/1.1 200"
        assert held.count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("target", [f"/tasks/{T}/checkpoints/1/tensors/0", f"/tasks/{T}/segments/1/steps"])
def test_slow_answers_to_one_address_delay_another_by_at_most_one(
    slow: tuple[Pace, Catalog], target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_shares, "TURN_SECONDS", 0.01)
    pace, catalog = slow
    turns = catalog.answering.readers if "tensors" in target else catalog.answering.replays
    one_by_one = threading.Semaphore(0)
    monkeypatch.setattr(pace, "take", lambda: one_by_one.acquire(timeout=60))

    with ExitStack() as stack:
        _, port = stack.enter_context(served(application(catalog)))
        for _ in range(CONNECTIONS_EACH):
            stack.enter_context(closing(unread(port, "127.0.0.1", target)))
        await_waiting(turns, CONNECTIONS_EACH - 1)
        other = stack.enter_context(closing(unread(port, "127.0.0.2", target)))
        await_waiting(turns, CONNECTIONS_EACH)
        other.settimeout(5)
        try:
            one_by_one.release(2)
            assert other.recv(12) == b"HTTP/1.1 200"
        finally:
            one_by_one.release(CONNECTIONS_EACH)


def test_questions_of_130_addresses_whose_clients_have_gone_keep_nobody_from_a_tensor(
    slow: tuple[Pace, Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_shares, "TURN_SECONDS", 0)
    monkeypatch.setattr(SlowRecord, "open_tensor", RunStore.open_tensor)
    pace, catalog = slow
    monkeypatch.setattr(pace, "take", lambda: pace.go.wait(60))
    turns, begun = OneAtATime(patience=600), threading.Semaphore(0)
    app = application(catalog, turns)

    async def counted(scope: Message, receive: Receive, send: Send) -> None:
        begun.release()
        await app(scope, receive, send)

    with ExitStack() as stack:
        _, port = stack.enter_context(served(counted))
        stack.callback(pace.go.set)
        for number in range(130):  # 8 questions each, more than MAX_CONNECTIONS in all
            with ExitStack() as going:
                for _ in range(CONNECTIONS_EACH):
                    source = f"127.0.1.{number}"
                    going.enter_context(closing(unread(port, source, f"/tasks/{T}/segments/1/steps")))
                for _ in range(CONNECTIONS_EACH):
                    assert begun.acquire(timeout=10)
        other = stack.enter_context(closing(unread(port, "127.0.2.1", f"/tasks/{T}/checkpoints/1/tensors/0")))
        assert other.recv(12) == b"HTTP/1.1 200"
        await_waiting(turns, 0)


def test_a_client_that_goes_while_its_tensor_is_opened_leaves_nothing(
    slow: tuple[Pace, Catalog], monkeypatch: pytest.MonkeyPatch
) -> None:
    pace, catalog = slow
    opened, asked = list[BinaryIO](), threading.Event()

    def opening(run_store: RunStore, number: int, tensor: int) -> BinaryIO:
        asked.set()
        pace.take()
        opened.append(RunStore.open_tensor(run_store, number, tensor))
        return opened[-1]

    monkeypatch.setattr(SlowRecord, "open_tensor", opening)
    target = f"/tasks/{T}/checkpoints/1/tensors/0"
    with served(application(catalog)) as (_, port):
        with closing(unread(port, "127.0.0.1", target)):
            assert asked.wait(60)
            waiting = unread(port, "127.0.0.2", target)
            await_waiting(catalog.answering.readers, 1)
            waiting.close()
            await_waiting(catalog.answering.readers, 0)  # so this server has seen both go
        pace.go.set()
    assert [file.closed for file in opened] == [True]


class Counted(BytesIO):
    """A file of `SIZE` bytes that counts how often it is read."""

    def __init__(self) -> None:
        super().__init__(bytes(SIZE))
        self.reads = 0
        self.ended = threading.Event()

    def read(self, size: int | None = -1, /) -> bytes:
        """Count a read."""
        self.reads += 1
        return super().read(size)

    def close(self) -> None:
        """Close the file, and set `ended` to record that nothing more will be read."""
        super().close()
        self.ended.set()


def test_of_a_file_whose_client_has_gone_no_more_is_read() -> None:
    file, api = Counted(), FastAPI()

    @api.get("/answer")
    async def answer() -> Response:
        return FileOnDisk(file)

    with served(Limits(api, Metrics())) as (_, port):
        with closing(unread(port, "127.0.0.1")) as gone:
            assert gone.recv(12) == b"HTTP/1.1 200"
        assert file.ended.wait(60)
    assert file.reads < SIZE // FILE_PIECE
