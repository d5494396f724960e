"""A proxy in front of a beacon relay. A test can make it silent or lying while parties run.

Paths and answers have drand's form. Nodes do not trust a relay (`protocol.beacon.relays`): it can only
withhold a round, and only from nodes without another relay.
"""

from __future__ import annotations

import json
import re
from itertools import count
from types import TracebackType
from typing import Any, Final, Literal, Self, get_args

import requests

from protocol.beacon.bn254 import P, word
from tests.listener import Handler, Listener

Mode = Literal["honest", "silent", "lying"]
Lie = Literal["another round's signature", "a wrong signature", "a future round"]

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
LIES: Final[tuple[Lie, ...]] = get_args(Lie)
ROUND: Final = re.compile(r"(?P<base>.*/(?:public|rounds)/)(?P<number>[0-9]+|latest)")
TIMEOUT: Final = 20.0
"""Seconds that the relay behind the proxy has for an answer."""
FUTURE: Final = 1_000
"""The lie "a future round" names a round that is this many rounds after the newest round or after the
requested round, whichever is later.
"""


class BeaconProxy:
    """Listens on a free loopback port until it is closed. `mode` and `lie` may be changed at any time."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream.rstrip("/")
        self.mode: Mode = "honest"
        self.lie: Lie | None = None
        """The lie to tell. With None, all lies are told in turn."""
        self.asked: list[str] = []
        """Requested paths, in order."""
        self._told = count()
        self._listener = Listener(_Handler, self)
        self.url = self._listener.url

    def close(self) -> None:
        """Stop; waiting clients see the connection end."""
        self._listener.close()

    def hang_up(self) -> None:
        """Close every connection that is open."""
        self._listener.hang_up()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Status, content type and body for a path. Raises requests.RequestException if the relay does not
        answer.
        """
        asked = ROUND.fullmatch(path)
        if self.mode == "lying" and asked is not None:
            told = self._false(asked["base"], asked["number"])
            if told is not None:
                return 200, "application/json", json.dumps(told).encode()
        return self._get(path)

    def _false(self, base: str, asked: str) -> dict[str, Any] | None:
        """A false answer about a round; None while the relay itself has no round."""
        newest = self._round(base + "latest")
        if newest is None:
            return None
        number = newest["round"] if asked == "latest" else int(asked)
        lie = LIES[next(self._told) % len(LIES)] if self.lie is None else self.lie
        if lie == "a future round":
            return _signed(max(number, newest["round"]) + FUTURE, newest["signature"], newest)
        true = self._round(f"{base}{number}") or newest
        if lie == "a wrong signature":
            return _signed(number, _mirrored(true["signature"]), true)
        other = self._round(f"{base}{number - 1}") if number > 1 else newest
        if other is None or other["round"] == number:  # the first round is the newest: there is no other
            return _signed(number, _mirrored(true["signature"]), true)
        return _signed(number, other["signature"], other)

    def _round(self, path: str) -> dict[str, Any] | None:
        status, _, body = self._get(path)
        return json.loads(body) if status == 200 else None

    def _get(self, path: str) -> tuple[int, str, bytes]:
        found = requests.get(self.upstream + path, timeout=TIMEOUT)
        return found.status_code, found.headers.get("Content-Type", ""), found.content


class _Handler(Handler):
    def do_GET(self) -> None:
        proxy: BeaconProxy = self.server.owner
        proxy.asked.append(self.path)
        if proxy.mode == "silent":
            while self.holds(1.0):
                pass
            self.close_connection = True
            return
        try:
            status, kind, body = proxy.answer(self.path)
        except requests.RequestException:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _signed(number: int, signature: str, like: dict[str, Any]) -> dict[str, Any]:
    """An answer about round `number` with this signature, in the form of `like`: if `like` has `randomness`,
    as in version 1, so has the answer.
    """
    told = {"round": number, "signature": signature}
    return told | ({"randomness": word(bytes.fromhex(signature)).hex()} if "randomness" in like else {})


def _mirrored(signature: str) -> str:
    """The signature with its point negated. The negated point is on the curve too."""
    x, y = signature[:64], int(signature[64:], 16)
    return x + f"{(P - y) % P:064x}"
