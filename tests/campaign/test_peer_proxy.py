"""The peer proxy itself: in the honest mode it changes nothing, each other mode has its fault, and closing it
leaves nothing behind.
"""

from __future__ import annotations

import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from itertools import islice

import pytest

from tests.adversaries.waiting import until
from tests.campaign.bombs import ENCODINGS, UNPACKED, bomb
from tests.campaign.peer_proxy import FORMS, MODES, PeerProxy
from tests.campaign.upstream import BODY, Upstream, upstream

SHORT = 2.0
"""Seconds without an answer after which a test takes a peer to be silent."""


@pytest.fixture
def party() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


@pytest.fixture
def proxy(party: Upstream) -> Iterator[PeerProxy]:
    before = set(threading.enumerate())
    with PeerProxy(f"{party.url}/") as made:
        yield made
    assert until_only(before)


def until_only(threads: set[threading.Thread]) -> bool:
    """Wait until no thread is left besides `threads`; returns False if another one is left after 20 s. The
    threads of the server behind the proxy end only when they see that their connection is closed.
    """
    deadline = time.monotonic() + 20
    while not set(threading.enumerate()) <= threads:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def connection(url: str, timeout: float = 20.0) -> HTTPConnection:
    return HTTPConnection(url.removeprefix("http://"), timeout=timeout)


@contextmanager
def ask(
    url: str, target: str = "/body", method: str = "GET", data: bytes | None = None
) -> Iterator[HTTPResponse]:
    """Send a request; yields the answer, whose body is not read yet."""
    with closing(connection(url)) as asking:
        asking.request(method, target, data, {"X-Own": "kept"})
        with asking.getresponse() as answer:
            yield answer


def status_and_headers(answer: HTTPResponse) -> tuple[int, str, list[tuple[str, str]]]:
    return answer.status, answer.reason, answer.getheaders()


@pytest.mark.parametrize(
    ("method", "target"),
    [
        *(("GET", target) for target in ("/body", "/body?a=1&b=%20", "/chunks", "/until-closed", "/nothing")),
        *(("HEAD", target) for target in ("/body", "/nothing")),
    ],
)
def test_an_honest_peer_passes_all_on_unchanged(
    party: Upstream, proxy: PeerProxy, method: str, target: str
) -> None:
    with ask(party.url, target, method) as direct, ask(proxy.url, target, method) as passed:
        assert status_and_headers(passed) == status_and_headers(direct)
        assert passed.read() == direct.read()
    (_, path, own), (_, path_passed, own_passed) = party.questions
    assert path_passed == path
    assert own_passed | {"Host": ""} == own | {"Host": ""}


def test_what_is_posted_arrives_whole(party: Upstream, proxy: PeerProxy) -> None:
    with ask(proxy.url, "/salts", "POST", BODY) as answer:
        assert (answer.status, answer.read()) == (201, BODY)
    assert [question[:2] for question in party.questions] == [("POST", "/salts")]


def test_connections_are_kept_and_a_mode_is_for_the_next_question(proxy: PeerProxy) -> None:
    asking = connection(proxy.url)
    for mode, status in (("honest", 200), ("redirecting", 302), ("honest", 200)):
        proxy.mode = mode  # type: ignore[assignment]
        asking.request("GET", "/body")
        answer = asking.getresponse()
        answer.read()
        assert answer.status == status
    assert next(proxy.connections) == 2
    asking.close()


def test_a_party_that_is_gone_gives_no_answer() -> None:
    with upstream() as gone:
        url = gone.url
    with PeerProxy(url) as proxy, pytest.raises(ConnectionError), ask(proxy.url):
        pass


@pytest.mark.parametrize(("mode", "form"), [("silent", None), ("half-open", "question")])
def test_a_silent_peer_takes_a_question_and_is_kept_by_nobody(
    proxy: PeerProxy, party: Upstream, mode: str, form: str | None
) -> None:
    proxy.mode, proxy.form = mode, form  # type: ignore[assignment]
    asking = connection(proxy.url, SHORT)
    asking.request("GET", "/body")
    with pytest.raises(TimeoutError):
        asking.getresponse()
    until("the peer takes the question", lambda: bool(proxy.asked))
    assert (proxy.asked, party.questions) == (["/body"], [])
    asking.close()


def test_a_peer_trickles_a_byte_at_a_time(proxy: PeerProxy) -> None:
    proxy.mode, proxy.pause = "trickling", 0.02
    with ask(proxy.url) as answer:
        begun = time.monotonic()
        assert answer.read(5) == BODY[:5]
        assert time.monotonic() - begun > 4 * proxy.pause


