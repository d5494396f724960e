"""Sources of a bundle's files: an HTTP server, or an fsspec URL that the operator allows. Files are requested
only by name.

Plain HTTP is sufficient. Every file is checked against hashes on the chain, and a bundle is as public as its
terms. So nobody on the network path can change anything, or learn anything that is not public.
`protocol.node.reach` decides which addresses are allowed. Redirects, answers longer than announced, and
content encodings are refused, since a small encoded answer could unpack to a large one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import unquote

from protocol.node.addresses import Address, BadAddress
from protocol.node.http_client import BadAnswer, Body, Broken, Encoded, HttpClient, NotServed, TooLong
from protocol.node.lookups import Permit
from protocol.node.loops import OwnLoop
from protocol.node.reach import OutOfReach
from protocol.tasks.bundles.errors import BundleRefused, BundleUnavailable, WrongFile
from protocol.tasks.bundles.limits import Limits
from protocol.tasks.bundles.write import MANIFEST

PIECE = 1 << 20
"""Bytes of a file that are held in memory at one time."""
READ_SECONDS = 20.0
"""Time limit for each single read, in seconds. The limit for the whole bundle also applies."""


class Source(Protocol):
    """Copies files that lie below a bundle's address."""

    def copy(self, name: str, limit: int, into: Body) -> None:
        """Copy a file of at most `limit` bytes.

        Raises WrongFile if the file is longer, BundleRefused if the server's name leads to a forbidden
        address, BundleUnavailable if the file cannot be read or the time for the bundle is over, and the
        errors of `into`.
        """

    def close(self) -> None:
        """Close connections."""


def read(source: Source, name: str, limit: int) -> bytes:
    """A small file's bytes. Raises as `Source.copy` does."""
    data = bytearray()
    source.copy(name, limit, data)
    return bytes(data)


def read_manifest(source: Source, limit: int, bundle_hash: bytes) -> bytes:
    """The manifest of the bundle with this hash. Raises WrongFile if the source has another file in its
    place, and otherwise as `Source.copy` does.
    """
    data = read(source, MANIFEST, limit)
    if (found := sha256(data).digest()) != bundle_hash:
        raise WrongFile(
            "bundle hash",
            expected=bundle_hash.hex(),
            got=found.hex(),
            remedy="try again later, or do not take this task",
        )
    return data


def open_source(place: str | Address, limits: Limits, *, anywhere: bool = False) -> Source:
    """The source for a bundle's address. Nothing is requested yet. `anywhere` is meant for an address that
    the operator gave: plain http may then also lead into a private network. Raises BundleRefused for an
    address that is not allowed.
    """
    text = str(place)
    if not text.lower().startswith(("http:", "https:")):
        if not _is_below(text, limits.allowed):
            scheme = text[:40].partition(":")[0]
            raise _refused(
                text, "http, https, or one below an address that the operator allows", ascii(scheme)
            )
        return FileSource(_plain(text))
    try:
        address = Address.parse(place) if isinstance(place, str) else place
        permit = replace(limits.reach, anywhere=anywhere).permit(address)
    except (BadAddress, OutOfReach) as error:
        raise _refused(text, error.expected or "", str(error.got)) from error
    return HttpSource(address, time.monotonic() + limits.seconds, permit)


class FileSource:
    """A folder or bucket, read through fsspec."""

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self._system: Any
        try:
            self._system, self._base = url_to_fs(url.rstrip("/"))
        except Exception as error:  # each file system has its own errors
            raise _refused(url, "an address that fsspec opens", type(error).__name__) from error

    def copy(self, name: str, limit: int, into: Body) -> None:
        """Copy the file piece by piece."""
        path = f"{self._base}/{name}"
        for piece in self._pieces(path):
            if len(into) + len(piece) > limit:
                raise _too_long(path, limit)
            into.extend(piece)

    def _pieces(self, path: str) -> Iterator[bytes]:
        # A generator, so that only errors of the source's file system are caught, not those of a full local disk.
        try:
            with self._system.open(path, "rb") as file:
                while piece := bytes(file.read(PIECE)):
                    yield piece
        except Exception as error:
            raise _unavailable(path, type(error).__name__) from error

    def close(self) -> None:
        """Nothing to close."""


class HttpSource:
    """A server of plain files. `deadline` (monotonic seconds) applies to all files and headers together.
    `permit` raises OutOfReach if the server's name resolves to forbidden addresses.
    """

    def __init__(self, address: Address, deadline: float, permit: Permit | None = None) -> None:
        self._address = address
        self._deadline = deadline
        # A separate event loop, because only there can a whole exchange be cancelled. A timeout for each read would
        # never stop a server that trickles its headers.
        self._loop = OwnLoop()
        self._client = HttpClient(READ_SECONDS, permit)

    def copy(self, name: str, limit: int, into: Body) -> None:
        """Copy the file's bytes as they arrive."""
        self._loop.run(self._copy(self._address / name, limit, into))

    async def _copy(self, address: Address, limit: int, into: Body) -> None:
        try:
            async with asyncio.timeout(self._deadline - time.monotonic()):
                await self._client.get(address, limit, into)
        except TooLong as error:
            raise _too_long(str(address), limit) from error
        except OutOfReach as error:
            raise _refused(str(address), error.expected or "", str(error.got)) from error
        except TimeoutError as error:
            raise _unavailable(str(address), f"{len(into)} bytes when the time was over") from error
        except BadAnswer as error:
            raise _unavailable(str(address), _said(error)) from error

    def close(self) -> None:
        """Close the connection."""
        self._loop.run(self._client.close())
        self._loop.close()


def _said(error: BadAnswer) -> str:
    """A short description of a server's answer that is not the requested file."""
    if isinstance(error, NotServed):
        return f"HTTP {error.status}"
    if isinstance(error, Encoded):
        return f"content encoding {error.encoding[:40]!r}, which was not asked for"
    return error.kind if isinstance(error, Broken) else str(error)


def _plain(url: str) -> str:
    """Return a URL if it names one file system and does not lead out of its folder. Raises BundleRefused for
    others.
    """
    path = unquote(url.partition("://")[2])
    if ".." in path.split("/") or "::" in path or not url.isprintable() or any(sign in url for sign in "?#"):
        raise _refused(url, "a plain address, without '..', '::', query or fragment")
    return url


def _is_below(url: str, allowed: tuple[str, ...]) -> bool:
    return any(url.startswith(prefix if prefix.endswith("/") else prefix + "/") for prefix in allowed)


def _refused(url: str, expected: str, got: str = "another") -> BundleRefused:
    return BundleRefused(
        f"bundle address {url[:200]!a}",
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


def _too_long(where: str, limit: int) -> WrongFile:
    return WrongFile(
        f"bundle file {where}",
        expected=f"at most {limit} bytes",
        got="more",
        remedy="try again later, or do not take this task",
    )
