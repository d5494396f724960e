"""A peer that can be made faulty: an HTTP proxy in front of the address of a solver, verifier or bundle
server.

The proxy holds only one piece of a body at a time. If a fault has several forms, successive requests get them
in turn, unless `form` names one.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse
from itertools import count, repeat
from types import TracebackType
from typing import Final, Literal, Self, get_args
from urllib.parse import urlsplit

from tests.campaign.bombs import ENCODINGS, bomb
from tests.listener import Handler, Listener

Mode = Literal["honest", "silent", "trickling", "huge", "redirecting", "bomb", "two-faced", "half-open"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
FORMS: Final[dict[Mode, tuple[str, ...]]] = {
    "huge": ("length", "chunks"),
    "redirecting": ("loop", "private", "file"),
    "bomb": ENCODINGS,
    "half-open": ("question", "body", "reset"),
}
"""The forms of each fault that has more than one. A huge body has an announced length of a pebibyte or comes
in endless chunks. The form of a redirect is its target, and that of a bomb is its encoding. On a half-open
connection, the peer is silent after the request ("question") or after half of the body ("body"), or resets
the connection after half of the body.
"""
PASSING: Final[tuple[Mode, ...]] = ("honest", "trickling", "two-faced", "half-open")
"""Modes in which the proxy asks the party behind it, except if the form is "question"."""
PIECE: Final = 1 << 16
"""The maximum number of a body's bytes that are held at a time."""
TIMEOUT: Final = 30.0
"""Seconds for each read from the party behind the proxy."""
LENGTH: Final = 1 << 50
LOCATIONS: Final = {"private": "http://169.254.169.254/latest/meta-data/", "file": "file:///etc/passwd"}
FLIPPED: Final = bytes(byte ^ 1 for byte in range(256))
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER with a timeout of 0: closing sends RST."""


class PeerProxy:
    """Listens on a free loopback port until it is closed. `mode` and its settings may be changed at any time,
    with effect from the next request. Answers in progress go on unchanged until `hang_up`.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream.rstrip("/"))
        self.mode: Mode = "honest"
        self.form: str | None = None
        self.spare = 0
        """How many of the next requests are answered honestly, whatever the mode."""
        self.pause = 1.0
        """Seconds between two bytes of a trickling body."""
        self.asked: list[str] = []
        """Targets of all requests, in order."""
        self.sent = 0
        """Bytes of bodies that were passed to the operating system."""
        self.connections = count(1)
        self.faults = count()
        self._listener = Listener(_Handler, self)
        self.url = self._listener.url

    def next_mode(self) -> Mode:
        """The mode for a request that has just come. If `spare` is positive, the mode is honest and `spare`
        falls by one.
        """
        if self.spare:
            self.spare -= 1
            return "honest"
        return self.mode

    def close(self) -> None:
        """Stop; waiting clients see the connection end."""
        self._listener.close()

    def hang_up(self) -> None:
        """Close every open connection, as a restarted peer does."""
        self._listener.hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Handler(Handler):
    def setup(self) -> None:
        super().setup()
        self.proxy: PeerProxy = self.server.owner
        self.number = next(self.proxy.connections)

    def answer(self) -> None:
        """Answer a request as the present mode says, whatever the request's HTTP method is."""
        mode = self.proxy.next_mode()
        forms = FORMS.get(mode)
        self.proxy.asked.append(self.path)
        form = ""
        if forms is not None:
            form = self.proxy.form or forms[next(self.proxy.faults) % len(forms)]
        if mode not in PASSING and "Content-Length" in self.headers:
            self.close_connection = True  # the request's body is not read
        if mode == "silent" or form == "question":
            self._hold()
        elif mode == "huge":
            self._flood(form)
        elif mode == "redirecting":
            self._redirect(form)
        elif mode == "bomb":
            self._send_head(200, "OK", [("Content-Encoding", form), ("Transfer-Encoding", "chunked")])
            self._send(bomb(form), True)  # type: ignore[arg-type]
        else:
            self._pass_on(mode, form)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer

    def _hold(self) -> None:
        """Send nothing, and keep the connection open as long as the other side does."""
        while self.holds(1.0):
            pass
        self.close_connection = True

    def _flood(self, form: str) -> None:
        chunked = form == "chunks"
        header = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(LENGTH))
        self._send_head(200, "OK", [header])
        self._send(repeat(bytes(PIECE)), chunked)

    def _redirect(self, form: str) -> None:
        to = LOCATIONS.get(form, f"{self.server.url}{self.path}")
        self._send_head(302, "Found", [("Location", to), ("Content-Length", "0")])

    def _pass_on(self, mode: Mode, form: str) -> None:
        behind = self.proxy.upstream
        upstream = HTTPConnection(str(behind.hostname), behind.port or 80, timeout=TIMEOUT)
        with closing(upstream):
            try:
                answer = self._asked(upstream)
            except (OSError, HTTPException):
                self.close_connection = True  # the party is down
                return
            self._send_head(answer.status, answer.reason, answer.getheaders())
            unknown = answer.length is None and not answer.chunked
            self.close_connection |= unknown  # such a body ends when the connection ends
            pieces = _read(answer)
            if mode == "trickling":
                pieces = self._trickled(pieces)
            elif mode == "two-faced" and self.number % 2 == 0:
                pieces = (piece.translate(FLIPPED) for piece in pieces)
            elif mode == "half-open":
                pieces = self._first_half(pieces, answer.length, form)
            try:
                self._send(pieces, bool(answer.chunked) and self.command != "HEAD")
            except HTTPException:
                self.close_connection = True  # the body was cut short, so ours is too

    def _asked(self, upstream: HTTPConnection) -> HTTPResponse:
        """Pass the request on to the party behind the proxy; returns that party's answer."""
        target = self.proxy.upstream.path + self.path
        upstream.putrequest(self.command, target, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            upstream.putheader(name, value)
        upstream.endheaders()
        left = int(self.headers.get("Content-Length", 0))
        while left and (piece := self.rfile.read(min(left, PIECE))):
            upstream.send(piece)
            left -= len(piece)
        return upstream.getresponse()

    def _send_head(self, status: int, reason: str, headers: Iterable[tuple[str, str]]) -> None:
        self.send_response_only(status, reason)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def _send(self, pieces: Iterable[bytes], chunked: bool) -> None:
        for piece in pieces:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            self.proxy.sent += len(piece)
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _trickled(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            for byte in piece:
                if not self.holds(self.proxy.pause):
                    raise BrokenPipeError
                yield bytes([byte])

    def _first_half(self, pieces: Iterator[bytes], length: int | None, form: str) -> Iterator[bytes]:
        """Yields half of a body, or half of its first piece if the body's length is not announced. Then the
        connection is silent or reset, as `form` says.
        """
        piece = next(pieces, b"")
        left = (len(piece) if length is None else length) // 2
        while left > 0 and piece:
            yield piece[:left]
            left -= len(piece)
            piece = next(pieces, b"")
        if form == "body":
            self._hold()
        else:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            os.close(self.connection.detach())  # without shutdown(), which would send FIN first
        raise BrokenPipeError


def _read(answer: HTTPResponse) -> Iterator[bytes]:
    """Yields a body in pieces. Raises HTTPException if it ends before its announced length."""
    while piece := answer.read1(PIECE):
        yield piece
    if answer.length:
        raise HTTPException("cut short")
