"""GET and POST requests to strangers' servers. Redirects and encodings are refused, and answers are limited
in bytes.

Every failure of a peer is a BadAnswer, whether it occurs in the name lookup, the socket, TLS or HTTP. The
caller must limit the time of the whole exchange, because timeouts of single reads do not stop a trickling
server.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import cache
from types import TracebackType
from typing import Any, Final, Protocol, Self
from urllib.parse import urlencode

import httpcore

from protocol.errors import AssayError, InternalError
from protocol.node.addresses import Address
from protocol.node.lookups import IP, Permit, look_up

LEAST_RATE = 1 << 20
"""Minimum average rate over a whole answer, in bytes per second. A server must send, and its client must
read, at least this fast: 1.5 GB of state in 25 minutes. Slower peers would take time or memory from others.
"""
ATTEMPT_SECONDS: Final = 1.0
"""If a name has several IP addresses, the client tries to connect to one after the other. This is the maximum
number of seconds for each of these attempts except the last. For the last one, the client's connect timeout
holds.
"""
OVERHEAD: Final = 1 << 18
"""The limit on the bytes of a whole answer is twice the limit on its body, plus this constant. The constant
covers headers and trailers: h11 accepts 100 KiB of each.
"""


class BadAnswer(InternalError):
    """The peer did not send the requested bytes."""


class NotServed(BadAnswer):
    """The answer's HTTP status, `status`, is not a success. For example, the server does not have the data,
    or asks the client to come later.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class Broken(BadAnswer):
    """The name has no address, nobody answers, or the answer is not TLS or HTTP. `kind` names the library's
    error.
    """

    def __init__(self, error: Exception) -> None:
        self.kind = type(error).__name__
        super().__init__(f"{self.kind}: {str(error)[:200]!a}")


class Encoded(BadAnswer):
    """The answer has a content encoding that was not asked for, so it might become large when decoded.
    `encoding` names the encoding.
    """

    def __init__(self, encoding: str) -> None:
        super().__init__("an encoding that was not asked for")
        self.encoding = encoding


class TooLong(BadAnswer):
    """The answer has more bytes than expected."""

    def __init__(self, most: int) -> None:
        super().__init__(expected=f"at most {most} bytes", got="more")


class Body(Protocol):
    """A receiver of an answer's bytes: a bytearray, or something that does not keep them in memory."""

    def __len__(self) -> int:
        """Number of bytes received."""

    def extend(self, piece: bytes, /) -> None:
        """Take the next bytes."""