@pytest.mark.parametrize("form", FORMS["huge"])
def test_a_huge_body_is_sent_in_pieces_as_long_as_somebody_reads(proxy: PeerProxy, form: str) -> None:
    proxy.mode, proxy.form = "huge", form
    tracemalloc.start()
    try:
        with ask(proxy.url) as answer:
            assert (answer.length, answer.chunked) == ((1 << 50, False) if form == "length" else (None, True))
            assert sum(len(answer.read(1 << 20)) for _ in range(64)) == 1 << 26
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


def test_redirects_lead_round_in_circles_and_where_nobody_may_go(proxy: PeerProxy) -> None:
    proxy.mode = "redirecting"
    found = []
    for _ in FORMS["redirecting"]:
        with ask(proxy.url) as answer:
            found.append((answer.status, answer.getheader("location")))
    assert found == [
        (302, f"{proxy.url}/body"),
        (302, "http://169.254.169.254/latest/meta-data/"),
        (302, "file:///etc/passwd"),
    ]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_bomb_is_small_on_its_way(proxy: PeerProxy, encoding: str) -> None:
    proxy.mode, proxy.form = "bomb", encoding
    with ask(proxy.url) as answer:
        assert answer.getheader("content-encoding") == encoding
        assert answer.read() == b"".join(bomb(encoding))  # type: ignore[arg-type]
    assert proxy.sent < UNPACKED >> 9


@pytest.mark.parametrize(("encoding", "bits"), [("gzip", 16 + zlib.MAX_WBITS), ("deflate", zlib.MAX_WBITS)])
def test_a_bomb_unpacks_to_zeros_with_their_checksum(encoding: str, bits: int) -> None:
    unpacker, unpacked = zlib.decompressobj(bits), 0
    for piece in bomb(encoding):  # type: ignore[arg-type]
        unpacked += len(unpacker.decompress(piece))
    assert (unpacked, unpacker.eof, unpacker.unused_data) == (UNPACKED, True, b"")


def test_a_bomb_of_zstd_is_blocks_of_one_byte_each() -> None:
    """The bomb consists of RLE blocks of one byte each, and only the last block is marked as the last.

    RFC 8878, 3.1.1.2: a block header has 3 bytes, little-endian. From the lowest bit on, it has 1 bit for
    "last block", 2 bits for the type (1: RLE), and the size.
    """
    data = b"".join(bomb("zstd"))
    assert data[:6] == bytes.fromhex("28b52ffd0038")
    headers = [int.from_bytes(data[at : at + 3], "little") for at in range(6, len(data), 4)]
    assert {header >> 1 & 3 for header in headers} == {1}
    assert [header & 1 for header in headers] == [0] * (len(headers) - 1) + [1]
    assert sum(header >> 3 for header in headers) == UNPACKED


def test_a_two_faced_peer_tells_every_second_connection_something_else(proxy: PeerProxy) -> None:
    proxy.mode = "two-faced"
    found = []
    for target in ("/body", "/body", "/chunks", "/chunks"):
        with ask(proxy.url, target) as answer:
            found.append(answer.read())
    assert found[0] == found[2] == BODY
    assert found[1] == found[3] == bytes(byte ^ 1 for byte in BODY)


@pytest.mark.parametrize("target", ["/body", "/chunks"])
def test_a_peer_that_vanishes_has_sent_half_and_keeps_the_connection(proxy: PeerProxy, target: str) -> None:
    proxy.mode, proxy.form = "half-open", "body"
    with socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])), SHORT) as client:
        client.sendall(f"GET {target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        received = 0
        with suppress(TimeoutError):
            while piece := client.recv(1 << 16):
                received += len(piece)
            pytest.fail("the peer said that it is gone")
    assert 0 < proxy.sent <= len(BODY) // 2
    assert proxy.sent < received < proxy.sent + 1000


@pytest.mark.parametrize("target", ["/body", "/chunks"])
def test_a_peer_resets_in_the_middle_of_a_body(proxy: PeerProxy, target: str) -> None:
    proxy.mode, proxy.form = "half-open", "reset"
    with ask(proxy.url, target) as answer, pytest.raises((ConnectionResetError, IncompleteRead)):
        answer.read()
    assert 0 < proxy.sent <= len(BODY) // 2


def test_closing_ends_what_is_kept_waiting(party: Upstream) -> None:
    before = set(threading.enumerate())
    proxy = PeerProxy(party.url)
    waiting = []
    for mode in islice(MODES, 1, 4):
        proxy.mode = mode
        waiting.append(connection(proxy.url))
        waiting[-1].request("GET", "/body")
    deadline = time.monotonic() + 20
    while len(proxy.asked) < len(waiting):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    proxy.close()
    assert until_only(before)
    with pytest.raises(ConnectionRefusedError), ask(proxy.url):
        pass
    for asking in waiting:
        asking.close()
