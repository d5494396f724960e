"""Synchronous code runs coroutines, even in a thread that already runs a loop, such as a notebook's."""

from __future__ import annotations

import asyncio

import pytest

from protocol.node import loops
from protocol.node.loops import OwnLoop


async def answer(number: int) -> tuple[int, asyncio.AbstractEventLoop]:
    await asyncio.sleep(0)
    if number < 0:
        raise ValueError(number)
    return number, asyncio.get_running_loop()


def use() -> None:
    own = OwnLoop()
    first, second = own.run(answer(1)), own.run(answer(2))
    assert (first[0], second[0]) == (1, 2)
    assert first[1] is second[1], "connections belong to a loop"
    with pytest.raises(ValueError, match="-3"):
        own.run(answer(-3))
    own.close()
    assert first[1].is_closed()
    assert loops.run(answer(4))[0] == 4


def test_without_a_loop() -> None:
    use()


def test_inside_of_a_loop() -> None:
    async def kernel() -> asyncio.AbstractEventLoop:
        use()
        return asyncio.get_running_loop()

    assert asyncio.run(kernel()).is_closed()
