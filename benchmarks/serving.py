"""A bundle server while 100 clients keep half requests open, or ask without a pause: how long an honest client waits.

Server and hostile clients are separate processes. The hostile ones come from 100 addresses of 127.0.0.0/8, or all
from one, and reopen at once what the server ends (Linux: every address of 127.0.0.0/8 is this machine). They share
the processor with the server. Whatever is not answered with 200 counts as never.
"""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.measure import Row
from protocol.node.http import free_port
from protocol.node.http_shares import CONNECTIONS_EACH, HALF_REQUESTS_EACH

HOST = "127.0.0.1"
CLIENTS = 100
HALF = b"GET /healthz HTTP/1.1\r\nhost: x\r\nname: "
WHOLE = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
KINDS = {"half": (HALF_REQUESTS_EACH + 1, HALF), "whole": (CONNECTIONS_EACH, WHOLE)}
"""How many connections each client keeps, and what it sends on them: again after each answer."""
QUESTIONS = 500
ABOUT = "answer of a bundle server, 99 of 100, with 100 clients"


class Answer(NamedTuple):
    """Seconds that a question took, infinite without an answer, and of those the server's main thread computed."""

    seconds: float
    computed: float


def rows() -> list[Row]:
    """The 99th percentile of the honest client's waits, for each kind of attack and for none."""
    found = []
    for what, kind in (("that reopen half requests", "half"), ("that ask without a pause", "whole")):
        for where, addresses in (("100 addresses", CLIENTS), ("one address", 1)):
            found += _rows(f"{ABOUT} {what}, from {where}", "1 s", answers(kind, addresses))
    return [*found, *_rows("the same, alone", "", answers())]


def _rows(what: str, goal: str, found: list[Answer]) -> list[Row]:
    waited, computed = (percentile(list(times), 0.99) for times in zip(*found, strict=True))
    ours = Row("of it processor time of the server, 99 of 100", f"{computed:.3f} s", "")
    return [Row(what, f"{waited:.3f} s", goal), ours]


def percentile(found: list[float], share: float) -> float:
    """The value that this share does not exceed."""
    return sorted(found)[math.ceil(share * len(found)) - 1]


def answers(kind: str = "", addresses: int = 0) -> list[Answer]:
    """An honest client's questions, one after the other; hostile clients of a kind on that many addresses."""
    with serving() as (port, server), attacking(port, kind, addresses):
        return [answer(port, server) for _ in range(QUESTIONS)]


def answer(port: int, server: int) -> Answer:
    """One question; `server` is the server's process."""
    before = processor_seconds(server)
    seconds = ask(port)
    return Answer(seconds, processor_seconds(server) - before)


def processor_seconds(process: int) -> float:
    """Seconds that a process's main thread has computed (Linux)."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def ask(port: int) -> float:
    """Seconds of one question on its own connection."""
    start = time.perf_counter()
    connection = HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        answered = connection.getresponse().status == 200
    except (OSError, HTTPException):
        answered = False
    finally:
        connection.close()
    return time.perf_counter() - start if answered else math.inf


@contextmanager
def serving() -> Iterator[tuple[int, int]]:
    """`assay serve` with nothing to serve; its port and its process."""
    port = free_port(HOST)
    command = [str(Path(sys.executable).parent / "assay"), "serve", "--port", str(port)]
    with TemporaryDirectory() as home, process(command, {"ASSAY_HOME": home}) as server:
        while ask(port) == math.inf:
            time.sleep(0.1)
        yield port, server


@contextmanager
def attacking(port: int, kind: str, addresses: int) -> Iterator[None]:
    """Hostile clients, once they have had two seconds."""
    if not addresses:
        yield
        return
    with process([sys.executable, "-m", "benchmarks.serving", str(port), kind, str(addresses)], {}):
        time.sleep(2)
        yield


@contextmanager
def process(command: list[str], environment: dict[str, str]) -> Iterator[int]:
    """A process that is ended afterwards; its number."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    try:
        yield running.pid
    finally:
        running.kill()
        running.wait()


async def attack(port: int, kind: str, addresses: int) -> None:
    """All hostile clients."""
    hosts = [f"127.0.1.{1 + number % addresses}" for number in range(CLIENTS)]
    each, said = KINDS[kind]
    await asyncio.gather(*(keep_on(port, host, said) for host in hosts for _ in range(each)))


async def keep_on(port: int, host: str, said: bytes) -> None:
    """Repeat the request after every answer, reconnecting when a connection ends, for ever."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(HOST, port, local_addr=(host, 0))
            writer.write(said)
            while await reader.read(1 << 16):
                writer.write(said)
            writer.close()


if __name__ == "__main__":
    asyncio.run(attack(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
