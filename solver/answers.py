"""The kinds of HTTP answers to requests for data: canonical bytes (whole or a range of chunks), concatenated
roots, manifests.

The types of the parameters validate requests, so malformed requests never reach a run store.
"""

from __future__ import annotations

import asyncio
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from anyio import to_thread
from anyio.lowlevel import checkpoint
from fastapi import Depends, HTTPException, Path, Query, Request
from fastapi.responses import Response

from protocol.commitments import CHUNK
from protocol.commitments.hashing import BytesLike
from protocol.node.http_client import LEAST_RATE
from solver.concurrency import Budget
from solver.limits import Message, Receive, Send

if TYPE_CHECKING:
    from solver.run_store import RunStore

PIECE = 1 << 20
"""Size in bytes of the pieces in which an answer in memory is sent."""
MOST_CHUNKS = PIECE // CHUNK
"""Maximum number of chunks that one request may ask for. They are copied, so they are one piece. No client of
this repository asks for more than one chunk at a time.
"""
FILE_PIECE = 1 << 18
"""Size in bytes of the pieces in which a file is read and sent."""
START_SECONDS = 60.0
"""Seconds allowed for sending an answer, in addition to the time that its bytes take at LEAST_RATE."""

TaskId = Annotated[int, Path(ge=1, lt=1 << 63)]
Number = Annotated[int, Path(ge=0, lt=1 << 32)]
Positive = Annotated[int, Path(ge=1, lt=1 << 32)]
CallPath = Annotated[str, Query(pattern=r"^$|^[0-9]{1,5}(,[0-9]{1,5}){0,7}$")]
ChunkRange = Annotated[str, Query(pattern=r"^$|^[0-9]{1,10}:[0-9]{1,10}$")]
Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]{1,128}(/[A-Za-z0-9._-]{1,128}){0,3}$")]


def missing(what: str) -> HTTPException:
    """The 404 answer for something that this solver does not have."""
    return HTTPException(404, f"{what}: not here")


async def share_of_client(request: Request) -> Hashable:
    """The client's share of the server (`http_shares`); None if the client has no share."""
    return getattr(request.state, "share", None)


Share = Annotated[Any, Depends(share_of_client)]


class _InPieces(Response, ABC):
    """An answer of `size` bytes that is sent piece by piece, within a time limit."""

    def __init__(self, size: int, piece: int, media_type: str = "application/octet-stream") -> None:
        self._size, self._piece = size, piece
        super().__init__(headers={"content-length": str(size)}, media_type=media_type)

    async def __call__(self, _scope: Message, _receive: Receive, send: Send) -> None:
        """Send the bytes. At the end call `_release`, even if the client is too slow or disconnects
        (`SharedProtocol` then cancels this call).
        """
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        try:
            async with asyncio.timeout(START_SECONDS + self._size / LEAST_RATE):
                await send(start)
                for at in range(0, max(1, self._size), self._piece):
                    more = at + self._piece < self._size
                    await send(
                        {"type": "http.response.body", "body": await self._read(at), "more_body": more}
                    )
        finally:
            self._release()

    @abstractmethod
    async def _read(self, at: int) -> bytes:
        """The piece that begins at byte `at`. Pieces are read in order."""

    @abstractmethod
    def _release(self) -> None:
        """Give back the budget that the bytes take, or close their file."""


class BytesResponse(_InPieces):
    """An answer in memory. An answer longer than one piece counts against a budget until it is sent; the
    number of shorter answers is limited by the number of connections. Raises Busy if the budget has no room.

    `data` may be a view of a mapped file that is larger than memory. So a long answer is copied piece by
    piece, while it is sent. A short answer is copied at once, because a short view may keep a large value in
    memory. Nothing may write to `data` before the answer is sent.
    """

    def __init__(
        self,
        data: BytesLike,
        budget: Budget,
        share: Hashable = None,
        media_type: str = "application/octet-stream",
    ) -> None:
        super().__init__(len(data), PIECE, media_type)
        self._budget, self._share = budget, share
        self._counted = len(data) if len(data) > PIECE else 0
        if self._counted:
            budget.take(self._counted, share)
        self._data = data if self._counted else bytes(data)

    async def _read(self, at: int) -> bytes:
        # No thread is needed to produce the next piece, unlike in StreamingResponse.
        await checkpoint()  # ends here if the client has gone
        return bytes(self._data[at : at + PIECE])

    def _release(self) -> None:
        self._data = b""
        if self._counted:
            self._budget.give_back(self._counted, self._share)


class FileOnDisk(_InPieces):
    """An answer that is read from an open file while it is sent. The file is closed at the end. The answer
    needs no budget: each connection has about two pieces in memory, which is 0.5 GiB for
    `http_shares.MAX_CONNECTIONS` connections.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file.seek(0, os.SEEK_END), FILE_PIECE)
        file.seek(0)
        self._file = file

    async def _read(self, _at: int) -> bytes:
        return await to_thread.run_sync(self._file.read, FILE_PIECE)

    def _release(self) -> None:
        self._file.close()


def binary(data: BytesLike, budget: Budget, share: Hashable = None, chunks: str = "") -> Response:
    """Canonical bytes as an answer: all of them or, if `chunks` is a range `lo:hi`, only chunks lo … hi - 1.
    Long answers are not copied here, because this function runs on the event loop. Raises HTTPException (416)
    as `chunk_range` does, and Busy.
    """
    if chunks:
        lo, hi = chunk_range(chunks, len(data))
        data = data[lo * CHUNK : hi * CHUNK]
    return BytesResponse(data, budget, share)


def chunk_range(chunks: str, nbytes: int) -> tuple[int, int]:
    """Parse the range `lo:hi` of a tensor's chunks. Raises HTTPException (416) if the range is empty, goes
    beyond the end or has more than MOST_CHUNKS chunks.
    """
    lo, hi = map(int, chunks.split(":"))
    count = -(-nbytes // CHUNK)
    if not lo < hi <= count:
        raise HTTPException(416, f"expected chunks inside 0:{count}, got {chunks}")
    if hi - lo > MOST_CHUNKS:
        raise HTTPException(416, f"expected at most {MOST_CHUNKS} chunks, got {chunks}")
    return lo, hi


def hashes(roots: Sequence[bytes], budget: Budget, share: Hashable = None) -> Response:
    """Concatenated 32-byte roots as an answer. Raises Busy."""
    return BytesResponse(b"".join(roots), budget, share)


def encoded_manifest(run_store: RunStore, number: int) -> bytes:
    """The tensors of a checkpoint with their roots, as JSON. Each tensor takes about 130 bytes plus its name
    of at most 200 characters, so 65,535 tensors take up to about 21 MB. Call this function in a thread.
    """
    manifest = {
        "version": 1,
        "task": run_store.task,
        "checkpoint": number,
        "state_root": "0x" + run_store.roots()[number].hex(),
        "tensors": [
            {
                "name": entry.name,
                "dtype": entry.dtype,
                "shape": list(entry.shape),
                "root": "0x" + entry.root.hex(),
                "bytes": entry.bytes,
            }
            for entry in run_store.manifest(number)
        ],
    }
    return json.dumps(manifest, separators=(",", ":")).encode()


def json_bytes(data: bytes, budget: Budget, share: Hashable = None) -> Response:
    """Encoded JSON as an answer. Raises Busy."""
    return BytesResponse(data, budget, share, "application/json")


def call_path(text: str) -> tuple[int, ...]:
    """Parse the numbers of call instructions, from the top frame down, separated by commas. An empty text
    gives an empty path.
    """
    return tuple(map(int, text.split(","))) if text else ()