class HttpClient:
    """An HTTP client that follows no redirects, reads no proxy from the environment and asks for unencoded
    bytes. Its connections belong to the event loop in which it is used, and close with the context.

    `timeout` limits each connect, read and write, in seconds. `permit` checks a host's IP addresses before
    a connection. A name is looked up only once, so that it cannot change to another address after the
    check.
    """

    def __init__(self, timeout: float | None = None, permit: Permit | None = None) -> None:
        self._wire = _Wire(permit)
        self._timeouts = dict.fromkeys(("connect", "read", "write", "pool"), timeout)
        self._pool = httpcore.AsyncConnectionPool(ssl_context=_tls(), network_backend=self._wire)

    async def get(
        self, address: Address, most: int, into: Body, parameters: Mapping[str, str] | None = None
    ) -> None:
        """Read the body at `address` and append it to `into`. The body may have at most `most` bytes. A
        client cannot run several requests at once. Raises BadAnswer, and what `permit` and `into` raise.
        """
        opened = self._wire.opened
        try:
            await self._ask(address, most, into, parameters)
        except Broken:
            if len(into) or self._wire.opened > opened:
                raise
            # The server has closed a kept connection of an earlier request; servers may do so at any time.
            await self._ask(address, most, into, parameters)

    async def post(
        self, address: Address, body: bytes, content_type: str, parameters: Mapping[str, str] | None = None
    ) -> None:
        """Post `body`, and read only the status of the answer. Raises NotServed if the status is not a
        success, another BadAnswer if there is no answer, and what `permit` raises.
        """
        headers = [("content-type", content_type), ("content-length", str(len(body)))]
        async with self._answer("POST", address, 0, parameters, headers, body) as answer:
            if not 200 <= answer.status < 300:
                raise NotServed(answer.status)

    async def _ask(
        self, address: Address, most: int, into: Body, parameters: Mapping[str, str] | None
    ) -> None:
        # Outside of `_answer`: an error of `into`, such as a full disk, is not the server's fault.
        async with aclosing(self._pieces(address, most, parameters)) as pieces:
            async for piece in pieces:
                into.extend(piece)

    async def _pieces(
        self, address: Address, most: int, parameters: Mapping[str, str] | None
    ) -> AsyncGenerator[bytes]:
        async with self._answer("GET", address, most, parameters) as answer:
            _require_plain(answer)
            left = most
            async for piece in answer.aiter_stream():
                left -= len(piece)
                if left < 0:
                    raise TooLong(most)
                yield piece

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        address: Address,
        most: int,
        parameters: Mapping[str, str] | None,
        further: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
    ) -> AsyncIterator[httpcore.Response]:
        """The answer to a request, with `most` bytes of body allowed."""
        self._wire.most, self._wire.left = most, 2 * most + OVERHEAD
        target = (address.path or "/") + (f"?{urlencode(parameters)}" if parameters else "")
        url = httpcore.URL(
            scheme=address.scheme.encode(),
            host=address.host.encode(),
            port=address.port,
            target=target.encode(),
        )
        headers = [("host", address.authority), ("accept", "*/*"), ("accept-encoding", "identity"), *further]
        extensions = {"timeout": self._timeouts}
        try:
            async with self._pool.stream(
                method, url, headers=headers, content=body, extensions=extensions
            ) as answer:
                yield answer
        except (AssayError, MemoryError):
            raise
        except Exception as error:
            # Not a list of classes: no documentation lists all errors that a stranger's bytes cause in half a
            # dozen libraries, and one omitted class once kept a verifier from every replay.
            raise Broken(error) from error

    async def close(self) -> None:
        """Close the connections, ignoring errors of the other side."""
        with suppress(Exception):
            await self._pool.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Wire(httpcore.AsyncNetworkBackend):
    """Opens connections that `permit` allows, and counts their bytes."""

    def __init__(self, permit: Permit | None) -> None:
        self.most = self.left = self.opened = 0
        self._permit = permit
        self._tcp = httpcore.AnyIOBackend()
        self._found: dict[str, Sequence[IP]] = {}

    def take(self, count: int) -> None:
        """Count received bytes. Raises TooLong beyond the limit, because an answer with a short body may
        have endless headers.
        """
        self.left -= count
        if self.left < 0:
            raise TooLong(self.most)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first of a host's addresses that answers."""
        self.opened += 1
        if host not in self._found:
            ips = await look_up(host, port)
            if self._permit is not None:
                self._permit(ips)
            self._found[host] = ips
        *others, last = map(str, self._found[host])
        for ip in others:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                stream = await self._tcp.connect_tcp(ip, port, ATTEMPT_SECONDS, local_address, socket_options)
                return _Counted(stream, self)
        return _Counted(await self._tcp.connect_tcp(last, port, timeout, local_address, socket_options), self)


class _Counted(httpcore.AsyncNetworkStream):
    """A connection whose bytes are counted."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, wire: _Wire) -> None:
        self._stream = stream
        self._wire = wire

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read some bytes; none at the end."""
        data = await self._stream.read(max_bytes, timeout)
        self._wire.take(len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all bytes."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """The same connection, encrypted."""
        return _Counted(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._wire)

    def get_extra_info(self, info: str) -> Any:
        """Information about the connection, as httpcore defines it."""
        return self._stream.get_extra_info(info)


def _require_plain(answer: httpcore.Response) -> None:
    """Raise BadAnswer unless the answer has status 200 and no content encoding."""
    if answer.status != 200:
        raise NotServed(answer.status)
    named = (value for name, value in answer.headers if name.lower() == b"content-encoding")
    encoding = b", ".join(named).decode("latin-1")
    if encoding not in ("", "identity"):
        raise Encoded(encoding)


@cache
def _tls() -> ssl.SSLContext:
    """A TLS context with httpcore's default certificates, cached because loading them takes longer than a
    request.
    """
    return httpcore.default_ssl_context()
