"""Admission control for expensive requests: replays, reads of checkpoints, large answers.

A question about the inside of a segment costs a replay, and one about a checkpoint costs a state in memory.
Without limits, any client could keep the solver busy or exhaust its memory. `OneAtATime` answers one question
of a kind at a time, for all tasks; a budget bounds the bytes in memory on their way to slow clients, in all
and for each share of the server. The defence of a game on-chain is subject to neither (`defence` replays for itself).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager

from protocol.errors import InternalError

SHARES = 8
"""How many shares of the server must be full of unread answers before others get none."""


class Busy(InternalError):
    """Too many clients are waiting, or the wait was too long. The client asks again later, or on-chain."""


class OneAtATime:
    """Gives one client the turn at a time. At most `waiting` clients wait, each for at most `patience`
    seconds. For one event loop.

    `on_idle` is called after `idle` seconds without a request, to release the data from which the last
    answers were made.
    """

    def __init__(self, waiting: int = 8, patience: float = 30.0, idle: float = 60.0) -> None:
        self._limit = waiting
        self._patience = patience
        self._idle = idle
        self._lock = asyncio.Lock()
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None
        self.on_idle: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn and hold it. Raises Busy."""
        if self._waiting >= self._limit:
            raise Busy
        self._waiting += 1
        try:
            async with asyncio.timeout(self._patience):
                await self._lock.acquire()
        except TimeoutError:
            raise Busy from None
        finally:
            self._waiting -= 1
        if self._timer is not None:
            self._timer.cancel()
        try:
            yield
        finally:
            self._lock.release()
            self._timer = asyncio.get_running_loop().call_later(self._idle, self.on_idle)


class Budget:
    """Limits the bytes of answers that are held in memory while they are sent: at most `most` together, or a
    single larger answer. A share of the server (`http_shares`) has at most 1/`SHARES` of that, or a single
    larger answer; only the first limit applies to clients without a share. For one thread.
    """

    def __init__(self, most: int = 1 << 30) -> None:
        self._most = most
        self._taken = 0
        self._of: Counter[Hashable] = Counter()

    def take(self, count: int, share: Hashable = None) -> None:
        """Count an answer. Raises Busy if it does not fit beside the others."""
        own = 0 if share is None else self._of[share]
        for taken, most in ((own, self._most // SHARES), (self._taken, self._most)):
            if taken and taken + count > most:
                raise Busy
        self._taken += count
        self._of[share] += count

    def give_back(self, count: int, share: Hashable = None) -> None:
        """Stop counting an answer, because it is sent or its client has disconnected."""
        self._taken -= count
        self._of[share] -= count
        if not self._of[share]:
            del self._of[share]
