"""Where the files of a bundle come from: an HTTP server or an fsspec URL that the operator allows. Files are
asked for by name only.

Plain http is for loopback; elsewhere https, so that nobody on the way sees what is trained. Redirects,
encodings (a small answer that unpacks to a large one) and answers longer than announced are refused.
"""

from __future__ import annotations

import asyncio
import time
from ipaddress import ip_address
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from protocol.bundles.errors import BundleRefused, BundleTooLarge, BundleUnavailable
from protocol.bundles.limits import Limits


class Source(Protocol):
    """Reads one file below a bundle's address, whole, at most `limit` bytes of it."""

    def read(self, name: str, limit: int) -> bytes:
        """Raises BundleUnavailable or BundleTooLarge."""

    def close(self) -> None:
        """Let go of connections."""


def open_source(url: str, limits: Limits) -> Source:
    """The source for a bundle's address. Raises BundleRefused for an address that is not allowed; nothing is
    asked yet.
    """
    parts = urlsplit(url)
    if ".." in unquote(parts.path).split("/") or parts.query or parts.fragment or not url.isprintable():
        raise _refused(url, "a plain address, without '..', query or fragment")
    if any(url.startswith(prefix if prefix.endswith("/") else prefix + "/") for prefix in limits.allowed):
        return FileSource(url)
    if parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname)):
        if not parts.hostname or parts.username is not None:
            raise _refused(url, "a host and no password")
        return HttpSource(url, time.monotonic() + limits.seconds)
    raise _refused(url, "https, http on loopback, or an address below one that the operator allows")


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
        _require_within(path, len(data), limit)
        return data

    def close(self) -> None:
        """Nothing is held."""


class HttpSource:
    """A server of plain files; `deadline` (monotonic seconds) is for all of them together, headers included."""

    def __init__(self, url: str, deadline: float) -> None:
        import httpx

        self._base = url.rstrip("/")
        self._deadline = deadline
        self._failures = (httpx.HTTPError, httpx.InvalidURL)
        # A loop of its own, for only there can a whole exchange be given up: a read that waits for each byte anew
        # would follow a server that trickles its headers for ever.
        self._loop = asyncio.Runner()
        self._client = httpx.AsyncClient(
            timeout=20.0, follow_redirects=False, trust_env=False, headers={"Accept-Encoding": "identity"}
        )

    def read(self, name: str, limit: int) -> bytes:
        """The file's bytes."""
        return self._loop.run(self._read(f"{self._base}/{name}", limit))

    async def _read(self, url: str, limit: int) -> bytes:
        data = bytearray()
        try:
            async with (
                asyncio.timeout(self._deadline - time.monotonic()),
                self._client.stream("GET", url) as response,
            ):
                if response.status_code != 200:
                    raise _unavailable(url, f"HTTP {response.status_code}")
                encoding = response.headers.get("Content-Encoding", "identity")
                if encoding != "identity":
                    raise _unavailable(url, f"content encoding {encoding[:40]!r}, which was not asked for")
                async for piece in response.aiter_raw():
                    data += piece
                    _require_within(url, len(data), limit)
        except TimeoutError as error:
            raise _unavailable(url, f"{len(data)} bytes when the time was over") from error
        except self._failures as error:
            raise _unavailable(url, type(error).__name__) from error
        return bytes(data)

    def close(self) -> None:
        """Close the connection."""
        self._loop.run(self._client.aclose())
        self._loop.close()


def _is_loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def _refused(url: str, expected: str) -> BundleRefused:
    return BundleRefused(
        f"bundle address {url[:200]!r}",
        expected=expected,
        got="another",
        remedy="ask the submitter for another address, or allow this one in the settings",
    )


def _unavailable(where: str, got: str) -> BundleUnavailable:
    return BundleUnavailable(
        f"bundle file {where}",
        expected="the file",
        got=got,
        remedy="try again later, or do not take this task",
    )


def _require_within(where: str, got: int, limit: int) -> None:
    if got > limit:
        raise BundleTooLarge(
            f"bundle file {where}",
            expected=f"at most {limit} bytes",
            got=f"more ({got})",
            remedy="refuse this bundle",
        )
