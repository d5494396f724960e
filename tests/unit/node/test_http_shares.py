"""Requests of one address delay other addresses only a little: each address has one turn at a time.

The tests assert the order in which the app answers clients. On Linux every address of 127.0.0.0/8 is this
machine.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections import Counter
from contextlib import ExitStack
from ipaddress import IPv4Address, IPv6Address
from threading import Event, Semaphore

import pytest
from anyio import to_thread

from protocol.node import http_shares, http_timeouts
from protocol.node.http_clients import IP
from protocol.node.http_shares import CONNECTIONS_EACH
from tests.unit.node.apps import MIB, PATIENCE, WHOLE, Message, Receive, Send, answers, served

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="one machine has one address elsewhere")

HOSTILE = [f"127.0.1.{number}" for number in range(1, 21)]
SLOW = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n"


def connected(place: tuple[str, int], host: str) -> socket.socket:
    """A connection from an address of this machine."""
    return socket.create_connection(place, PATIENCE, (host, 0))


class Watched:
    """An app that counts its answers by address. It answers nobody before `begin` is called. From then on it
    also sends requests itself, through the client that `begin` received: one each time it has given `pause`
    answers to other clients.
    """

    def __init__(self, pause: int) -> None:
        self.client: socket.socket | None = None
        self.between: list[Counter[str]] = []
        self._pause = pause
        self._answered: Counter[str] = Counter()
        self._own: tuple[str, int] | None = None

    def begin(self, client: socket.socket) -> None:
        """Begin to answer. The app sends its requests over this client's connection."""
        self._own, self.client = client.getsockname(), client

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request. If the app then sends a request itself, it does so on the server's thread,
        directly after it has counted.
        """
        while self.client is None:
            await asyncio.sleep(0.001)
        if scope["client"] == self._own:
            self.between.append(self._answered)
            self._answered = Counter()
        else:
            self._answered[scope["client"][0]] += 1
            if self._answered.total() >= self._pause:
                self._answered = Counter()
                self.client.sendall(WHOLE)
        await answers(scope, receive, send)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the time limits of a turn and of a request so long that each turn ends with its answer, however
    busy this machine is.
    """
    monkeypatch.setattr(http_shares, "TURN_SECONDS", PATIENCE)
    monkeypatch.setattr(http_timeouts, "REQUEST_SECONDS", PATIENCE)


def answers_between(flood: list[tuple[str, int]], host: str) -> list[Counter[str]]:
    """Return, for each of ten requests from `host`, how many answers each address got between the request and
    its answer.

    Meanwhile, the addresses in `flood` send requests without a pause. `flood` gives the number of connections
    for each address. All these requests are sent before the first answer.
    """
    app = Watched(pause=500)
    with served(app) as place, ExitStack() as stack, connected(place, host) as client:
        hostile = [stack.enter_context(connected(place, name)) for name, count in flood for _ in range(count)]
        for other in hostile:
            other.sendall(WHOLE * (16_000 // len(hostile)))
        app.begin(client)
        for other in hostile:
            assert other.recv(1)
        while len(app.between) < 10:
            assert client.recv(MIB)
    return app.between[:10]


@pytest.mark.usefixtures("patient")
def test_between_a_question_and_its_answer_each_address_has_at_most_three_answers() -> None:
    found = answers_between([(host, CONNECTIONS_EACH) for host in HOSTILE], "127.0.2.1")
    assert [set(counts) for counts in found] == [set(HOSTILE)] * 10  # all of them did flood
    # While the request is sent, read and parsed, the event loop makes three rounds.
    assert max(max(counts.values()) for counts in found) <= 3


@pytest.mark.usefixtures("patient")
def test_connections_of_one_address_take_turns() -> None:
    found = answers_between([("127.0.2.1", CONNECTIONS_EACH - 1)], "127.0.2.1")
    assert max(counts.total() for counts in found) <= CONNECTIONS_EACH


class Gated:
    """An app that answers "/slow" only when the event `let` is set, or after `PATIENCE` seconds at the
    latest; a thread waits for the event. The app answers everything else at once.
    """

    def __init__(self) -> None:
        self.asked = Semaphore(0)
        self.let = Event()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            self.asked.release()
            await to_thread.run_sync(self.let.wait, PATIENCE)
        await answers(scope, receive, send)


def status(client: socket.socket) -> bytes:
    """The status line of the next answer."""
    return client.recv(MIB).partition(b"\r\n")[0]


def test_a_slow_answer_keeps_nobody_behind_its_address_from_others() -> None:
    app = Gated()
    with served(app) as place, connected(place, "127.0.2.1") as slow, connected(place, "127.0.2.1") as other:
        slow.sendall(SLOW)
        assert app.asked.acquire(timeout=PATIENCE)
        other.sendall(WHOLE)
        assert status(other) == b"HTTP/1.1 200 OK"
        app.let.set()
        assert status(slow) == b"HTTP/1.1 200 OK"


def test_requests_of_clients_that_have_gone_count_while_threads_work_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_shares, "TURN_SECONDS", 0.01)
    app = Gated()
    with served(app) as place:
        for _ in range(CONNECTIONS_EACH):
            with connected(place, "127.0.2.1") as gone:
                gone.sendall(SLOW)
                assert app.asked.acquire(timeout=PATIENCE)
        with connected(place, "127.0.2.1") as over, connected(place, "127.0.2.2") as other:
            over.sendall(WHOLE)
            other.sendall(WHOLE)
            assert status(other) == b"HTTP/1.1 200 OK"
            assert status(over) == b"HTTP/1.1 503 Service Unavailable"
        monkeypatch.setattr(http_shares, "WAIT_SECONDS", PATIENCE)  # the threads' places become free
        app.let.set()
        with connected(place, "127.0.2.1") as again:
            again.sendall(WHOLE)
            assert status(again) == b"HTTP/1.1 200 OK"


def test_what_waits_for_something_ends_when_its_client_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_shares, "TURN_SECONDS", 0.01)
    begun, ended = Semaphore(0), Semaphore(0)

    async def waits(_scope: Message, _receive: Receive, _send: Send) -> None:
        begun.release()
        try:
            await asyncio.Event().wait()
        finally:
            ended.release()

    with served(waits) as place:
        for _ in range(2 * CONNECTIONS_EACH):
            with connected(place, "127.0.2.1") as gone:
                gone.sendall(WHOLE)
                assert begun.acquire(timeout=PATIENCE)
            assert ended.acquire(timeout=PATIENCE)


