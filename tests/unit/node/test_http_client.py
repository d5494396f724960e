"""Bounded GET against real servers: it reads the expected bytes and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading

import pytest

from protocol.node.addresses import Address
from protocol.node.http_client import BadAnswer, Broken, Encoded, HttpClient, NotServed, TooLong
from tests.unit.node.servers import Handler, answers, serving

BODY = bytes(range(200))


def read(handler: Handler, most: int) -> bytes:
    """What `get` reads from a server with this handler."""

    async def ask(url: str) -> bytes:
        into = bytearray()
        async with HttpClient(5.0) as asking:
            await asking.get(Address.parse(url) / "file", most, into, {"path": "1,2"})
        return bytes(into)

    with serving(handler) as server:
        found = asyncio.run(ask(server.url))
        assert server.targets == ["/file?path=1%2C2"]
    return found


@pytest.mark.parametrize("most", [200, 201, 10_000])
def test_a_body_within_the_limit_is_read_whole(most: int) -> None:
    assert read(answers(BODY), most) == BODY


@pytest.mark.parametrize("most", [0, 1, 199])
def test_a_longer_body_is_refused(most: int) -> None:
    with pytest.raises(TooLong, match=f"^expected at most {most} bytes, got more$"):
        read(answers(BODY), most)


@pytest.mark.parametrize(
    "status", ["404 Not Found", "503 Service Unavailable", "206 Partial Content", "302 Found"]
)
def test_any_other_status_is_no_answer(status: str) -> None:
    with pytest.raises(NotServed) as raised:
        read(answers(BODY, status, "location: http://127.0.0.1:1/"), 200)
    assert raised.value.status == int(status[:3])


def test_an_encoding_is_refused_before_it_unpacks() -> None:
    with pytest.raises(Encoded) as raised:
        read(answers(gzip.compress(bytes(1 << 20)), "200 OK", "content-encoding: gzip"), 1 << 20)
    assert raised.value.encoding == "gzip"


def test_a_kept_connection_that_the_server_ends_is_opened_again() -> None:
    """Servers may close a connection at any time, even while the next request is being sent."""

    def handle(connection: socket.socket, _target: str) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        connection.recv(4096)  # the next request gets no answer

    async def ask(url: str) -> list[bytearray]:
        found = [bytearray() for _ in range(2)]
        async with HttpClient(5.0) as asking:
            for number, into in enumerate(found):
                await asking.get(Address.parse(url) / str(number), 200, into)
        return found

    with serving(handle) as server:
        assert asyncio.run(ask(server.url)) == [b"hi", b"hi"]
        assert server.targets == ["/0", "/1"]


def test_a_server_that_ends_a_new_connection_is_not_asked_again() -> None:
    with serving(lambda _connection, _target: None) as server:
        with pytest.raises(Broken, match="RemoteProtocolError"):
            asyncio.run(HttpClient(5.0).get(Address.parse(server.url) / "file", 200, bytearray()))
        assert server.targets == ["/file"]


def test_what_has_come_is_seen_when_the_time_is_over() -> None:
    into = bytearray()

    async def ask(url: str) -> None:
        async with asyncio.timeout(None) as time, HttpClient() as asking:
            answer = asyncio.create_task(asking.get(Address.parse(url), 1000, into))
            while into != BODY:
                await asyncio.sleep(0.01)
            time.reschedule(0)
            await answer

    def halts(connection: object, _target: str) -> None:
        answers(BODY, length=1000)(connection, "")  # type: ignore[arg-type]
        gone.wait(10)

    gone = threading.Event()
    with serving(halts) as server:
        with pytest.raises(TimeoutError):
            asyncio.run(ask(server.url))
        gone.set()
    assert bytes(into) == BODY


def test_every_refusal_and_every_failure_is_a_bad_answer() -> None:
    assert all(issubclass(kind, BadAnswer) for kind in (Broken, Encoded, NotServed, TooLong))
    with pytest.raises(Broken, match="RemoteProtocolError"):
        read(lambda connection, _target: connection.close(), 200)


@pytest.mark.parametrize(
    "piece",
    [b"HTTP/1.1 100 Continue\r\n\r\n", b"a: b\r\n", b"1;" + bytes(4000).replace(b"\0", b"x") + b"\r\ny\r\n"],
    ids=["informational answers", "headers", "extensions of chunks"],
)
def test_an_answer_that_goes_on_beside_its_body_is_cut_off(piece: bytes) -> None:
    sent = 0

    def endless(connection: socket.socket, _target: str) -> None:
        nonlocal sent
        if piece[:1] != b"H":
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
        if piece[:1] == b"1":
            connection.sendall(b"transfer-encoding: chunked\r\n\r\n")
        while sent < 1 << 28:
            connection.sendall(piece * 20)
            sent += len(piece) * 20

    with pytest.raises(BadAnswer):
        read(endless, 1 << 16)
    assert sent < 1 << 24  # and most of that is in system buffers


def test_a_name_has_one_lookup_and_its_first_address_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []

    def found(host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ("127.0.0.9", "127.0.0.1")]

    async def ask(url: str) -> list[bytes]:
        async with HttpClient(5.0) as asking:
            bodies = [bytearray(), bytearray()]
            for into in bodies:
                await asking.get(Address.parse(url), 200, into)
        return [bytes(body) for body in bodies]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    with serving(answers(BODY)) as server:
        port = server.url.rpartition(":")[2]
        assert asyncio.run(ask(f"http://two.example:{port}")) == [BODY, BODY]
    assert looked_up == ["two.example"]


def test_a_name_server_that_is_silent_takes_no_more_than_the_callers_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go = threading.Event()

    def silent(*_: object, **__: object) -> list[tuple[object, ...]]:
        assert go.wait(60)
        return []

    async def ask() -> None:
        async with asyncio.timeout(0.1), HttpClient() as asking:
            await asking.get(Address.parse("http://silent.example"), 1, bytearray())

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    with pytest.raises(TimeoutError):
        asyncio.run(ask())  # returns although the lookup has not ended
    assert not go.is_set()
    go.set()
