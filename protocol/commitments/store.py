"""Content-addressed blobs: a blob's name is the SHA-256 of its bytes.

A store is a folder by default, or any fsspec URL (`s3://bucket/prefix`). The form of ids is checked. Except
in `part`, bytes that are read are checked against the id, so a reader never gets bytes that a server or
damage has changed. `chunks.py` makes trees from the bytes. Local writes are atomic and durable (`atomic.py`);
an object store's put is atomic.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import file_digest, sha256
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from protocol.commitments.atomic import atomic_file, remove_stale, write_atomically
from protocol.commitments.errors import BlobError, BlobTooLarge, CorruptBlob, MissingBlob, TooManyMaps
from protocol.commitments.hashing import BytesLike
from protocol.commitments.mapping import Maps

DEFAULT_MAX_BYTES = 1 << 34  # 16 GiB: one f32 tensor of 4 billion elements

SMALL = 1 << 14
"""A blob of fewer bytes is read into memory, not mapped. That takes at most 3.2 GB for the 196,605 tensors of
the largest manifest.
"""
LARGE = 1 << 16
"""If there are too many maps, a blob of at least this many bytes is refused, and a smaller blob is read into
memory.
"""

_MAPS = Maps()
_ID = re.compile(r"[0-9a-f]{64}")


class BlobStore:
    """Blobs under one folder or fsspec URL. Ids are 64 lower-case hexadecimal digits.

    `max_bytes` limits the size of a blob that is written, or read as a whole; beyond it BlobTooLarge is
    raised.
    """

    def __init__(self, url: str | Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        # Imported here because fsspec takes 70 ms to import, which would slow down `--help`.
        from fsspec.core import url_to_fs
        from fsspec.implementations.local import LocalFileSystem

        self.max_bytes = max_bytes
        self._fs: Any
        self._fs, self._base = url_to_fs(str(url))
        self._local = isinstance(self._fs, LocalFileSystem)
        self._fs.makedirs(self._base, exist_ok=True)
        if self._local:
            remove_stale(Path(self._base))

    def put(self, data: BytesLike) -> str:
        """Store `data` and return its id. If the store already holds an intact copy, nothing is written; a
        damaged copy is replaced.
        """
        nbytes = memoryview(data).nbytes
        _require_size("blob", nbytes, self.max_bytes)
        blob_id = sha256(data).hexdigest()
        if self._is_intact(blob_id, nbytes):
            return blob_id
        path = self._path(blob_id)
        if self._local:
            write_atomically(Path(path), data)
        else:
            self._fs.pipe_file(path, bytes(data))
        return blob_id

    @contextmanager
    def arriving(self, blob_id: str) -> Iterator[Arriving]:
        """Receive a blob piece by piece and store it at the end of the `with` block; a local store never
        holds the whole blob in memory. If the bytes do not match the id, raises CorruptBlob and stores
        nothing.
        """
        path = self._path(blob_id)
        if not self._local:
            body = BytesIO()
            yield (arriving := Arriving(body, self.max_bytes))
            arriving.require(path, blob_id)
            self._fs.pipe_file(path, body.getvalue())
            return
        with atomic_file(Path(path)) as file:
            yield (arriving := Arriving(file, self.max_bytes))
            arriving.require(path, blob_id)

    def get(self, blob_id: str, *, max_bytes: int | None = None) -> bytes:
        """Bytes of a blob, checked against its id.

        Raises MissingBlob or CorruptBlob. If the blob exceeds `max_bytes` or the store's limit, raises
        BlobTooLarge before reading.
        """
        path = self._path(blob_id)
        limit = self.max_bytes if max_bytes is None else min(max_bytes, self.max_bytes)
        _require_size(path, self.size(blob_id), limit)
        data = bytes(self._fs.cat_file(path))
        _require_intact(path, blob_id, sha256(data).hexdigest())
        return data

    def part(self, blob_id: str, start: int, end: int) -> bytes:
        """Bytes start … end - 1 of a blob, or fewer if the blob ends earlier. They are not checked, because checking
        needs the whole blob. Raises MissingBlob.
        """
        path = self._path(blob_id)
        try:
            return bytes(self._fs.cat_file(path, start, end))
        except FileNotFoundError:
            raise _missing(path, blob_id) from None

    def map(self, blob_id: str, *, small: int = SMALL) -> memoryview:
        """Bytes of a blob, checked against its id, read-only.

        A local file is memory-mapped, and not kept open: the system reads its pages on demand and releases
        them when memory is short. A blob is read into memory instead if the store is not local, if the blob
        is smaller than `small` bytes, or if it is smaller than `LARGE` and there are too many maps. Raises
        the errors of `get`, TooManyMaps, and OSError.
        """
        path = self._path(blob_id)
        size = self.size(blob_id)
        _require_size(path, size, self.max_bytes)
        data = _MAPS.map(Path(path)) if self._local and size >= small else None
        if data is None:
            if self._local and size >= max(small, LARGE):
                raise TooManyMaps(
                    path,
                    expected=f"a free memory map for {size} bytes",
                    got="none: other bundles in memory take all maps of this process",
                    remedy="none needed: it is read later, once other tasks are over",
                )
            return memoryview(self.get(blob_id))
        _require_intact(path, blob_id, sha256(data).hexdigest())
        return data

    def open(self, blob_id: str) -> BinaryIO:
        """A blob as an open file at its start, checked against its id. A local blob is never in memory as a
        whole. The caller closes the file. Raises the same errors as `get`, and OSError.
        """
        if not self._local:
            return BytesIO(self.get(blob_id))
        path = self._path(blob_id)
        _require_size(path, self.size(blob_id), self.max_bytes)
        with ExitStack() as unless_checked:
            file = unless_checked.enter_context(open(path, "rb", buffering=0))
            _require_intact(path, blob_id, file_digest(file, sha256).hexdigest())
            file.seek(0)
            unless_checked.pop_all()
        return file

    def link(self, blob_id: str, path: Path) -> None:
        """Hard-link a blob to `path`, outside the store, so that the bytes remain if the store is deleted;
        copy it if the file system cannot link. A file that exists at `path` is left unchanged. Raises OSError
        and BlobError.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(self._path(blob_id), path)
        except FileExistsError:
            return
        except OSError:
            write_atomically(path, self.get(blob_id))

    def has(self, blob_id: str) -> bool:
        """Whether the store holds a blob of this id. Its bytes are not checked; `get` does that."""
        return bool(self._fs.isfile(self._path(blob_id)))

    def size(self, blob_id: str) -> int:
        """Length of a stored blob in bytes. Raises MissingBlob if the store does not hold the blob."""
        path = self._path(blob_id)
        try:
            return int(self._fs.size(path))
        except FileNotFoundError:
            raise _missing(path, blob_id) from None

    def _is_intact(self, blob_id: str, nbytes: int) -> bool:
        try:
            if self.size(blob_id) != nbytes:
                return False
            self.get(blob_id)
        except (MissingBlob, CorruptBlob):
            return False
        return True

    def _path(self, blob_id: str) -> str:
        # The check also prevents path traversal by an id from a stranger.
        if not _ID.fullmatch(blob_id):
            raise BlobError(
                "blob id",
                expected="64 lower-case hexadecimal digits",
                got=repr(blob_id[:80]),
                remedy="pass the id that put returned",
            )
        # 256 folders keep directory listings short even with millions of blobs.
        return f"{self._base}/{blob_id[:2]}/{blob_id}"


