"""The kinds of HTTP answers to requests for data: canonical bytes (whole or a range of chunks),
concatenated roots, manifests.

The parameters' types validate requests, so malformed ones never reach a run store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import HTTPException, Path, Query
from fastapi.responses import Response

from protocol.commitments import CHUNK
from protocol.commitments.hashing import BytesLike
from protocol.node.http_client import LEAST_RATE
from solver.concurrency import Budget
from solver.limits import Message, Receive, Send

if TYPE_CHECKING:
    from solver.run_store import RunStore

PIECE = 1 << 20  # bytes sent at a time
START_SECONDS = 60.0
"""Seconds for an answer to be sent, in addition to what LEAST_RATE allows for its bytes."""

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


class BudgetedResponse(Response):
    """An answer whose bytes count against a budget until they are sent, or until the client has disconnected
    or is too slow. Raises Busy.
    """

    def __init__(self, data: bytes, budget: Budget) -> None:
        size = len(data)
        budget.take(size)
        self._size, self._budget = size, budget
        super().__init__(data, media_type="application/octet-stream")

    async def __call__(self, _scope: Message, _receive: Receive, send: Send) -> None:
        """Send the bytes. They are all in memory, so no thread is needed to produce the next piece, unlike in
        StreamingResponse.
        """
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        try:
            async with asyncio.timeout(START_SECONDS + self._size / LEAST_RATE):
                await send(start)
                for end in range(PIECE, max(1, self._size) + PIECE, PIECE):
                    piece = self.body[end - PIECE : end]
                    await send({"type": "http.response.body", "body": piece, "more_body": end < self._size})
        finally:
            self._budget.give_back(self._size)


def binary(data: BytesLike, budget: Budget, chunks: str = "") -> Response:
    """Canonical bytes as an answer; with `lo:hi`, only chunks lo … hi - 1. Answers 416 as `chunk_range`
    does.
    """
    if chunks:
        lo, hi = chunk_range(chunks, len(data))
        data = data[lo * CHUNK : hi * CHUNK]
    return BudgetedResponse(bytes(data), budget)


def chunk_range(chunks: str, nbytes: int) -> tuple[int, int]:
    """Parse the range `lo:hi` of a tensor's chunks. Answers 416 if it is empty or goes beyond the end."""
    lo, hi = map(int, chunks.split(":"))
    count = -(-nbytes // CHUNK)
    if not lo < hi <= count:
        raise HTTPException(416, f"expected chunks inside 0:{count}, got {chunks}")
    return lo, hi


def hashes(roots: Sequence[bytes], budget: Budget) -> Response:
    """Concatenated 32-byte roots as an answer."""
    return BudgetedResponse(b"".join(roots), budget)


def manifest(run_store: RunStore, number: int) -> dict[str, Any]:
    """The tensors of a checkpoint with their roots, as JSON data."""
    return {
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


def call_path(text: str) -> tuple[int, ...]:
    """Parse a path of call instructions, from the top frame down."""
    return tuple(map(int, text.split(","))) if text else ()