@pytest.mark.usefixtures("patient")
def test_the_turn_of_a_client_that_has_gone_is_passed_on() -> None:
    app = Gated()
    with served(app) as place, connected(place, "127.0.2.1") as other:
        with connected(place, "127.0.2.1") as gone:
            gone.sendall(SLOW)
            assert app.asked.acquire(timeout=PATIENCE)
            other.sendall(WHOLE)
        app.let.set()
        assert status(other) == b"HTTP/1.1 200 OK"


@pytest.mark.usefixtures("patient")
def test_room_is_made_by_the_address_that_has_most_when_all_wait_for_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_shares, "MAX_CONNECTIONS", 4)
    app = Gated()
    with served(app) as place, ExitStack() as stack:
        many = [stack.enter_context(connected(place, "127.0.2.1")) for _ in range(3)]
        other = stack.enter_context(connected(place, "127.0.2.2"))
        for client in (*many, other):
            client.sendall(SLOW)
        assert app.asked.acquire(timeout=PATIENCE)
        assert app.asked.acquire(timeout=PATIENCE)
        with connected(place, "127.0.2.3") as last:
            last.sendall(WHOLE)
            assert status(last) == b"HTTP/1.1 200 OK"
        app.let.set()
        assert status(other) == b"HTTP/1.1 200 OK"
        assert sorted(map(ending, many)) == [b"", b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK"]


@pytest.mark.usefixtures("patient")
def test_room_is_made_by_the_site_that_has_most_when_all_wait_for_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def client_in_ipv6(host: str) -> IP:
        """127.0.2.x as an address in the x-th network of one site. Other addresses stay the same."""
        net, _, number = host.rpartition(".")
        return IPv6Address(f"2001:db8:1:{number}::1") if net == "127.0.2" else IPv4Address(host)

    monkeypatch.setattr(http_shares, "client_of", client_in_ipv6)
    monkeypatch.setattr(http_shares, "MAX_CONNECTIONS", 4)
    app = Gated()
    with served(app) as place, ExitStack() as stack:
        other = stack.enter_context(connected(place, "127.0.3.1"))
        many = [stack.enter_context(connected(place, f"127.0.2.{number}")) for number in range(1, 4)]
        for client in (other, *many):
            client.sendall(SLOW)
            assert app.asked.acquire(timeout=PATIENCE)
        with connected(place, "127.0.3.2") as last:
            last.sendall(WHOLE)
            assert status(last) == b"HTTP/1.1 200 OK"
        app.let.set()
        assert status(other) == b"HTTP/1.1 200 OK"
        assert sorted(map(ending, many)) == [b"", b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK"]


def ending(client: socket.socket) -> bytes:
    """The status line of the next answer; empty if the server has ended the connection."""
    try:
        return status(client)
    except ConnectionResetError:
        return b""
