"""Tests whether the announced address leads to this machine's service, as far as this machine can tell.

No party tests an address on behalf of another, so the address is requested from this machine. This shows that
the name resolves, that the port is forwarded and that this service answers. It does not show that a firewall
lets strangers in, because a router may loop its own address back.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from protocol.chain.client import Client
from protocol.errors import ExitCode
from protocol.node.addresses import Address
from protocol.node.documents import parse_json
from protocol.node.home import Home
from protocol.node.http import require_public, url_of
from protocol.node.http_client import BadAnswer, HttpClient
from protocol.node.serving import Serving, addresses
from solver.checks import Level, Line
from solver.control import ask
from solver.errors import NotRunning
from solver.public_place import place_of
from solver.settings import SolverSettings

SECONDS: Final = 10.0
MOST: Final = 1_024
"""Limit on the bytes of an answer."""
PROVES: Final = "asked from this machine alone, which no firewall before it may have noticed"


def reachable(home: Home, settings: SolverSettings, client: Client, account: str, local: bool) -> Line:
    """Request this node's mark at its announced address, or at the address that it would announce. If a
    bucket replaces the server, instead write a file to the bucket and read it at its public address. Raises
    AssayError.
    """
    if settings.publish is not None:
        return _published(settings.publish, settings.url or "", client.market.address, local)
    with _served(home, settings) as (url, mark, how):
        announced = client.market.endpoint_of(account)
        if not local:
            require_public(url)
        try:
            got = asyncio.run(_mark(Address.parse(f"{url.rstrip('/')}/mark")))
        except (BadAnswer, OSError, TimeoutError) as error:
            why = str(error) or f"nothing within {SECONDS:g} s"
            return Line(
                "reachable",
                Level.PROBLEM,
                f"{url}: {why}",
                "forward its port to --host and --port of this machine and open it in the firewall, or correct --url",
                ExitCode.RETRY,
            )
    if got != mark:
        return Line(
            "reachable",
            Level.PROBLEM,
            f"{url}: another service answers there",
            "correct --url, or the forwarding",
        )
    found = f"{url} leads to {how}; {PROVES}"
    if announced and announced != url and not announced.startswith(f"{url.rstrip('/')}/"):
        return Line(
            "reachable",
            Level.WARNING,
            f"{found}; the chain has {announced!r:.100}",
            "`run` announces it at its start",
        )
    return Line("reachable", Level.OK, found)


def _published(publish: str, url: str, market: str, local: bool) -> Line:
    (address,) = addresses(url, market, first=False)
    if not local:
        require_public(address)
    place_of(publish, market).require_readable(Address.parse(address))
    return Line("reachable", Level.OK, f"what is written to {publish} is read at {address}")


@contextmanager
def _served(home: Home, settings: SolverSettings) -> Iterator[tuple[str, str, str]]:
    """The node's address, the mark that is served at `/mark` under this address, and words for a message that
    say what serves it. If no node runs, a temporary server serves the mark.
    """
    try:
        status = ask(home, "status")
    except NotRunning:
        mark = secrets.token_hex(16)
        with Serving(_standing_in(mark), settings.host, settings.port, settings.proxies) as serving:
            shown = "127.0.0.1" if settings.host == "0.0.0.0" else settings.host
            yield settings.url or url_of(shown, serving.port), mark, "this machine (no node runs)"
    else:
        yield status["url"], status["mark"], "the running node"


def _standing_in(mark: str) -> Any:
    """An app that answers every request with the mark."""
    body = json.dumps({"mark": mark}).encode()

    async def app(scope: Mapping[str, Any], _receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


async def _mark(address: Address) -> str:
    """The mark served at an address; "" if the answer is not a mark. Raises BadAnswer, TimeoutError."""
    body = bytearray()
    async with asyncio.timeout(SECONDS), HttpClient() as client:
        await client.get(address, MOST, body)
    try:
        return str(parse_json(bytes(body))["mark"])
    except (ValueError, KeyError, TypeError):
        return ""
