"""GET of a few bytes from a stranger's server: redirects and encodings refused, no byte read beyond what is due.

The time limit is the caller's, around the whole exchange: no timeout of single reads ends a server that trickles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from protocol.errors import InternalError

if TYPE_CHECKING:
    import ssl

    import httpx

LEAST_RATE = 1 << 20
"""Bytes a second that a server must send and its client must read, over a whole answer: 1.5 GB of state in 25 minutes.
Whoever is slower keeps time or memory from the others.
"""


class BadAnswer(InternalError):
    """An answer that is not the bytes that were asked for."""


class NotServed(BadAnswer):
    """A quick answer without data: "not here" or "ask later". `status` is HTTP's."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class Encoded(BadAnswer):
    """A content encoding that was not asked for: a small answer that unpacks to a large one. `encoding` is its name."""

    def __init__(self, encoding: str) -> None:
        super().__init__("an encoding that was not asked for")
        self.encoding = encoding


class TooLong(BadAnswer):
    """More bytes than are due."""

    def __init__(self, most: int) -> None:
        super().__init__(expected=f"at most {most} bytes", got="more")


def client(timeout: float | None = None, verify: ssl.SSLContext | bool = True) -> httpx.AsyncClient:
    """A client that follows no redirect, reads no proxy from the environment and asks for plain bytes.

    `timeout` is for each read, in seconds; `verify` is httpx's.
    """
    import httpx

    return httpx.AsyncClient(
        timeout=timeout,
        follow_redirects=False,
        trust_env=False,
        verify=verify,
        headers={"accept-encoding": "identity"},
    )


async def get(
    asking: httpx.AsyncClient,
    url: str,
    most: int,
    into: bytearray,
    *,
    parameters: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Read the body at `url`, at most `most` bytes, into `into`, which shows how far it has come.

    Raises BadAnswer, and httpx's own errors.
    """
    async with asking.stream("GET", url, params=parameters, headers=headers) as answer:
        if answer.status_code != 200:
            raise NotServed(answer.status_code)
        encoding = answer.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise Encoded(encoding)
        async for piece in answer.aiter_raw():
            into += piece
            if len(into) > most:
                raise TooLong(most)
