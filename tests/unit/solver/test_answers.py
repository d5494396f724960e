"""Answers that are sent in pieces, without a server."""

from __future__ import annotations

import asyncio
from io import BytesIO

import pytest

from solver.answers import FILE_PIECE, PIECE, FileOnDisk, binary
from solver.concurrency import Budget
from solver.limits import Message


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 3 * PIECE])
def test_an_answer_is_sent_in_pieces(size: int) -> None:
    """Each piece has a time limit, which cuts off a client that reads slowly."""
    data, sent = bytes(range(256)) * (size // 256) + bytes(size % 256), list[Message]()

    async def receive() -> Message:
        raise AssertionError("nothing is asked of the client")

    async def send(message: Message) -> None:
        sent.append(message)

    file = BytesIO(data)
    for answer, most in ((binary(data, Budget()), PIECE), (FileOnDisk(file), FILE_PIECE)):
        asyncio.run(answer({"type": "http"}, receive, send))
        start, *pieces = sent
        assert (b"content-length", b"%d" % size) in start["headers"]
        assert b"".join(piece["body"] for piece in pieces) == data
        assert max(len(piece["body"]) for piece in pieces) <= most
        assert [piece["more_body"] for piece in pieces] == [True] * (len(pieces) - 1) + [False]
        sent.clear()
    assert file.closed


def test_a_client_that_is_gone_gives_back_what_it_took() -> None:
    budget = Budget(most=1)

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("it waits for ever")

    async def send(_message: Message) -> None:
        raise OSError("gone")

    for _ in range(2):
        for answer in (binary(bytes(2 * PIECE), budget), FileOnDisk(file := BytesIO(b"data"))):
            with pytest.raises(OSError, match="gone"):
                asyncio.run(answer({"type": "http"}, receive, send))
    assert file.closed
