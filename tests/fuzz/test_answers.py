"""The readers of HTTP answers against a server with 2,900 almost correct answers; `test_readers` has the
other readers.

A reader may raise only its module's own error, of one line, and must keep its limits of size and time. Inputs
are seeded mutations of correct ones; a failure shows its input.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from protocol.node.addresses import Address
from protocol.node.http_client import BadAnswer, HttpClient
from protocol.node.reach import Reach
from protocol.tasks.bundles import BundleError, Limits
from protocol.tasks.bundles.sources import open_source, read
from protocol.tasks.bundles.write import MANIFEST
from tests.fuzz.strangers import kind
from tests.unit.node.servers import serving
from tests.unit.solver import tiny
from verifier.solver_client import Shapes, SolverClient

DUE = 32 * (tiny.SEGMENTS + 1)
PATIENCE = 0.2
HUGE = 1 << 22
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % DUE
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
RIGHT = [
    HEAD + bytes(DUE),
    CHUNKED
    + b"40\r\n"
    + bytes(64)
    + b"\r\n%x;a=b\r\n" % (DUE - 64)
    + bytes(DUE - 64)
    + b"\r\n0\r\nx: y\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\n" + bytes(DUE),
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(bytes(1 << 20)),
    b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + bytes(DUE),
    b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: x\r\n\r\nlater",
    b"\x16\x03\x03\x00\x4a\x02\x00\x00\x46\x03\x03" + bytes(70),  # TLS: a truncated ServerHello
    b"\x15\x03\x01\x00\x02\x02\x28",  # TLS: an alert
]
BITS = [
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b"\0",
        b"\xff" * 40,
        b" ",
        b":",
        b"HTTP/1.1 ",
        b"HTTP/9.9 999 \r\n",
        b"HTTP/1.1 -1 x\r\n",
    ),
    *(b"content-length: 5\r\n", b"content-length: -1\r\n", b"content-length: 9" + b"9" * 5_000 + b"\r\n"),
    *(
        b"transfer-encoding: gzip, chunked\r\n",
        b"content-encoding: br\r\n",
        b"content-encoding: \xff\x1b[2J\r\n",
    ),
    *(b"connection: close\r\n", b"upgrade: h2c\r\n", b"x: " + b"y" * 120_000 + b"\r\n", b"a: b\r\n" * 30_000),
    *(b"ffffffffffffffff\r\n", b"-5\r\n", b"0\r\n\r\n", b"1;" + b"x" * 5_000 + b"\r\ny\r\n", bytes(HUGE)),
    *(
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000,
        b"\x16\x03\x03\xff\xff",
    ),
]


def hostile(chance: random.Random) -> bytes:
    """An answer that is almost correct."""
    data = chance.choice(RIGHT)
    for _ in range(chance.randrange(4)):
        at = chance.choice((0, 9, data.find(b"\r\n") + 2, chance.randrange(len(data) + 1), len(data)))
        data = (
            data[:at]
            + chance.choice((*BITS, chance.randbytes(5)))
            + data[at + chance.choice((0, 0, 1, 30, HUGE)) :]
        )
    return data


class Answers:
    """Answers the requests to a server. After one answer in a hundred, it leaves the connection open and
    silent for a while.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.said = b""

    def __call__(self, connection: socket.socket, _target: str) -> None:
        self.said = hostile(self._chance)
        with suppress(OSError):
            connection.sendall(self.said)
            if self._chance.random() < 0.01:
                connection.settimeout(3 * PATIENCE)
                connection.recv(1)


def timed(found: Counter[str], answers: Answers, what: Callable[[], str]) -> None:
    """Make one request, count its outcome, and check that it did not take too long."""
    begun = time.monotonic()
    try:
        found[what()] += 1
    except Exception as error:
        raise AssertionError(f"after {answers.said[:300]!r}") from error
    assert time.monotonic() - begun < 50 * PATIENCE, answers.said[
        :300
    ]  # generous, as the machine may be slow; a missing limit is still seen


@contextmanager
def talking(handle: Callable[[socket.socket, str], None]) -> Iterator[int]:
    """Run a server that answers whatever it receives, even TLS; yields its port."""

    def run() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    connection.recv(1 << 16)
                    handle(connection, "")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=run)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(("scheme", "count"), [("http", 2_000), ("https", 300)])
def test_answers(scheme: str, count: int) -> None:
    answers, found = Answers(4), Counter[str]()

    async def ask(address: Address) -> str:
        into = bytearray()
        try:
            async with asyncio.timeout(PATIENCE), HttpClient() as client:
                await client.get(address, DUE, into)
        except BadAnswer as error:
            return kind(error, answers.said[:300])
        except TimeoutError:
            return "TimeoutError"
        finally:
            assert len(into) <= DUE + (1 << 16), answers.said[:300]
        return f"{len(into)} bytes"

    with talking(answers) as port, asyncio.Runner() as runner:
        address = Address(scheme, "127.0.0.1", port)
        for _ in range(count):
            timed(found, answers, lambda: runner.run(ask(address)))
    assert len(found) > (4 if scheme == "http" else 0), found


def test_answers_to_a_verifier_and_to_who_fetches_a_bundle() -> None:
    answers, found = Answers(5), Counter[str]()
    shapes = Shapes(tiny.step_program(), tiny.SEGMENTS, tiny.STEPS)

    def roots() -> str:
        asked = SolverClient(Address.parse(server.url), 1, shapes, PATIENCE, Reach())
        return str(asked.segment_roots() is not None)

    def manifest() -> str:
        with closing(open_source(server.url, Limits(seconds=PATIENCE))) as source:
            try:
                return f"{len(read(source, MANIFEST, DUE)) <= DUE}"
            except BundleError as error:
                return kind(error, answers.said[:300])

    with serving(answers) as server:
        for _ in range(300):
            timed(found, answers, roots)
            timed(found, answers, manifest)
    assert {"True", "False", "BundleUnavailable"} <= set(found), found
