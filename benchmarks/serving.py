"""Measures how long an honest client waits for a bundle server that 100 hostile clients attack.

The hostile clients keep incomplete requests open, or send requests without a pause. The server and the
hostile clients are separate processes that share the processor. The hostile clients come from a single
address, or from 100 addresses of 127.0.0.0/8. On Linux, all of these addresses belong to this machine.
Hostile clients reconnect immediately when the server closes a connection. A request that is not answered with
200 counts as infinitely slow.
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
"""For each attack: the number of connections per client, and the bytes that the client sends on each of them,
first when it has connected and again after every answer.
"""
QUESTIONS = 500
ABOUT = "answer of a bundle server, 99 of 100, with 100 clients"


class Answer(NamedTuple):
    """Seconds of a request (infinite if it fails), and processor seconds of the server's main thread."""

    seconds: float
    computed: float


def rows() -> list[Row]:
    """Rows with the 99th percentile of the honest client's waits, for each attack and without one."""
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
    """The `share` quantile of `found`: its smallest value v such that at least this share of all values is at
    most v.
    """
    return sorted(found)[math.ceil(share * len(found)) - 1]


def answers(kind: str = "", addresses: int = 0) -> list[Answer]:
    """The server's answers to an honest client's successive requests.

    Hostile clients attack the server from `addresses` addresses. If this is 0, there is no attack.
    """
    with serving() as (port, server), attacking(port, kind, addresses):
        return [answer(port, server) for _ in range(QUESTIONS)]


def answer(port: int, server: int) -> Answer:
    """Send one request; `server` is the server's process id."""
    before = processor_seconds(server)
    seconds = ask(port)
    return Answer(seconds, processor_seconds(server) - before)


def processor_seconds(process: int) -> float:
    """Seconds that a process's main thread has spent computing (Linux)."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def ask(port: int) -> float:
    """Seconds of one request on a new connection; infinite if the request fails."""
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
    """Run `assay serve` with nothing to serve; yield its port and process id."""
    port = free_port(HOST)
    command = [str(Path(sys.executable).parent / "assay"), "serve", "--port", str(port)]
    with TemporaryDirectory() as home, process(command, {"ASSAY_HOME": home}) as server:
        while ask(port) == math.inf:
            time.sleep(0.1)
        yield port, server


@contextmanager
def attacking(port: int, kind: str, addresses: int) -> Iterator[None]:
    """Run hostile clients. They have two seconds to start."""
    if not addresses:
        yield
        return
    with process([sys.executable, "-m", "benchmarks.serving", str(port), kind, str(addresses)], {}):
        time.sleep(2)
        yield


@contextmanager
def process(command: list[str], environment: dict[str, str]) -> Iterator[int]:
    """Run a process, yield its id, and kill it afterwards."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    try:
        yield running.pid
    finally:
        running.kill()
        running.wait()


async def attack(port: int, kind: str, addresses: int) -> None:
    """Run all hostile clients."""
    hosts = [f"127.0.1.{1 + number % addresses}" for number in range(CLIENTS)]
    each, said = KINDS[kind]
    await asyncio.gather(*(keep_on(port, host, said) for host in hosts for _ in range(each)))


async def keep_on(port: int, host: str, said: bytes) -> None:
    """Send the request again after every answer, and reconnect whenever a connection ends, for ever."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(HOST, port, local_addr=(host, 0))
            writer.write(said)
            while await reader.read(1 << 16):
                writer.write(said)
            writer.close()


if __name__ == "__main__":
    asyncio.run(attack(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
