"""ASGI apps behind the parties' HTTP server, on a loopback port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from ipaddress import ip_address
from threading import Thread
from time import sleep
from typing import Any

from protocol.node.http import bind, server

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

WHOLE = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
MIB = 1 << 20
PATIENCE = 60.0
"""Seconds after which a test gives up; normally it waits for a tenth of a second."""


async def answers(_scope: Message, _receive: Receive, send: Send) -> None:
    """Answer every request with `hello`."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@contextmanager
def served(app: App, *proxies: str) -> Iterator[tuple[str, int]]:
    """Run a server of an app; yields the address and port where it listens."""
    bound = bind("127.0.0.1", 0)
    running = server(app, map(ip_address, proxies))
    thread = Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    while not running.started:
        sleep(0.01)
    try:
        yield bound.getsockname()
    finally:
        running.should_exit = True
        thread.join()
        bound.close()
