"""Admission control for expensive requests: replays, reads of checkpoints, large answers.

A question about the inside of a segment costs a replay, and one about a checkpoint costs a state in memory.
Without limits, any client could keep the solver busy or exhaust its memory. For each kind of question there
is one `OneAtATime`. It lets one question be answered at a time, across all tasks, and gives the shares of the
server their turns in order. A budget bounds the bytes that are in memory for slow clients, in total and for
each share. Neither limit applies to the defence of a game on-chain (`defence` replays for itself).
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final

from protocol.errors import InternalError
from protocol.node.http_clients import site_of

SHARES = 8
"""How many shares of the server must be full of unread answers before the other shares are refused."""

WAITING: Final = 256
"""Maximum number of clients that wait for one kind of answer: a quarter of `http_shares.MAX_CONNECTIONS`, so
that clients who wait for two kinds leave half of the connections to others.
"""


class Busy(InternalError):
    """Too many clients are waiting, or the wait was too long. The client asks again later, or on-chain."""


class OneAtATime:
    """Gives the turn to one client at a time. Each client belongs to a share of the server (`http_shares`),
    and each share belongs to a site (`http_clients`). Clients without a share count as one share. The sites
    that have waiting clients get turns one after the other. Within a site, its shares that have waiting
    clients get the site's turns one after the other. So before a waiting site gets its turn, every other site
    gets at most one turn.

    At most `waiting` clients of each share wait, each for at most `patience` seconds, and at most `most`
    clients wait in total. When `most` clients wait, a new client may take the place of another client. To
    find that one, take the site with the most waiting clients, and in it the share with the most: the newest
    client of this share loses its place. This requires that its site then still has at least as many waiting
    clients as the new client's site. If both clients are of the same site, their shares are compared in this
    way instead.

    `on_idle` is called after `idle` seconds without a request, to release the data from which the last
    answers were made. An object of this class is used in one event loop only.
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
        """A context that begins when a client of `share` gets the turn. The client keeps the turn until the
        context ends. Raises Busy.
        """
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
        if own >= self._limit or not self._has_room(share):
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

    def _has_room(self, share: Hashable) -> bool:
        """Whether one more client of `share` may wait. If all places are taken, a place is freed if possible:
        the newest client in the largest share of the site with the most waiting clients loses its place. This
        requires that the site has at least two more waiting clients than the site of `share`. If `share` is
        of that same site, the largest share must instead have at least two more than `share`.
        """
        if self.waiting < self._most:
            return True
        sites = Counter[Hashable]()
        for one, places in self._places.items():
            sites[site_of(one)] += len(places)

        def counts(one: Hashable) -> tuple[int, int]:
            return sites[site_of(one)], len(self._places.get(one, ()))

        largest = max(self._places, key=counts)
        level = int(site_of(largest) == site_of(share))
        newest = next((place for place in reversed(self._places[largest]) if not place.done()), None)
        if newest is None or counts(largest)[level] < counts(share)[level] + 2:
            return False
        self._leave(largest, newest)
        newest.set_result(False)
        return True

    def _pass_on(self) -> None:
        """Give the turn to the client that has waited longest in the next share. The site that had the turn
        goes to the end of the order, and so does, within this site, the share that had it.
        """
        last = site_of(self._share)
        for share in [share for share in self._places if site_of(share) == last]:
            self._places.move_to_end(share)
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
    """Limits the bytes of answers that are held in memory while they are sent. All answers together have at
    most `most` bytes, and those to one share of the server (`http_shares`) at most `most` / `SHARES`. Clients
    without a share have only the first limit. An answer that exceeds a limit is accepted if no other answer
    counts for this limit. Must be used by one thread only.
    """

    def __init__(self, most: int = 1 << 30) -> None:
        self._most = most
        self._taken = 0
        self._of: Counter[Hashable] = Counter()

    def take(self, count: int, share: Hashable = None) -> None:
        """Count an answer of `count` bytes. Raises Busy if it does not fit beside the others."""
        own = 0 if share is None else self._of[share]
        for taken, most in ((own, self._most // SHARES), (self._taken, self._most)):
            if taken and taken + count > most:
                raise Busy
        self._taken += count
        self._of[share] += count

    def give_back(self, count: int, share: Hashable = None) -> None:
        """Stop counting an answer of `count` bytes, because it is sent or its client has disconnected."""
        self._taken -= count
        self._of[share] -= count
        if not self._of[share]:
            del self._of[share]
