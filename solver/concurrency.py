"""Admission control for expensive requests: replays, reads of checkpoints, large answers.

A question about the inside of a segment costs a replay, and one about a checkpoint costs a state in memory.
Without limits, any client could keep the solver busy or exhaust its memory. `OneAtATime` answers one question
of a kind at a time, for all tasks, to the shares of the server in turn. A budget bounds the bytes in memory on
their way to slow clients, in all and for each share. The defence of a game on-chain is subject to neither
(`defence` replays for itself).
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final

from protocol.errors import InternalError

SHARES = 8
"""How many shares of the server must be full of unread answers before others get none."""

WAITING: Final = 256
"""Maximum number of clients that wait for one kind of answer: a quarter of `http_shares.MAX_CONNECTIONS`, so
that clients who wait for two kinds leave half of the connections to others.
"""


class Busy(InternalError):
    """Too many clients are waiting, or the wait was too long. The client asks again later, or on-chain."""


class OneAtATime:
    """Gives one client the turn at a time. The shares of the server (`http_shares`) that have waiting clients
    have their turns in order, so an answer to one share waits for at most one answer to each other share. Of
    each share, at most `waiting` clients wait, each for at most `patience` seconds. In all, at most `most` wait:
    the next one takes the place of the newest client of the share with most, if that share keeps at least as
    many as the next one's then has. Clients without a share count as one share. For one event loop.

    `on_idle` is called after `idle` seconds without a request, to release the data from which the last
    answers were made.
    """

    def __init__(
        self, waiting: int = 8, patience: float = 30.0, idle: float = 60.0, most: int = WAITING
    ) -> None:
        self._limit = waiting
        self._most = most
        self._patience = patience
        self._idle = idle
        self._held = False
        self._share: Hashable = None  # the share that has the turn, or had the last one
        # The places of waiting clients by share, in the order of the next turns. No share is without places. A
        # place's result says whether its client has the turn, or has lost the place.
        self._places: OrderedDict[Hashable, deque[asyncio.Future[bool]]] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None
        self.on_idle: Callable[[], None] = lambda: None

    @property
    def waiting(self) -> int:
        """The number of clients that wait for their turn."""
        return sum(map(len, self._places.values()))

    @asynccontextmanager
    async def turn(self, share: Hashable = None) -> AsyncIterator[None]:
        """Wait for the turn of a client of `share` and hold it. Raises Busy."""
        if self._held:
            await self._wait(share)
        self._held, self._share = True, share
        if self._timer is not None:
            self._timer.cancel()
        try:
            yield
        finally:
            self._pass_on()
            self._timer = asyncio.get_running_loop().call_later(self._idle, self.on_idle)

    async def _wait(self, share: Hashable) -> None:
        """Wait until `_pass_on` gives the turn to this client. Raises Busy."""
        own = len(self._places.get(share, ()))
        if own >= self._limit or not self._has_room(own):
            raise Busy
        place: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._places.setdefault(share, deque()).append(place)
        try:
            async with asyncio.timeout(self._patience):
                has_turn = await place
        except BaseException as error:
            if place.cancelled() or not place.done():
                self._leave(share, place)
            elif place.result():  # the turn came at the same moment
                self._pass_on()
            if isinstance(error, TimeoutError):
                raise Busy from None
            raise
        if not has_turn:
            raise Busy

    def _has_room(self, own: int) -> bool:
        """Whether one more client of a share with `own` waiting clients may wait. If all places are taken, the
        newest client of the share with most loses its place, if this share has at least two more than `own`.
        """
        if self.waiting < self._most:
            return True
        share, places = max(self._places.items(), key=lambda item: len(item[1]))
        newest = next((place for place in reversed(places) if not place.done()), None)
        if newest is None or len(places) < own + 2:
            return False
        self._leave(share, newest)
        newest.set_result(False)
        return True

    def _pass_on(self) -> None:
        """Give the turn to the client that has waited longest of the next share. The share that had the turn
        comes last.
        """
        if self._share in self._places:
            self._places.move_to_end(self._share)
        for share, places in list(self._places.items()):
            # A cancelled place is left when its client runs next.
            place = next((place for place in places if not place.done()), None)
            if place is not None:
                self._leave(share, place)
                self._share = share
                place.set_result(True)
                return
        self._held = False

    def _leave(self, share: Hashable, place: asyncio.Future[bool]) -> None:
        self._places[share].remove(place)
        if not self._places[share]:
            del self._places[share]


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
