"""Bounded GET against real servers: the bytes that are due, and nothing that was not asked for."""

from __future__ import annotations

import asyncio
import gzip

import httpx
import pytest

from protocol.node.http_client import BadAnswer, Encoded, NotServed, TooLong, client, get
from tests.unit.node.servers import Handler, answers, serving

BODY = bytes(range(200))


def read(handler: Handler, most: int) -> bytes:
    """What `get` reads from a server that answers so."""

    async def ask(url: str) -> bytes:
        into = bytearray()
        async with client(5.0) as asking:
            await get(asking, f"{url}/file", most, into, parameters={"path": "1,2"})
        return bytes(into)

    with serving(handler) as server:
        found = asyncio.run(ask(server.url))
        assert server.targets == ["/file?path=1%2C2"]
    return found


@pytest.mark.parametrize("most", [200, 201, 10_000])
def test_a_body_within_the_limit_is_read_whole(most: int) -> None:
    assert read(answers(BODY), most) == BODY


@pytest.mark.parametrize("most", [0, 1, 199])
def test_a_longer_body_is_refused(most: int) -> None:
    with pytest.raises(TooLong, match=f"^expected at most {most} bytes, got more$"):
        read(answers(BODY), most)


@pytest.mark.parametrize(
    "status", ["404 Not Found", "503 Service Unavailable", "206 Partial Content", "302 Found"]
)
def test_any_other_status_is_no_answer(status: str) -> None:
    with pytest.raises(NotServed) as raised:
        read(answers(BODY, status, "location: http://127.0.0.1:1/"), 200)
    assert raised.value.status == int(status[:3])


def test_an_encoding_is_refused_before_it_unpacks() -> None:
    with pytest.raises(Encoded) as raised:
        read(answers(gzip.compress(bytes(1 << 20)), "200 OK", "content-encoding: gzip"), 1 << 20)
    assert raised.value.encoding == "gzip"


def test_what_has_come_is_seen_when_the_time_is_over() -> None:
    into = bytearray()

    async def ask(url: str) -> None:
        async with asyncio.timeout(0.5), client() as asking:
            await get(asking, url, 1000, into)

    def halts(connection: object, _target: str) -> None:
        answers(BODY, length=1000)(connection, "")  # type: ignore[arg-type]
        gone.wait(10)

    from threading import Event

    gone = Event()
    with serving(halts) as server:
        with pytest.raises(TimeoutError):
            asyncio.run(ask(server.url))
        gone.set()
    assert bytes(into) == BODY


def test_every_refusal_is_a_bad_answer_and_a_lost_connection_is_not() -> None:
    assert all(issubclass(kind, BadAnswer) for kind in (Encoded, NotServed, TooLong))
    with pytest.raises(httpx.HTTPError):
        read(lambda connection, _target: connection.close(), 200)
