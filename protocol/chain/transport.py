"""JSON-RPC over HTTP to one node of a chain. Each answer must arrive in time, have at most `MOST` bytes, and
be a response to its question.

The time limit applies to the whole answer, so a node that trickles headers or a body gets no more time than a
silent one. The length is counted after decompression. An answer that is not a response to the request raises
NotAnAnswer.
"""

from __future__ import annotations

import io
import itertools
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from http.client import HTTPResponse
from typing import Any, Final

import requests
from requests.adapters import HTTPAdapter
from requests.utils import get_netrc_auth
from web3 import HTTPProvider
from web3.types import RPCEndpoint, RPCResponse

from protocol.errors import InternalError
from protocol.node.documents import parse_json

SOCKETS: Final = 32
"""Connections kept open to one node: as many as a party has threads that ask."""
MOST: Final = 1 << 26
"""Maximum bytes of an answer. A block of 30 million gas has at most 4 MB of logs; a caller whose answer is
too long asks for fewer blocks.
"""
PIECE: Final = 1 << 16

Asked = tuple[str, Sequence[Any]]
"""A question: method and parameters."""


class NotAnAnswer(InternalError):
    """The node's reply is not a response to the request, or its result does not have the method's form."""


class AnswerTooLong(NotAnAnswer):
    """The answer has more than `MOST` bytes."""


class Transport:
    """One node, with its sockets. `opened` is called whenever a connection is opened, including one that
    replaces a connection closed by the node. Raises requests.RequestException, OSError, NotAnAnswer,
    AnswerTooLong.
    """

    def __init__(self, url: str, timeout: float, opened: Callable[[], None]) -> None:
        # One session for all threads: web3 would keep one for each thread that ever asked, and close none.
        self._session = _session(url)
        self._session.mount(url, _Adapter(opened))
        self._provider = _Provider(url, timeout, self._session)

    def ask(self, method: str, parameters: Sequence[Any]) -> RPCResponse:
        """The response to a question."""
        self._provider.request_counter.begin()
        response = self._provider.make_request(RPCEndpoint(method), list(parameters))
        if isinstance(response, list):
            raise NotAnAnswer("several responses to one question")
        return response

    def ask_all(self, asked: Sequence[Asked]) -> list[RPCResponse] | None:
        """The responses to several questions, sent in one request, in the order of the questions. None if the
        node does not answer each question, for example because it accepts no batches or only shorter ones.
        """
        self._provider.request_counter.begin()
        try:
            responses = self._provider.make_batch_request(
                [(RPCEndpoint(method), list(parameters)) for method, parameters in asked]
            )
        except (requests.HTTPError, NotAnAnswer):
            return None
        if not isinstance(responses, list) or len(responses) != len(asked):
            return None
        return responses if all(one.get("id") is not None for one in responses) else None

    def close(self) -> None:
        """Close the sockets. A later question opens new ones."""
        self._session.close()


def _session(url: str) -> requests.Session:
    """A session with the environment's proxies, certificates and passwords. They are read only once, because
    reading them for each question would take as long as sending it.
    """
    session = requests.Session()
    found = session.merge_environment_settings(url, {}, None, None, None)
    session.proxies, session.verify, session.auth = found["proxies"], found["verify"], get_netrc_auth(url)
    session.trust_env = False
    return session


class _Numbers:
    """Generates the ids of questions. `given` has the ids of this thread's present request."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._of = threading.local()

    def begin(self) -> None:
        self._of.given = []

    @property
    def given(self) -> list[int]:
        found: list[int] = self._of.given
        return found

    def __iter__(self) -> _Numbers:
        return self

    def __next__(self) -> int:
        self.given.append(next(self._numbers))
        return self.given[-1]


class _Provider(HTTPProvider):
    """web3's provider with a stricter parser: web3's own accepts any JSON as the response."""

    request_counter: _Numbers  # type: ignore[assignment]

    def __init__(self, url: str, timeout: float, session: requests.Session) -> None:
        super().__init__(
            url, request_kwargs={"timeout": timeout}, session=session, exception_retry_configuration=None
        )
        self.request_counter = _Numbers()

    def decode_rpc_response(self, raw_response: bytes) -> Any:  # type: ignore[override]
        """Parse a response. Raises NotAnAnswer if it answers another question, or if it is not JSON-RPC but,
        for example, a gateway's own page.
        """
        try:
            found = parse_json(raw_response)
        except ValueError as error:
            raise NotAnAnswer("no JSON") from error
        asked = self.request_counter.given
        for one in found if isinstance(found, list) else [found]:
            if not isinstance(one, dict):
                raise NotAnAnswer("no response")
            # An error of the request as a whole has no id.
            if one.get("id") not in asked and (one.get("id") is not None or "error" not in one):
                raise NotAnAnswer("the response to another question")
        return found


class _Adapter(HTTPAdapter):
    """Reads whole answers, within a limit of time and of length."""

    def __init__(self, opened: Callable[[], None]) -> None:
        self._on_open = opened
        super().__init__(pool_maxsize=SOCKETS)

    def send(self, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> requests.Response:
        response = super().send(request, *arguments, **options)
        data = bytearray()
        with closing(response.raw):
            for piece in response.iter_content(PIECE):
                data += piece
                if len(data) > MOST:
                    raise AnswerTooLong(expected=f"at most {MOST} bytes", got="more")
        whole = self.build_response(request, response.raw)
        whole.raw = io.BytesIO(data)
        return whole

    def get_connection_with_tls_context(self, *arguments: Any, **options: Any) -> Any:
        pool = super().get_connection_with_tls_context(*arguments, **options)
        if not hasattr(pool.ConnectionCls, "tells"):
            opened = self._on_open

            class Telling(pool.ConnectionCls):  # type: ignore[misc,name-defined]
                tells = True
                response_class = _InTime

                def connect(self) -> None:
                    opened()
                    super().connect()

            pool.ConnectionCls = Telling
        return pool


class _InTime(HTTPResponse):
    """A response that must arrive completely within the socket's timeout. By default, this timeout would
    apply to each read.
    """

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Arriving(sock))


class _Arriving(io.RawIOBase):
    """Reads from a socket until a deadline."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._socket = sock
        self._file = sock.makefile("rb", buffering=0)  # keeps the socket open until this file is closed
        timeout = sock.gettimeout()
        self._until = None if timeout is None else time.monotonic() + timeout

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int | None:
        if self._until is not None:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._socket.settimeout(left)
        return self._file.readinto(into)

    def close(self) -> None:
        self._file.close()
        super().close()
