"""A public bucket or folder: this node writes to it through fsspec, and everyone else reads it at another
address.

fsspec's file systems find credentials in their usual places, such as AWS_ACCESS_KEY_ID or ~/.aws for s3://;
credentials are never in a setting. The bucket's owner must allow public reading; `require_readable` checks
that.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from protocol.commitments.atomic import write_atomically
from protocol.node.addresses import Address
from protocol.node.http_client import BadAnswer, HttpClient
from solver.errors import PublicPlaceError

PROBE = "readable"
"""Folder of the files that test whether written files can be read."""
READ_SECONDS = 30.0


def place_of(publish: str, market: str) -> PublicPlace:
    """The place below the setting `publish` where a node writes for a market. Raises PublicPlaceError."""
    return PublicPlace(f"{publish.rstrip('/')}/{market}")


class PublicPlace:
    """Files below an fsspec URL. Any thread may write. Raises PublicPlaceError if fsspec cannot open the URL."""

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs
        from fsspec.implementations.local import LocalFileSystem

        self._url = url.rstrip("/")
        self._system: Any
        with self._errors("open"):
            self._system, self._base = url_to_fs(self._url)
        self._is_local = isinstance(self._system, LocalFileSystem)

    def write(self, name: str, data: bytes) -> None:
        """Write these bytes to a file; readers see all of them or none."""
        with self._errors(name):
            if self._is_local:
                write_atomically(Path(self._base) / name, data)
            else:
                self._system.pipe_file(f"{self._base}/{name}", data)

    def copy(self, path: Path, name: str) -> None:
        """Copy a local file, which need not fit into memory."""
        with self._errors(name):
            target = f"{self._base}/{name}"
            if self._is_local:
                Path(target).parent.mkdir(parents=True, exist_ok=True)
            self._system.put_file(str(path), target)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none."""
        with self._errors(name):
            try:
                return bytes(self._system.cat_file(f"{self._base}/{name}"))
            except FileNotFoundError:
                return None

    def remove(self, folder: str) -> None:
        """Delete a folder with all its files, if it exists."""
        with self._errors(folder), suppress(FileNotFoundError):
            self._system.invalidate_cache()
            self._system.rm(f"{self._base}/{folder}", recursive=True)

    def require_readable(self, address: Address) -> None:
        """Raise PublicPlaceError unless files written here can be read at an address."""
        token = secrets.token_hex(16)
        found = bytearray()
        # A new name each time, because a cache may still serve an earlier file.
        self.write(f"{PROBE}/{token}", token.encode())
        try:
            asyncio.run(_get(address / f"{PROBE}/{token}", len(token), found))
        except (BadAnswer, TimeoutError) as error:
            raise self._unreadable(address, str(error) or type(error).__name__) from error
        finally:
            self.remove(PROBE)
        if found != token.encode():
            raise self._unreadable(address, "another file")

    def _unreadable(self, address: Address, got: str) -> PublicPlaceError:
        return PublicPlaceError(
            f"{address}/{PROBE}",
            expected=f"what was written to {self._url}",
            got=got,
            remedy="let everybody read the bucket, or correct `url`, the address that its files are read at",
        )

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except ImportError as error:
            raise PublicPlaceError(
                f"setting publish, {self._url}",
                expected="an address whose file system is installed",
                got=error,
                remedy="for s3:// install the extra `storage`: pip install 'assay[storage]'",
            ) from error
        except Exception as error:  # each file system has its own errors
            raise PublicPlaceError(
                f"{self._url}/{name}",
                expected="to be written and read",
                got=f"{type(error).__name__}: {error}",
                remedy="see whether the bucket is there, and AWS_ACCESS_KEY_ID or ~/.aws name who may write to it",
            ) from error


async def _get(address: Address, most: int, into: bytearray) -> None:
    async with asyncio.timeout(READ_SECONDS), HttpClient() as client:
        await client.get(address, most, into)
