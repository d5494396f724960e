"""Proxies and passwords from the environment are used for requests to a chain's node, although they are read
only once.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from protocol.chain.transport import Transport

NODE = "http://node.invalid:8545/"


class Answering(BaseHTTPRequestHandler):
    """Answers every request with the same result, and notes the request's path and password."""

    asked: list[tuple[str, str | None]]

    def do_POST(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": "0x1"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Server:
    """A server that runs until it is closed."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Noting", (Answering,), {"asked": self.asked})
        )
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("http_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))


def ask(url: str) -> object:
    transport = Transport(url, 5.0, lambda: None)
    try:
        return transport.ask("eth_chainId", [])["result"]
    finally:
        transport.close()


def test_a_node_is_asked_through_the_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    assert ask(NODE) == "0x1"
    assert server.asked == [(NODE, None)]


def test_but_for_those_that_are_left_out(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert ask(server.url) == "0x1"
    assert server.asked == [("/", None)]


def test_a_node_gets_the_password_that_is_kept_for_it(server: Server, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login us password secret\n")
    assert ask(server.url) == "0x1"
    ((_, password),) = server.asked
    assert password is not None
    assert password.startswith("Basic ")
