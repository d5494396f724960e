"""Proxies in front of a chain's node, one for each party. Each counts its party's requests by method.

A proxy forwards bytes and parses only what it needs, so that it does not slow down a busy party. It counts
the method names in a request's body, so each request of a batch counts.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from protocol.chain.devnet import HOST

METHOD: Final = re.compile(rb'"method"\s*:\s*"(\w+)"')
LENGTH: Final = re.compile(rb"^content-length:\s*(\d+)", re.IGNORECASE | re.MULTILINE)
END: Final = b"\r\n\r\n"


class Proxies:
    """A proxy for each name, each on its own port. One thread runs all of them until they are closed."""

    def __init__(self, upstream: str, names: list[str]) -> None:
        parts = urlsplit(upstream)
        self._upstream = parts.hostname, parts.port
        self._names = names
        self._counts = {name: Counter[str]() for name in names}
        self.urls: dict[str, str] = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._closed = asyncio.Event()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self._serve(),), daemon=True
        )

    def counts(self) -> dict[str, Counter[str]]:
        """Requests that each party has made so far, by method."""
        return {name: Counter(counted) for name, counted in self._counts.items()}

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._closed.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        servers = []
        for name in self._names:
            server = await asyncio.start_server(self._handler(name), HOST, 0)
            self.urls[name] = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
            servers.append(server)
        self._ready.set()
        await self._closed.wait()
        for server in servers:
            server.close()
        own = asyncio.current_task()
        for task in asyncio.all_tasks():
            if task is not own:
                task.cancel()

    def _handler(self, name: str):  # type: ignore[no-untyped-def]
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            up_reader, up_writer = await asyncio.open_connection(*self._upstream)
            try:
                while True:
                    asked = await _message(reader)
                    self._counts[name].update(
                        found.decode() for found in METHOD.findall(asked.partition(END)[2])
                    )
                    up_writer.write(asked)
                    writer.write(await _message(up_reader))
                    await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                pass  # one side has disconnected, or the proxy is closed
            finally:
                writer.close()
                up_writer.close()

        return handle


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Read a whole HTTP request or response. Raises IncompleteReadError at the end of the connection, and
    RuntimeError for a message that does not state its length.
    """
    head = await reader.readuntil(END)
    length = LENGTH.search(head)
    if length is None:
        raise RuntimeError(f"expected a length in {head!r}: the node answers in another way than anvil does")
    return head + await reader.readexactly(int(length[1]))