class Arriving:
    """A blob being received. Each piece is hashed and written when it arrives."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most = file, most
        self._hash = sha256()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def extend(self, piece: bytes) -> None:
        """Add bytes. Raises BlobTooLarge or OSError."""
        self._length += len(piece)
        _require_size("blob", self._length, self._most)
        self._hash.update(piece)
        self._file.write(piece)

    @property
    def id(self) -> str:
        """The id of the bytes so far."""
        return self._hash.hexdigest()

    def require(self, path: str, blob_id: str) -> None:
        """Raise CorruptBlob unless the bytes so far have this id."""
        _require_intact(path, blob_id, self.id)


def _missing(path: str, blob_id: str) -> MissingBlob:
    return MissingBlob(
        f"no blob {blob_id}",
        expected=f"a file at {path}",
        got="none",
        remedy="fetch it from a party that serves it",
    )


def _require_intact(path: str, blob_id: str, found: str) -> None:
    if found != blob_id:
        raise CorruptBlob(
            f"corrupt blob {path}",
            expected=f"SHA-256 {blob_id}",
            got=found,
            remedy="delete this file and fetch or store the blob again",
        )


def _require_size(what: str, nbytes: int, limit: int) -> None:
    if nbytes > limit:
        raise BlobTooLarge(
            what,
            expected=f"at most {limit} bytes",
            got=f"{nbytes} bytes",
            remedy="raise max_bytes if this size is legitimate",
        )
