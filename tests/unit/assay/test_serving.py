"""The bundle server: what it serves to a real client, and a check that it serves nothing else."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from threading import Thread
from time import sleep

import pytest

from assay.serving import application
from protocol.node.http import PortTaken, bind, server

HASH = "ab" * 32
BLOB = "cd" * 32


@dataclass(frozen=True)
class Client:
    """Sends requests to a running server. Paths are sent unchanged, including dots."""

    port: int

    def ask(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request(method, path, body=b"x" if method in ("POST", "PUT", "PATCH") else None)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    home = tmp_path_factory.mktemp("home")
    bundle = home / "bundles" / HASH
    (bundle / "blobs" / "cd").mkdir(parents=True)
    (bundle / "manifest.json").write_bytes(b"{}")
    (bundle / "blobs" / "cd" / BLOB).write_bytes(b"blob")
    (bundle / "blobs" / "cd" / ".partial-1").write_bytes(b"half")
    (bundle / "notes.txt").write_bytes(b"private")
    (home / "accounts.json").write_bytes(b"secret")
    bound = bind("127.0.0.1", 0)
    running = server(application(home / "bundles"))
    thread = Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    while not running.started:
        sleep(0.01)
    yield Client(bound.getsockname()[1])
    running.should_exit = True
    thread.join()


def test_a_bundle_is_served(client: Client) -> None:
    assert client.ask(f"/bundles/{HASH}/manifest.json") == (200, b"{}")
    assert client.ask(f"/bundles/{HASH}/blobs/cd/{BLOB}") == (200, b"blob")
    assert client.ask("/healthz")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        f"/bundles/{'00' * 32}/manifest.json",
        f"/bundles/{HASH.upper()}/manifest.json",
        f"/bundles/{HASH}/notes.txt",
        f"/bundles/{HASH}/",
        f"/bundles/{HASH}/blobs/cd/.partial-1",
        f"/bundles/{HASH}/blobs/ef/{BLOB}",
        f"/bundles/{HASH}/blobs/../manifest.json",
        f"/bundles/{HASH}/blobs/%2e%2e/manifest.json",
        f"/bundles/{HASH}/..%2f..%2faccounts.json",
        "/bundles/../accounts.json",
        "/bundles/%2e%2e/accounts.json",
        "/bundles/..%2faccounts.json",
        "/docs",
        "/openapi.json",
        "/",
    ],
)
def test_nothing_else_is_served(client: Client, path: str) -> None:
    assert client.ask(path)[0] in (404, 422)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_it_is_read_only(client: Client, method: str) -> None:
    assert client.ask(f"/bundles/{HASH}/manifest.json", method)[0] == 405


def test_a_port_in_use_is_one_clear_line() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(PortTaken, match="choose another --port"),
    ):
        bind("127.0.0.1", taken.getsockname()[1])
