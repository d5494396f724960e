"""Bundle servers that lie, trickle, redirect or send zip bombs; addresses that an operator forbids."""

from __future__ import annotations

import errno
import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from pathlib import Path

import pytest

from protocol.commitments import BlobStore
from protocol.commitments.store import Arriving
from protocol.tasks.bundles import BundleRefused, BundleUnavailable, Limits, WrongFile
from protocol.tasks.bundles.sources import open_source, read
from tests.timing import require_quick

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server(ThreadingHTTPServer):
    """Answers each request with the test's `answer`."""

    daemon_threads = True
    answer: Answer
    asked: list[str]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        self.server.asked.append(self.path)
        self.close_connection = True
        self.server.answer(self)

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        running.asked = []
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def reply(status: int, body: bytes, headers: dict[str, str] | None = None) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in (headers or {}).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer


def manifest(server: Server, limit: int = 1000, seconds: float = 10.0) -> bytes:
    url = f"http://127.0.0.1:{server.server_port}/bundle/"
    with closing(open_source(url, Limits(seconds=seconds))) as source:
        return read(source, "manifest.json", limit)


def test_a_file_is_read_below_the_address(server: Server) -> None:
    server.answer = reply(200, b"hello")
    assert manifest(server) == b"hello"
    assert server.asked == ["/bundle/manifest.json"]


@pytest.mark.parametrize("status", [206, 301, 302, 404, 500])
def test_any_other_answer_is_no_file(server: Server, status: int) -> None:
    server.answer = reply(status, b"hello", {"Location": "http://127.0.0.1:1/elsewhere"})
    with pytest.raises(BundleUnavailable, match=f"HTTP {status}"):
        manifest(server)
    assert len(server.asked) == 1, "redirects are not followed"


def test_a_bomb_that_would_unpack_is_not_unpacked(server: Server) -> None:
    server.answer = reply(200, gzip.compress(bytes(10_000_000)), {"Content-Encoding": "gzip"})
    with pytest.raises(BundleUnavailable, match="gzip"):
        manifest(server, limit=100_000)


def test_an_endless_answer_is_cut_off(server: Server) -> None:
    sent = 0

    def endless(request: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        try:
            while sent < 1 << 30:
                request.wfile.write(bytes(1 << 16))
                sent += 1 << 16
        except OSError:
            return

    server.answer = endless
    with pytest.raises(WrongFile, match="at most 1000 bytes"):
        manifest(server)
    assert sent < 1 << 26


def test_a_server_that_trickles_loses(server: Server) -> None:
    def trickle(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        try:
            while True:
                request.wfile.write(b"x")
                request.wfile.flush()
                time.sleep(0.05)
        except OSError:
            return

    server.answer = trickle

    def asked() -> None:
        with pytest.raises(BundleUnavailable, match="when the time was over"):
            manifest(server, seconds=0.5)

    require_quick(4, asked)


def test_a_server_that_trickles_its_headers_loses(server: Server) -> None:
    def trickle(request: BaseHTTPRequestHandler) -> None:
        try:
            for piece in chain([b"HTTP/1.1 200 OK\r\n"], repeat(b"a: b\r\n")):
                request.wfile.write(piece)
                request.wfile.flush()
                time.sleep(0.05)
        except OSError:
            return

    server.answer = trickle

    def asked() -> None:
        with pytest.raises(BundleUnavailable, match="0 bytes when the time was over"):
            manifest(server, seconds=0.5)

    require_quick(4, asked)


def test_an_answer_cut_short_is_no_file(server: Server) -> None:
    def short(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "100")
        request.end_headers()
        request.wfile.write(b"only this")

    server.answer = short
    with pytest.raises(BundleUnavailable, match="RemoteProtocolError"):
        manifest(server)


def test_nobody_at_the_address() -> None:
    with (
        closing(open_source("http://127.0.0.1:1/", Limits())) as source,
        pytest.raises(BundleUnavailable, match="ConnectError"),
    ):
        read(source, "manifest.json", 10)


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1/bundle",
        "http://192.168.1.5:8700/bundle",
        "http://169.254.169.254/bundle",
        "http://[fd00::1]/bundle",
        "http://[::ffff:127.0.0.1]/bundle",
        "http://0.0.0.0:8700/bundle",
        "http://[::]:8700/bundle",
        "http://127.0.0.1@example.org/bundle",
        "http://[::1/bundle",
        "http://example.org:99999/bundle",
        "https://user:secret@example.org/bundle",
        "https:///bundle",
        "ftp://example.org/bundle",
        "file:///etc",
        "/etc",
        "memory://bundle",
        "s3://others/bundle",
        "s3://mine-too/bundle",
        "file:///srv/bundles/../../etc",
        "file:///srv/bundles/%2e%2e/%2e%2e/etc",
        "https://example.org/bundle?token=1",
        "https://example.org/bundle#part",
        "https://example.org/\x1b[2J",
        "simplecache::file:///etc",
        "",
    ],
)
def test_addresses_that_are_not_allowed_are_refused_before_anything_is_asked(url: str) -> None:
    limits = Limits(allowed=("file:///srv/bundles/", "s3://mine"))
    with pytest.raises(BundleRefused, match="bundle address"):
        open_source(url, limits)


