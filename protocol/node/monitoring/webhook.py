"""Posts a JSON document to the address that an operator has set: https, or http on this machine.

The address may hold a secret, so errors and logs show only its scheme, host and port. Redirects are not
followed, and only the status of the answer is read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from protocol.node.addresses import Address, BadAddress, public_part
from protocol.node.http_client import BadAnswer, Broken, HttpClient, NotServed
from protocol.node.lookups import IP
from protocol.node.reach import OutOfReach

SECONDS: Final = 10.0
"""Seconds for a whole exchange."""
MOST_BYTES: Final = 4_096
"""Maximum bytes of a document."""
_EXPECTED: Final = "an https address, or an http one of this machine, without user, password and fragment"


class NotTaken(BadAnswer):
    """The receiver did not answer with success in time. The message contains no part of the address."""


@dataclass(frozen=True, slots=True, repr=False)
class Webhook:
    """The webhook's address, without its query, and the query's parameters."""

    address: Address
    parameters: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an address, which may have a query. Raises ValueError, whose message quotes no part of the text."""
        try:
            parts = urlsplit(text)
            query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else []
            address = Address.parse(urlunsplit((parts.scheme, parts.netloc, parts.path, "", parts.fragment)))
        except (BadAddress, ValueError):
            raise ValueError(f"expected {_EXPECTED}") from None
        if len(dict(query)) < len(query):
            raise ValueError("expected a query of different names")
        local = address.host == "localhost" if address.ip is None else address.ip.is_loopback
        if address.scheme != "https" and not local:
            raise ValueError(f"expected {_EXPECTED}")
        if address.path and parts.path.endswith("/"):  # for some servers the slash makes another address
            address = replace(address, path=f"{address.path}/")
        return cls(address, dict(query))

    def __repr__(self) -> str:
        return f"Webhook({str(self)!r})"

    def __str__(self) -> str:
        return public_part(f"{self.address}/…")

    def post(self, document: Mapping[str, Any], seconds: float = SECONDS) -> None:
        """Post a document within `seconds`. Raises NotTaken."""
        body = json.dumps(document, ensure_ascii=False).encode(errors="replace")
        assert len(body) <= MOST_BYTES, "texts are cut where they are made"
        asyncio.run(self._post(body, seconds))

    async def _post(self, body: bytes, seconds: float) -> None:
        permit = None if self.address.scheme == "https" else _require_loopback
        try:
            async with asyncio.timeout(seconds), HttpClient(permit=permit) as client:
                await client.post(self.address, body, "application/json", self.parameters)
        except NotServed as error:
            raise NotTaken(expected="a status from 200 to 299", got=error.status) from None
        except TimeoutError:
            raise NotTaken(expected=f"an answer within {seconds:g} s", got="none") from None
        except Broken as error:
            raise NotTaken(expected="an HTTP answer", got=error.kind) from None
        except (BadAnswer, OutOfReach) as error:
            raise NotTaken(expected="an HTTP answer", got=type(error).__name__) from None


def _require_loopback(found: Sequence[IP]) -> None:
    if not all(ip.is_loopback for ip in found):
        raise OutOfReach("webhook", expected="an address of this machine, or https", got="another")
