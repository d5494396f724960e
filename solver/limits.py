"""Limits on every HTTP exchange, for any app: only GET and HEAD, no request bodies, short targets, no slow
readers.

This is an ASGI middleware. `protocol.node.http_shares` limits the number of connections, in all and per
address; `concurrency` limits the cost of answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from solver.metrics import Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

MAX_TARGET = 1_024
"""Limit on the bytes of a request's path and query together. The longest legitimate requests name eight call
instructions by numbers of five digits.
"""
SEND_SECONDS = 30.0
"""Seconds for one piece of an answer (at most 1 MiB): a reader slower than 35 KB/s is cut off."""


class Limits:
    """Wraps an app with the limits; refused requests get one line of plain text."""

    def __init__(self, app: App, metrics: Metrics, send_seconds: float = SEND_SECONDS) -> None:
        self._app = app
        self._metrics = metrics
        self._send_seconds = send_seconds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection. HTTP is limited, websockets are refused, and the rest passes
        unchanged.
        """
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def bounded(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.requests.labels(str(message["status"])).inc()
            async with asyncio.timeout(self._send_seconds):  # wait_for would make a task per piece
                await send(message)

        refusal = _refusal(scope)
        if refusal is None:
            await self._app(scope, receive, bounded)
            return
        status, text = refusal
        headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
        await bounded({"type": "http.response.start", "status": status, "headers": headers})
        await bounded({"type": "http.response.body", "body": text.encode() + b"\n"})


def _refusal(scope: Message) -> tuple[int, str] | None:
    headers = dict(scope["headers"])
    if scope["method"] not in ("GET", "HEAD"):
        return 405, "expected GET"
    if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
        return 413, "expected no body"
    if len(scope.get("raw_path") or b"") + len(scope.get("query_string", b"")) > MAX_TARGET:
        return 414, f"expected a path and query of at most {MAX_TARGET} bytes"
    return None