@pytest.mark.parametrize(
    "url",
    ["http://example.org/bundle", "http://8.8.8.8:8700/bundle", "http://[2606:4700::1111]:8700/bundle"],
)
def test_plain_http_on_the_internet_is_as_good_as_https(url: str) -> None:
    open_source(url, Limits()).close()


@pytest.mark.parametrize("url", ["http://10.0.0.1/bundle", "http://[fd00::1]:8700/bundle"])
def test_an_operator_may_allow_its_private_network_or_ask_there_itself(url: str) -> None:
    open_source(url, Limits(allowed=(url.removesuffix("/bundle"),))).close()
    open_source(url, Limits(), anywhere=True).close()
    with pytest.raises(BundleRefused, match="the address of a host"):
        open_source("http://0.0.0.0:8700/bundle", Limits(), anywhere=True)


def test_on_another_chain_than_a_development_chain_this_machine_is_refused(server: Server) -> None:
    for host in ("127.0.0.1", "localhost", "[::1]"):
        with (
            pytest.raises(BundleRefused, match="an address on the internet"),
            closing(
                open_source(f"http://{host}:{server.server_port}/", Limits(this_machine=False))
            ) as source,
        ):
            read(source, "manifest.json", 10)
    assert server.asked == []


def leads_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Resolve all host names to these addresses."""

    def found(_host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)


def test_a_name_that_leads_into_a_private_network_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    leads_to(monkeypatch, "8.8.8.8", "127.0.0.1")
    with closing(open_source(f"http://bundles.example:{server.server_port}/", Limits())) as source:
        for _ in range(2):
            with pytest.raises(BundleRefused, match=r"got 127\.0\.0\.1"):
                read(source, "manifest.json", 10)
    assert server.asked == []


def test_what_a_name_leads_to_is_looked_up_once(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        hosts.append(request.headers["Host"])
        reply(200, b"hello")(request)

    server.answer = answer
    leads_to(monkeypatch, "127.0.0.1")
    name = f"bundles.example:{server.server_port}"
    limits = Limits(allowed=(f"http://{name}/",))  # the test's server is on this machine
    with closing(open_source(f"http://{name}/bundle", limits)) as source:
        assert read(source, "one", 10) == b"hello"
        leads_to(monkeypatch, "10.0.0.1")
        assert read(source, "two", 10) == b"hello"
    assert (server.asked, hosts) == (["/bundle/one", "/bundle/two"], [name, name])


@pytest.mark.parametrize("failure", [socket.gaierror(), UnicodeError()])
def test_a_name_that_leads_nowhere_is_an_address_without_a_bundle(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object, **__: object) -> list[tuple[object, ...]]:
        raise failure

    monkeypatch.setattr(socket, "getaddrinfo", none)
    with (
        closing(open_source("http://bundles.example/", Limits())) as source,
        pytest.raises(BundleUnavailable, match=type(failure).__name__),
    ):
        read(source, "manifest.json", 10)


def test_an_allowed_folder_is_read_within_the_limit(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "manifest.json").write_bytes(b"12345")
    limits = Limits(allowed=(tmp_path.as_uri(),))
    with closing(open_source((tmp_path / "bundle").as_uri(), limits)) as source:
        assert read(source, "manifest.json", 5) == b"12345"
        with pytest.raises(WrongFile):
            read(source, "manifest.json", 4)
        with pytest.raises(BundleUnavailable, match="FileNotFoundError"):
            read(source, "blobs/none", 4)


@pytest.mark.parametrize("where", ["folder", "server"])
def test_a_disk_that_is_full_is_no_fault_of_the_source(
    where: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: Arriving, _piece: bytes) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(Arriving, "extend", full)
    server.answer = reply(200, b"bytes")
    (tmp_path / "file").write_bytes(b"bytes")
    url = f"http://127.0.0.1:{server.server_port}" if where == "server" else tmp_path.as_uri()
    store = BlobStore(tmp_path / "store")
    limits = Limits(allowed=(tmp_path.parent.as_uri(),))
    arriving = store.arriving(sha256(b"bytes").hexdigest())
    with (
        closing(open_source(url, limits)) as source,
        pytest.raises(OSError, match="no space left"),
        arriving as blob,
    ):
        source.copy("file", 10, blob)
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
