"""Where the files of a bundle come from: an HTTP server or an fsspec URL that the operator allows. Files are
asked for by name only.

Plain http serves as https does: every file is checked against hashes that the chain holds, and whoever reads the terms
may read the bundle, so nobody on the way can change anything or learn what is not public. But strangers name the
addresses, and plain http opens every door behind an operator's firewall. So it leads to this machine, whose parties
share it on a development chain, or onto the internet; into a private network only where the operator says so.
Redirects, encodings (a small answer that unpacks to a large one) and answers longer than announced are refused.
"""

from __future__ import annotations

import asyncio
import socket
import time
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from protocol.node import http_client
from protocol.tasks.bundles.errors import BundleRefused, BundleTooLarge, BundleUnavailable
from protocol.tasks.bundles.limits import Limits


class Source(Protocol):
    """Reads one file below a bundle's address, whole, at most `limit` bytes of it."""

    def read(self, name: str, limit: int) -> bytes:
        """Raises BundleUnavailable, BundleTooLarge, or BundleRefused for a name that leads where it must not."""

    def close(self) -> None:
        """Let go of connections."""


def open_source(url: str, limits: Limits, *, anywhere: bool = False) -> Source:
    """The source for a bundle's address; nothing is asked yet. `anywhere`: plain http may lead into a private network
    too, for what an operator asks for itself. Raises BundleRefused for an address that is not allowed.
    """
    parts = _parts(url)
    told = _is_below(url, limits.allowed)
    if parts.scheme not in ("http", "https"):
        if not told:
            raise _refused(
                url, "http, https, or one below an address that the operator allows", parts.scheme or "a path"
            )
        return FileSource(url)
    host = parts.hostname
    if not host or parts.username is not None:
        raise _refused(url, "a host and no password")
    address = _address(host)
    if address is not None and address.is_unspecified:
        raise _refused(url, "the address of a host")
    free = told or anywhere or parts.scheme == "https" or _is_loopback(host)
    if not free and address is not None:
        _require_public(url, [host])
    return HttpSource(url, time.monotonic() + limits.seconds, guarded=not free)


class FileSource:
    """A folder or bucket through fsspec."""

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self._system: Any
        self._system, self._base = url_to_fs(url.rstrip("/"))

    def read(self, name: str, limit: int) -> bytes:
        """The file's bytes."""
        path = f"{self._base}/{name}"
        try:
            with self._system.open(path, "rb") as file:
                data = bytes(file.read(limit + 1))
        except OSError as error:
            raise _unavailable(path, type(error).__name__) from error
        if len(data) > limit:
            raise _too_large(path, len(data), limit)
        return data

    def close(self) -> None:
        """Nothing is held."""


class HttpSource:
    """A server of plain files; `deadline` (monotonic seconds) is for all of them together, headers included.

    `guarded`: the host's name is looked up once and must not lead into a private network; only what was found is asked.
    """

    def __init__(self, url: str, deadline: float, *, guarded: bool = False) -> None:
        import httpx

        self._base = self._asked = url.rstrip("/")
        self._deadline = deadline
        self._guarded = guarded
        self._headers: dict[str, str] = {}
        self._failures = (httpx.HTTPError, httpx.InvalidURL)
        # A loop of its own, for only there can a whole exchange be given up: a read that waits for each byte anew
        # would follow a server that trickles its headers for ever.
        self._loop = asyncio.Runner()
        self._client = http_client.client(timeout=20.0)

    def read(self, name: str, limit: int) -> bytes:
        """The file's bytes."""
        return self._loop.run(self._read(name, limit))

    async def _read(self, name: str, limit: int) -> bytes:
        url = f"{self._base}/{name}"
        data = bytearray()
        try:
            async with asyncio.timeout(self._deadline - time.monotonic()):
                if self._guarded:
                    await self._look_up()
                asked = f"{self._asked}/{name}"
                await http_client.get(self._client, asked, limit, data, headers=self._headers)
        except http_client.NotServed as error:
            raise _unavailable(url, f"HTTP {error.status}") from error
        except http_client.Encoded as error:
            got = f"content encoding {error.encoding[:40]!r}, which was not asked for"
            raise _unavailable(url, got) from error
        except http_client.TooLong as error:
            raise _too_large(url, len(data), limit) from error
        except TimeoutError as error:
            raise _unavailable(url, f"{len(data)} bytes when the time was over") from error
        except self._failures as error:
            raise _unavailable(url, type(error).__name__) from error
        return bytes(data)

    async def _look_up(self) -> None:
        """From now on ask the address that the host has now: its name cannot lead elsewhere after the check."""
        parts = urlsplit(self._base)
        port = parts.port or 80
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                parts.hostname, port, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError) as error:  # no such name; a name that is none
            raise _unavailable(self._base, type(error).__name__) from error
        hosts = [str(entry[4][0]) for entry in found]
        _require_public(self._base, hosts)
        host = f"[{hosts[0]}]" if ":" in hosts[0] else hosts[0]
        self._asked = parts._replace(netloc=f"{host}:{port}").geturl()
        self._headers = {"Host": parts.netloc}
        self._guarded = False

    def close(self) -> None:
        """Close the connection."""
        self._loop.run(self._client.aclose())
        self._loop.close()


def _parts(url: str) -> SplitResult:
    """The parts of a plain address. Raises BundleRefused for any other."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise _refused(url, "an address with a host and a port that can be") from error
    if ".." in unquote(parts.path).split("/") or parts.query or parts.fragment or not url.isprintable():
        raise _refused(url, "a plain address, without '..', query or fragment")
    return parts


def _is_below(url: str, allowed: tuple[str, ...]) -> bool:
    return any(url.startswith(prefix if prefix.endswith("/") else prefix + "/") for prefix in allowed)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is written as; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _require_public(url: str, hosts: list[str]) -> None:
    """Raise BundleRefused unless all these addresses are the internet's."""
    for host in hosts:
        address = _address(host)
        if address is None or not address.is_global:
            raise _refused(url, "an address on the internet, or https", host)


def _refused(url: str, expected: str, got: str = "another") -> BundleRefused:
    return BundleRefused(
        f"bundle address {url[:200]!r}",
        expected=expected,
        got=got,
        remedy="name another address, or allow this one by `bundles` in config.toml",
    )


def _unavailable(where: str, got: str) -> BundleUnavailable:
    return BundleUnavailable(
        f"bundle file {where}",
        expected="the file",
        got=got,
        remedy="try again later, or do not take this task",
    )


def _too_large(where: str, got: int, limit: int) -> BundleTooLarge:
    return BundleTooLarge(
        f"bundle file {where}",
        expected=f"at most {limit} bytes",
        got=f"more ({got})",
        remedy="refuse this bundle",
    )
