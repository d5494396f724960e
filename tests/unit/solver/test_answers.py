"""Answers that are sent in pieces, without a server."""

from __future__ import annotations

import asyncio
from io import BytesIO
from typing import cast

import pytest
from fastapi import HTTPException

from protocol.commitments import CHUNK
from solver.answers import FILE_PIECE, MOST_CHUNKS, PIECE, FileOnDisk, binary, chunk_range
from solver.concurrency import Budget, Busy
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


class Mapped:
    """Stands for a view of a mapped file. `read` has the place of each part that was read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.read: list[slice] = []

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> bytes:
        self.read.append(part)
        return bytes(len(range(*part.indices(self.size))))


def test_a_large_value_is_read_only_while_it_is_sent_one_piece_at_a_time() -> None:
    """The value may be a mapped dataset larger than memory, and this code runs on the event loop."""
    mapped, read_before = Mapped(3 * PIECE + 1), list[int]()

    async def receive() -> Message:
        raise AssertionError("nothing is asked of the client")

    async def send(_message: Message) -> None:
        read_before.append(len(mapped.read))

    answer = binary(cast(memoryview, mapped), Budget())
    assert not mapped.read
    asyncio.run(answer({"type": "http"}, receive, send))
    assert read_before == [0, 1, 2, 3, 4]
    assert [(part.start, part.stop) for part in mapped.read] == [
        (at * PIECE, (at + 1) * PIECE) for at in range(4)
    ]


def test_a_value_for_which_the_budget_has_no_room_is_not_read() -> None:
    budget, mapped = Budget(most=4 * PIECE), Mapped(2 * PIECE)
    budget.take(3 * PIECE)
    with pytest.raises(Busy):
        binary(cast(memoryview, mapped), budget)
    assert not mapped.read


def test_a_short_answer_keeps_no_large_value_in_memory() -> None:
    value = bytearray(4 * PIECE)
    answers = [binary(memoryview(value), Budget(), chunks="0:1"), binary(memoryview(value)[:9], Budget())]
    value.clear()  # raises BufferError if there is a view
    assert len(answers) == 2


def test_a_range_of_too_many_chunks_is_refused() -> None:
    nbytes = 2 * PIECE
    assert chunk_range(f"1:{MOST_CHUNKS + 1}", nbytes) == (1, MOST_CHUNKS + 1)
    mapped = Mapped(nbytes)
    with pytest.raises(HTTPException) as refused:
        binary(cast(memoryview, mapped), Budget(), chunks=f"0:{MOST_CHUNKS + 1}")
    assert refused.value.status_code == 416
    assert not mapped.read
    assert MOST_CHUNKS * CHUNK <= PIECE, "a range is copied, and not counted"
