"""Simulates network links on one machine, without root: TCP proxies on loopback with rate, delay and loss."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

PIECE = 1 << 11
"""Bytes forwarded at a time. On each of the two links, a piece waits until all earlier pieces have passed.
Pieces are as small as packets, so that these waits are as short as those of packets.
"""
ON_LINK, UNDER_WAY = 4, 1_024
"""`ON_LINK`: how many pieces of a connection, at most, may wait for one link. `UNDER_WAY`: how many pieces of a
connection, at most, may have passed all links but not yet have arrived.
"""
BURST = 0.005
"""Seconds of lost time that a link may make up for. Time is lost because waiting tasks are woken late."""

_Pieces = asyncio.Queue[tuple[float, bytes]]


@dataclass
class Link:
    """One direction of a machine's link. All traffic shares its rate in Mbit/s; None means an unlimited rate."""

    mbit: float | None = None
    free_at: float = field(default=0.0, init=False)
    """Time, on the event loop's clock, at which everything sent so far will have passed."""
    passed: int = field(default=0, init=False)
    """Total number of bytes that were sent over this link."""

    async def passing(self, count: int) -> None:
        """Wait until `count` bytes have passed, after all earlier bytes."""
        self.passed += count
        if self.mbit is None:
            return
        now = asyncio.get_running_loop().time()
        self.free_at = max(now - BURST, self.free_at) + count * 8 / (self.mbit * 1e6)
        await asyncio.sleep(self.free_at - now)


@dataclass
class Path:
    """The path of a server's answers. An answer first passes `links`, which are the server's uplink and the
    client's downlink. It then takes `delay` seconds more. A request has the same delay, but passes no links.

    `loss` is the chance that a piece of an answer is lost. A lost piece breaks the connection. The fields may
    be changed while the network runs. A new `loss` applies to later pieces, and new `links` apply to later
    connections. For answers, a new `delay` applies to later pieces. For requests, it applies to later
    connections.
    """

    links: Sequence[Link] = ()
    delay: float = 0.0
    loss: float = 0.0


class Network:
    """Runs proxies in a separate thread until the context ends. `seed` determines the losses."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="network", daemon=True)
        self._started = threading.Event()
        self.cut = 0
        """Number of broken connections."""

    def address(self, upstream: str, path: Path) -> str:
        """Start a proxy to the server at `upstream` (http://host:port) over a path; return the proxy's address."""
        return asyncio.run_coroutine_threadsafe(self._serve(upstream, path), self._loop).result()

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.StreamWriter] = set()
        self._connections: set[asyncio.Task[None]] = set()
        self._started.set()
        await self._ended.wait()
        for server in self._servers:
            server.close()
        for end in self._open:
            end.transport.abort()
        # Tasks are not cancelled: that would leak a connection that is being opened.
        await asyncio.gather(*self._connections)

    async def _serve(self, upstream: str, path: Path) -> str:
        where = urlsplit(upstream)

        async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with self._closing(writer), suppress(OSError):
                answers, questions = await asyncio.open_connection(where.hostname, where.port)
                with self._closing(questions):
                    asked = asyncio.create_task(self._pass(reader, questions, Path(delay=path.delay)))
                    await self._pass(answers, writer, path)
                    questions.transport.abort()
                    writer.transport.abort()
                    await asked

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(lead(reader, writer))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self._servers.append(server)
        host, port = server.sockets[0].getsockname()
        return f"http://{host}:{port}"

    @contextmanager
    def _closing(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        self._open.add(writer)
        try:
            yield
        finally:
            writer.transport.abort()
            self._open.discard(writer)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: Path) -> None:
        """Forward pieces until one side disconnects or a piece is lost. The links and the delay handle
        different pieces concurrently, as in a real network.
        """
        queues = [_Pieces(ON_LINK) for _ in path.links] + [_Pieces(UNDER_WAY)]
        stages = [
            asyncio.create_task(self._link(link, source, to, writer))
            for link, source, to in zip(path.links, queues[:-1], queues[1:], strict=True)
        ]
        stages.append(asyncio.create_task(self._arrive(queues[-1], writer, path)))
        loop = asyncio.get_running_loop()
        try:
            with suppress(OSError):
                while (piece := await reader.read(PIECE)) and not writer.is_closing():
                    if path.loss and self._random.random() < path.loss:
                        self.cut += 1
                        break
                    await queues[0].put((loop.time(), piece))
        finally:
            await queues[0].put((0.0, b""))
            await asyncio.gather(*stages)

    async def _link(self, link: Link, source: _Pieces, to: _Pieces, writer: asyncio.StreamWriter) -> None:
        """Pass pieces over a link until an empty piece comes. Drop all pieces once the client has disconnected."""
        while piece := (await source.get())[1]:
            if not writer.is_closing():
                await link.passing(len(piece))
                await to.put((asyncio.get_running_loop().time(), piece))
        await to.put((0.0, b""))

    async def _arrive(self, source: _Pieces, writer: asyncio.StreamWriter, path: Path) -> None:
        """Write pieces to the receiver, each `path.delay` seconds after it has passed its last link. Without
        links, the delay counts from the time when the piece was read.
        """
        loop = asyncio.get_running_loop()
        while (due := await source.get())[1]:
            if not writer.is_closing():
                await asyncio.sleep(due[0] + path.delay - loop.time())
                with suppress(OSError):
                    writer.write(due[1])
                    await writer.drain()
