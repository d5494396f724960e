"""The parties' HTTP servers: announced addresses, and clients that are silent, slow or many."""

from __future__ import annotations

import asyncio
import resource
import socket
from contextlib import ExitStack
from http.client import HTTPConnection
from threading import Event
from time import sleep

import pytest

from protocol.errors import ExitCode
from protocol.node import http_shares, http_timeouts
from protocol.node.http import FILES, NotPublic, bind, hold_port, require_public, server, url_of
from protocol.node.http_clients import client_of, share_of
from protocol.node.http_shares import CONNECTIONS_EACH
from tests.unit.node.apps import MIB, PATIENCE, Message, Receive, Send, answers, served


def test_an_answer_does_not_wait_for_an_acknowledgement() -> None:
    """The server's connections have TCP_NODELAY. asyncio, which uvicorn uses, sets this option if it
    recognises the socket as TCP.
    """

    async def nodelay() -> int:
        found = asyncio.get_running_loop().create_future()

        def taken(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.set_result(
                writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            )
            writer.close()

        async with await asyncio.start_server(taken, sock=bind("127.0.0.1", 0)) as running:
            _, writer = await asyncio.open_connection(*running.sockets[0].getsockname()[:2])
            writer.close()
            return int(await found)

    assert asyncio.run(nodelay()) == 1


@pytest.mark.parametrize(
    ("hard", "soft"), [(4_096, 4_096), (1 << 20, FILES), (resource.RLIM_INFINITY, FILES)]
)
def test_a_process_with_a_server_may_open_as_many_files_as_the_system_permits(
    hard: int, soft: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _kind: (1_024, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: found.append((kind, limits)))
    server(None)
    assert found == [(resource.RLIMIT_NOFILE, (soft, hard))]


def test_an_ipv6_address_stands_in_brackets() -> None:
    assert url_of("::1", 8701) == "http://[::1]:8701"
    assert url_of("192.0.2.7", 1) == "http://192.0.2.7:1"
    assert url_of("node.example.org", 80) == "http://node.example.org:80"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8701",
        "http://127.8.8.8",
        "http://0.0.0.0:8701",
        "http://[::1]:8701",
        "http://[::]:8701",
        "http://[::ffff:127.0.0.1]:8701",
        "http://localhost:8701",
        "http://LOCALHOST",
        "http://me.localhost/",
        "http://[::1",
        "node.example.org:8701",
        "",
    ],
)
def test_an_address_that_leads_strangers_nowhere_is_not_announced(url: str) -> None:
    with pytest.raises(NotPublic, match="--here") as raised:
        require_public(url, "--here")
    assert raised.value.exit_code is ExitCode.HOPELESS


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.7:8701",
        "https://node.example.org/assay",
        "http://10.0.0.3:1",
        "http://[2001:db8::1]:1",
    ],
)
def test_an_address_of_another_machine_is_announced(url: str) -> None:
    require_public(url)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check connections often, and let answers be read soon. A request may take `PATIENCE` seconds, until a
    test sets another limit.
    """
    monkeypatch.setattr(http_timeouts, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(http_timeouts, "REQUEST_SECONDS", PATIENCE)
    monkeypatch.setattr(http_timeouts, "READING_SECONDS", 0.1)


def is_ended(client: socket.socket) -> bool:
    """Whether the other side ends the connection within `PATIENCE` seconds; received bytes are ignored."""
    client.settimeout(PATIENCE)
    try:
        while client.recv(MIB):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def is_cut_off(client: socket.socket) -> bool:
    """Whether the other side ends the connection while 4,000 bytes are sent slowly. Headers may be longer
    than that, so only the slowness can be the reason.
    """
    try:
        for _ in range(4_000):
            client.sendall(b"a")
            sleep(0.005)
    except (ConnectionResetError, BrokenPipeError):
        return True
    return False


def ask(place: tuple[str, int]) -> tuple[int, bytes]:
    """Send one ordinary request; returns the answer's status and body."""
    connection = HTTPConnection(*place, timeout=PATIENCE)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.usefixtures("hasty")
def test_clients_that_say_nothing_do_not_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(answers) as place, ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(place)) for _ in range(10 * CONNECTIONS_EACH)]
        monkeypatch.setattr(http_timeouts, "REQUEST_SECONDS", 0.1)
        assert all(is_ended(client) for client in silent)
        monkeypatch.setattr(http_timeouts, "REQUEST_SECONDS", PATIENCE)
        assert ask(place) == (200, b"hello")


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "begin",
    [
        "GET / HTTP/1.1\r\nhost: x\r\nname: ",
        "GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\nname: ",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n",
    ],
    ids=["headers", "headers of a second request", "body"],
)
def test_a_client_that_trickles_a_request_is_let_go(begin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(answers) as place, socket.create_connection(place) as client:
        client.sendall(begin.encode())
        monkeypatch.setattr(http_timeouts, "REQUEST_SECONDS", 0.1)
        assert is_cut_off(client)


@pytest.mark.usefixtures("hasty")
def test_a_client_that_does_not_read_is_let_go() -> None:
    sent = Event()

    async def endless(_scope: Message, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(64):  # more than any buffer on the way
            await send({"type": "http.response.body", "body": bytes(MIB), "more_body": True})
        sent.set()

    with served(endless) as place, socket.create_connection(place) as client:
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert sent.wait(PATIENCE)


@pytest.mark.usefixtures("hasty")
def test_whoever_waits_for_a_slow_answer_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(scope: Message, receive: Receive, send: Send) -> None:
        monkeypatch.setattr(http_timeouts, "REQUEST_SECONDS", 0.1)
        await asyncio.sleep(1)  # ten times what a client may take
        await answers(scope, receive, send)

    with served(slow) as place:
        assert ask(place) == (200, b"hello")


@pytest.mark.parametrize(
    ("host", "share"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_a_share_is_an_ipv4_address_or_64_bits_of_ipv6(host: str, share: str) -> None:
    assert str(share_of(client_of(host))) == share


def test_a_proxys_connections_are_those_of_many_clients() -> None:
    with served(answers, "127.0.0.1") as place, ExitStack() as stack:
        for _ in range(CONNECTIONS_EACH + 1):
            client = stack.enter_context(socket.create_connection(place, PATIENCE))
            client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nname: ")  # each with half a request
        assert ask(place) == (200, b"hello")


def test_room_is_made_by_ending_what_waits_longest_for_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_shares, "MAX_CONNECTIONS", 4)
    asked, go = Event(), Event()

    async def patient(scope: Message, receive: Receive, send: Send) -> None:
        asked.set()
        while scope["path"] == "/slow" and not go.is_set():
            await asyncio.sleep(0.01)
        await answers(scope, receive, send)

    with served(patient, "127.0.0.1") as place, ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(place, PATIENCE)) for _ in range(4)]
        clients[0].sendall(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n")  # the oldest waits for the server
        assert asked.wait(PATIENCE)
        clients[3].sendall(b"GET / HTTP/1.1\r\n")
        assert ask(place) == (200, b"hello")
        assert is_ended(clients[1])
        assert ask(place) == (200, b"hello")
        clients[3].sendall(b"host: x\r\n\r\n")
        assert clients[3].recv(MIB).startswith(b"HTTP/1.1 200")
        go.set()
        assert clients[0].recv(MIB).startswith(b"HTTP/1.1 200")


def test_a_held_port_is_for_the_server_that_names_it() -> None:
    with hold_port("127.0.0.1") as held:
        port = held.getsockname()[1]
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with bind("127.0.0.1", port) as server:
            server.listen()
            socket.create_connection(("127.0.0.1", port)).close()
