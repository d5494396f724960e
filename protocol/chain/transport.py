"""JSON-RPC over HTTP to one node of a chain: answers end in time, are no longer than `MOST`, and fit their questions.

A node that trickles headers or a body has no more time than one that is silent, and length is counted as unpacked. What
is no response to what was asked is NotAnAnswer.
"""

from __future__ import annotations

import io
import itertools
import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from http.client import HTTPResponse
from typing import Any, Final

import requests
from requests.adapters import HTTPAdapter
from requests.utils import get_netrc_auth

from protocol.errors import InternalError
from protocol.node.documents import parse_json

SOCKETS: Final = 32
"""Kept open to one node: as many as a party has threads that ask."""
MOST: Final = 1 << 26
"""Bytes of an answer. A block of 30 million gas has 4 MB of logs at most: who asks for many blocks asks for fewer."""
PIECE: Final = 1 << 16
HEADERS: Final = {"Content-Type": "application/json", "User-Agent": "assay"}

Asked = tuple[str, Sequence[Any]]
"""Method and parameters."""


class NotAnAnswer(InternalError):
    """What came is no response to what was asked."""


class AnswerTooLong(NotAnAnswer):
    """More than `MOST` bytes."""


class Transport:
    """One node, with its sockets. `opened` is called when a connection is opened, also in place of one that the node
    has closed. Raises requests.RequestException, OSError, NotAnAnswer, AnswerTooLong.
    """

    def __init__(self, url: str, timeout: float, opened: Callable[[], None]) -> None:
        self._url = url
        self._timeout = timeout
        self._numbers = itertools.count(1)
        self._session = _session(url)
        self._session.mount(url, _Adapter(opened))

    def ask(self, method: str, parameters: Sequence[Any]) -> Mapping[str, Any]:
        """The response to a question."""
        question = self._question(method, parameters)
        response = self._post(question, {question["id"]})
        if isinstance(response, list):
            raise NotAnAnswer("several responses to one question")
        found: Mapping[str, Any] = response
        return found

    def ask_all(self, asked: Sequence[Asked]) -> list[Mapping[str, Any]] | None:
        """The responses to several questions in one request, in order; None from a node that takes no such request, or
        none of this length.
        """
        questions = [self._question(method, parameters) for method, parameters in asked]
        try:
            responses = self._post(questions, {question["id"] for question in questions})
        except (requests.HTTPError, NotAnAnswer):
            return None
        if not isinstance(responses, list):
            return None
        by_number = {response.get("id"): response for response in responses}
        found = [by_number.get(question["id"]) for question in questions]
        whole = [response for response in found if response is not None]
        return whole if len(whole) == len(responses) == len(questions) else None

    def close(self) -> None:
        """Let go of the sockets. A later question opens new ones."""
        self._session.close()

    def _question(self, method: str, parameters: Sequence[Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": list(parameters)}

    def _post(self, body: Any, asked: set[int]) -> Any:
        """The response, or a list of them, to the questions of these numbers. Raises NotAnAnswer where a gateway has
        mixed up its clients, or answers with a page of its own.
        """
        data = json.dumps(body, separators=(",", ":")).encode()
        answer = self._session.post(self._url, data=data, headers=HEADERS, timeout=self._timeout)
        answer.raise_for_status()
        try:
            found = parse_json(answer.content)
        except ValueError as error:
            raise NotAnAnswer("no JSON") from error
        for one in found if isinstance(found, list) else [found]:
            if not isinstance(one, dict):
                raise NotAnAnswer("no response")
            number = one.get("id")
            known = isinstance(number, int) and number in asked
            # An error of the request as a whole has no number.
            if not known and (number is not None or "error" not in one):
                raise NotAnAnswer("the response to another question")
        return found


def _session(url: str) -> requests.Session:
    """With what the environment says of proxies, certificates and passwords, read once: to read it again for each
    question takes as long as to send that.
    """
    session = requests.Session()
    found = session.merge_environment_settings(url, {}, None, None, None)
    session.proxies, session.verify, session.auth = found["proxies"], found["verify"], get_netrc_auth(url)
    session.trust_env = False
    return session


class _Adapter(HTTPAdapter):
    """Reads answers whole, within a time and a length."""

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
    """A response that has come whole after the socket's timeout, which by itself is one for each read."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp.close()
        self.fp = io.BufferedReader(_Arriving(sock))


class _Arriving(io.RawIOBase):
    """What comes over a socket until a moment."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._socket = sock
        self._file = sock.makefile("rb", buffering=0)  # keeps the socket open until it is closed itself
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
