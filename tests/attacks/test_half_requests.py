"""Clients that hold half-sent requests or idle connections open, from one address and from a hundred.

At commit fd6f56d the server had 64 connections in all and no limit per address: 100 clients
that kept reopening half requests stopped it from answering anybody for 40 seconds. These tests check who is
answered; benchmarks/serving.py measures how fast. On Linux every address of 127.0.0.0/8 is this machine.
"""

from __future__ import annotations

import select
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from threading import Event, Thread

import pytest

from protocol.node import http_shares
from protocol.node.http import free_port
from protocol.node.http_shares import CONNECTIONS_EACH, HALF_REQUESTS_EACH
from tests.attacks.processes import PATIENCE, STARTING, Process, until
from tests.unit.node import apps

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="one machine has one address elsewhere")

HOST, OTHER, HOSTILE = "127.0.0.1", "127.0.0.2", "127.0.1."
CLIENTS, EACH = 100, HALF_REQUESTS_EACH + 1
QUESTIONS = 40
WHOLE, HALF = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", b"GET /healthz HTTP/1.1\r\nhost: x\r\nname: "


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of `assay serve`, which runs as a process."""
    port = free_port(HOST)

    def answers() -> bool:
        try:
            # From another address: the system may give a connection from `HOST` the port that it leads to,
            # and as long as nobody listens there, the connection would then lead to itself.
            return ask(port, OTHER) == 200
        except ConnectionRefusedError:
            return False

    with Process(["assay", "serve", "--port", str(port)], tmp_path_factory.mktemp("home")) as server:
        until(answers, server, seconds=STARTING)
        yield port


def ask(port: int, host: str = HOST) -> int:
    """The status of the server's answer to one complete request from the address `host`."""
    connection = HTTPConnection(HOST, port, timeout=PATIENCE, source_address=(host, 0))
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status
    finally:
        connection.close()


class Attack:
    """`CLIENTS` clients, each of which holds `EACH` half-sent requests open. As soon as the server ends one
    of these requests, it is opened again. The clients share `addresses` addresses.
    """

    def __init__(self, port: int, addresses: int) -> None:
        self._port = port
        self._over = Event()
        self._poll = select.epoll()
        self._open: dict[int, tuple[socket.socket, str]] = {}
        self.reopened = 0
        for number in range(CLIENTS * EACH):
            self._begin(f"{HOSTILE}{1 + number % addresses}")
        self._thread = Thread(target=self._run)

    def __enter__(self) -> Attack:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._poll.close()
        for left, _host in self._open.values():
            left.close()

    def _begin(self, host: str) -> None:
        client = socket.create_connection((HOST, self._port), PATIENCE, (host, 0))
        client.sendall(HALF)
        self._open[client.fileno()] = (client, host)
        self._poll.register(client, select.EPOLLIN)

    def _run(self) -> None:
        while not self._over.is_set():
            for number, _event in self._poll.poll(0.05):
                client, host = self._open.pop(number)
                self._poll.unregister(client)
                client.close()
                self.reopened += 1
                with suppress(OSError):
                    self._begin(host)


@pytest.mark.parametrize("addresses", [CLIENTS, 1])
def test_others_are_answered_while_half_requests_are_reopened(port: int, addresses: int) -> None:
    with Attack(port, addresses) as attack:
        answers = Counter(ask(port) for _ in range(QUESTIONS))
        while not attack.reopened:  # the server has ended some of them
            answers[ask(port)] += 1
        answers[ask(port)] += 1
    assert set(answers) == {200}


def replies(clients: list[socket.socket]) -> Counter[bytes]:
    """For each status line, the number of clients that read it. An empty line means that the server ended the
    connection without one.
    """
    found = Counter[bytes]()
    for client in clients:
        try:
            found[client.recv(1 << 16).partition(b"\r\n")[0]] += 1
        except ConnectionResetError:
            found[b""] += 1
    return found


def opened(port: int, stack: ExitStack, host: str, count: int, begin: bytes) -> list[socket.socket]:
    """Open `count` connections from an address, each of which sends `begin`; returns them."""
    clients = []
    for _ in range(count):
        clients.append(stack.enter_context(socket.create_connection((HOST, port), PATIENCE, (host, 0))))
        clients[-1].sendall(begin)
    return clients


def test_a_ninth_connection_of_an_address_waits_and_is_refused(port: int) -> None:
    with ExitStack() as stack:
        kept = opened(port, stack, "127.0.2.1", CONNECTIONS_EACH, WHOLE)
        assert replies(kept) == {b"HTTP/1.1 200 OK": CONNECTIONS_EACH}  # and stay open for the next request
        over = opened(port, stack, "127.0.2.1", 3, WHOLE)
        assert ask(port, "127.0.2.2") == 200
        assert replies(over) == {b"HTTP/1.1 503 Service Unavailable": 3}


def test_a_ninth_connection_is_answered_when_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server runs in this process, where a held connection is refused only after `PATIENCE` seconds."""
    monkeypatch.setattr(http_shares, "WAIT_SECONDS", PATIENCE)
    with apps.served(apps.answers) as (_, port), ExitStack() as stack:
        kept = opened(port, stack, "127.0.3.1", CONNECTIONS_EACH, WHOLE)
        assert replies(kept) == {b"HTTP/1.1 200 OK": CONNECTIONS_EACH}
        over = opened(port, stack, "127.0.3.1", 2, WHOLE)
        for client in kept[:2]:
            client.close()
        assert replies(over) == {b"HTTP/1.1 200 OK": 2}


@pytest.mark.parametrize(
    "begin", [HALF, WHOLE[:-4] + b"\r\ncontent-length: 9\r\n\r\nhalf", b"G", WHOLE + HALF]
)
def test_a_third_half_request_of_an_address_is_refused(port: int, begin: bytes) -> None:
    host = "127.0.4.1"
    with ExitStack() as stack:
        half = opened(port, stack, host, HALF_REQUESTS_EACH, begin)
        if begin.startswith(WHOLE):
            assert replies(half) == {b"HTTP/1.1 200 OK": HALF_REQUESTS_EACH}
        assert ask(port, host) == 200  # the server has now read the earlier requests
        third = opened(port, stack, host, 1, HALF)
        assert ask(port, host) == 200  # a whole request of the same address
        assert replies(third) == {b"HTTP/1.1 503 Service Unavailable": 1}
        half[0].close()
        half[1].close()
        fourth = opened(port, stack, host, 1, HALF)
        fourth[0].sendall(b"x\r\n\r\n")
        assert replies(fourth) == {b"HTTP/1.1 200 OK": 1}
