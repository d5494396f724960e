"""Addresses of strangers' HTTP servers, parsed once on entry, and the part of a URL that may be printed.

Code that opens a connection takes an `Address`, and its parts go to the socket and onto the wire unchanged,
without being parsed again. So an invalid host or port is found here, and not later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, Self
from urllib.parse import unquote, urlsplit

from protocol.errors import AssayError

HIDDEN = "…"
MAX_ADDRESS: Final = 1_024
"""Maximum number of characters in an address, as many as the terms of a task can hold."""
PORTS: Final = {"http": 80, "https": 443}

_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PATH = re.compile(r"(?:[A-Za-z0-9/._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*")


class BadAddress(AssayError):
    """The text is not an http or https address that consists of a host, a port and a path."""


@dataclass(frozen=True, slots=True)
class Address:
    """The location of an HTTP server: a scheme, a host, a port and a path, nothing else."""

    scheme: str
    """http or https."""
    host: str
    """A host name in lower case (RFC 1123, with "_" allowed too), or an IP address, without brackets for IPv6."""
    port: int
    path: str = ""
    """Empty, or a path that begins with "/" (RFC 3986; escapes are not decoded). `parse` removes every "/" at
    its end.
    """

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an address that a stranger or an operator wrote. Raises only BadAddress."""
        if not 0 < len(text) <= MAX_ADDRESS:
            raise _bad(text, f"1 to {MAX_ADDRESS} characters")
        if not text.isascii() or not text.isprintable() or any(sign in text for sign in ' "<>\\^`{|}'):
            raise _bad(text, "printable ASCII that RFC 3986 allows, names beyond it written as xn--…")
        if "?" in text or "#" in text:
            raise _bad(text, "no query and no fragment")
        try:
            parts = urlsplit(text)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise _bad(text, "a host, and a port from 1 to 65535") from error
        if parts.scheme not in PORTS:
            raise _bad(text, "http or https")
        if "@" in parts.netloc:
            raise _bad(text, "no user and no password")
        if not _is_host(host, bracketed="[" in parts.netloc):
            raise _bad(text, "a host: a name, or an IP address")
        if port == 0:
            raise _bad(text, "a port from 1 to 65535")
        if not _PATH.fullmatch(parts.path) or ".." in unquote(parts.path).split("/"):
            raise _bad(text, "a path without '..' and with whole escapes")
        return cls(parts.scheme, host, port or PORTS[parts.scheme], parts.path.rstrip("/"))

    def __truediv__(self, below: str) -> Address:
        """An address below this one."""
        return replace(self, path=f"{self.path}/{below}")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def authority(self) -> str:
        """Host and port, as written in URLs and in the Host header (RFC 9110 section 7.2)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def ip(self) -> IPv4Address | IPv6Address | None:
        """The host as an IP address; None if it is a name."""
        return _ip(self.host)


def parsed(text: str) -> Address | None:
    """Parse an address that a stranger announced; None if it is empty or invalid."""
    try:
        return Address.parse(text)
    except BadAddress:
        return None


def require_web_url(url: str) -> str:
    """Check a URL of the operator's own node or server, and return it without surrounding spaces. The URL may
    have any path, query or user. Raises ValueError unless it is http or https, with a host.
    """
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError("expected a URL such as http://127.0.0.1:8545") from error
    if parts.scheme not in PORTS or not host:
        raise ValueError(
            "expected http:// or https:// and a host, such as http://127.0.0.1:8545"
            + (f"; {parts.scheme}:// is another scheme" if "://" in url else "")
        )
    return url.strip()


def public_part(url: str) -> str:
    """The scheme, host and port of a URL, with "…" for the rest. If the URL has no scheme or host, "…" stands
    for all of it.

    Node providers put their customers' keys into paths, queries and users.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    if not parts.scheme or not host:
        return HIDDEN
    shown = f"{parts.scheme}://{host}"
    return shown if url.rstrip("/") == shown else f"{shown}/{HIDDEN}"


def _is_host(host: str, bracketed: bool) -> bool:
    """Whether the text is a valid host. If it ends in a number, it must be a complete IPv4 address, because a
    resolver would read "127.1" and "0x7f000001" as addresses too.
    """
    found = _ip(host)
    if bracketed or ":" in host:
        return bracketed and isinstance(found, IPv6Address) and found.scope_id is None
    labels = host.split(".")
    named = len(host) <= 253 and all(map(_LABEL.fullmatch, labels)) and not _NUMBER.fullmatch(labels[-1])
    return found is not None or named


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _bad(text: str, expected: str) -> BadAddress:
    return BadAddress(
        "HTTP address",
        expected=expected,
        got=ascii(text[:200]),
        remedy="give an address such as https://node.example.org:8701/assay",
    )
