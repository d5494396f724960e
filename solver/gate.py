"""Turns at replaying: one replay at a time per task, a bounded queue, and an end to waiting.

A question about the inside of a segment costs a replay, so whoever may ask could keep the solver busy. The gate bounds
that; defending a game on-chain does not pass it (`defence` replays for itself).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Busy(Exception):
    """Too many are waiting, or the wait was too long. The client asks again later, or on-chain."""


class Gate:
    """`waiting` clients per task may wait, each for at most `patience` seconds. For one event loop."""

    def __init__(self, waiting: int = 8, patience: float = 30.0) -> None:
        self._limit = waiting
        self._patience = patience
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: defaultdict[int, int] = defaultdict(int)

    @asynccontextmanager
    async def turn(self, task: int) -> AsyncIterator[None]:
        """Hold the task's turn. Raises Busy. Tasks are those that the solver holds, so there are few locks."""
        if self._waiting[task] >= self._limit:
            raise Busy
        self._waiting[task] += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._locks[task].acquire()
        except TimeoutError:
            raise Busy from None
        finally:
            self._waiting[task] -= 1
        try:
            yield
        finally:
            self._locks[task].release()
