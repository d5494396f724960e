"""Limits each client address to a share of an HTTP server, so that others are answered.

Without shares, clients with many connections block the server: 100 clients that kept reopening half-sent
requests kept everybody else out. Here an address may have few connections and even fewer half-sent requests.
If there are too many connections in all, the one that has made the server wait longest is closed. An honest
request arrives in one piece, within a round trip. So the server waits for it only briefly, and slower clients
lose their connections first. An honest client need not wait until a hostile client gives up a connection.

The requests of an address are started one after the other, even if they come over several connections. The
next request starts when the present one is answered, or after `TURN_SECONDS`. Until then, further requests
are not even read. The event loop serves in order of arrival. So while a request of one address waits for
its answer, each other address gets at most a few answers, even if it sends many requests.

When a client disconnects, its request ends, but a thread that has begun to work for the request finishes this
work. So there are never more requests than connections plus threads that still work for disconnected clients.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Hashable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, cast

from anyio import CancelScope

from protocol.node.http_clients import IP, Share, client_of, share_of, site_of
from protocol.node.http_timeouts import TimedProtocol

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

MAX_CONNECTIONS: Final = 1_024
"""Maximum number of connections in all, enough for a hundred clients with `CONNECTIONS_EACH`; each is an open
file.
"""
CONNECTIONS_EACH: Final = 8
"""Maximum number of connections of one share that are read; further ones wait. A connection counts until its
request has ended. If its client has disconnected, it still counts until the thread that works for it ends.
"""
HALF_REQUESTS_EACH: Final = 2
WAIT_SECONDS: Final = 1.0
"""Seconds that a connection waits for a place in its share before it is refused. A refused client gets the
same time again to read the refusal, because closing at once would reset the connection before the client has
read it.
"""
TURN_SECONDS = 0.5
"""Seconds after which the next request of the same address is started, even if the present one is not
answered yet. So a long download, or a request that waits for a replay, does not delay the other clients at
the same address.
"""

_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: 43\r\n\r\ntoo many connections or half requests here\n"
)


class _Connections:
    """The connections of one share. `all` has every connection, `read` those being read, and `held` those
    that wait to be read, the oldest first. `turn` is the connection whose turn it is to be answered;
    `waiting` has those that wait for this turn, in order. An address may open hundreds of connections, so no
    method iterates over `all`.
    """

    def __init__(self) -> None:
        self.all: set[SharedProtocol] = set()
        self.read: set[SharedProtocol] = set()
        self.held: dict[SharedProtocol, None] = {}
        self.turn: SharedProtocol | None = None
        self.waiting: deque[SharedProtocol] = deque()


class SharedProtocol(TimedProtocol):
    """A connection of a server with shares. If its share is full, it waits, and is refused with 503 if no
    place becomes free. Only one request of a share is started at a time. If the server is full, a connection
    is closed to make room for a new one.

    When the client disconnects, the app's work for it is cancelled by an anyio cancel scope: a coroutine that
    awaits something ends, but a function in a thread (`anyio.to_thread`) is finished first.

    The app finds the client's share in the request's state, as `share`; None for clients of a proxy.
    """

    _proxies: ClassVar[frozenset[IP]]
    _shares: ClassVar[dict[Share, _Connections]]

    _share: Share | None = None
    _site: Hashable
    _own: _Connections
    _answers: set[CancelScope]
    _gone = False
    _turn_ends: asyncio.TimerHandle | None = None
    _half = False
    _held: asyncio.TimerHandle | None = None
    _refused = False

    @classmethod
    def behind(cls, proxies: Iterable[IP]) -> type[SharedProtocol]:
        """A class for the connections of one server. Connections from `proxies` have no share."""
        return type(cls.__name__, (cls,), {"_proxies": frozenset(proxies), "_shares": {}})

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the new connection, and close one if there are too many."""
        super().connection_made(transport)
        self.app, self._answers = self._answer, set()
        client = None if self.client is None else client_of(self.client[0])
        if client is not None and client not in self._proxies:
            self._share = share_of(client)
        self._site = self if self._share is None else site_of(self._share)
        own = _Connections()
        self._own = own if self._share is None else self._shares.setdefault(self._share, own)
        self._own.all.add(self)
        if len(self.connections) > MAX_CONNECTIONS:
            self._make_room()
        if self in self._own.all:
            self._take_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the answers to this client, and free its place in its share once they have ended."""
        super().connection_lost(exc)
        self._let_go()
        self._gone = True
        for answer in self._answers:
            answer.cancel()
        if not self._answers:
            self._leave()

    def data_received(self, data: bytes) -> None:
        """Process the data that the client sent. If the client was refused, ignore the data."""
        if not self._refused:
            super().data_received(data)

    def handle_events(self) -> None:
        """Process received requests if it is this connection's turn in its share; otherwise wait for the
        turn.
        """
        if self._is_answering():
            super().handle_events()
        elif self._own.turn is None:
            self._own.turn = self
            super().handle_events()
            seconds = TURN_SECONDS if self._is_answering() else 0
            self._turn_ends = self.loop.call_later(seconds, self._pass_on)
            self._count_half()
        elif self not in self._own.waiting:
            self._own.waiting.append(self)
            self._unset_keepalive_if_required()
            self.flow.pause_reading()

    def on_response_complete(self) -> None:
        """Pass the turn on, and only then continue with requests that wait on this connection."""
        self._pass_on()
        super().on_response_complete()

    async def _answer(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        scope.setdefault("state", {})["share"] = self._share
        with CancelScope() as answer:
            self._answers.add(answer)
            if self._gone:  # before this was begun
                answer.cancel()
            try:
                await self.config.loaded_app(scope, receive, send)
            finally:
                self._answers.discard(answer)
                if self._gone and not self._answers:
                    self._leave()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _owes(self) -> bool:
        """Whether the client waits for the server: for its turn or for an answer."""
        return self in self._own.waiting or super()._owes()

    def _pass_on(self) -> None:
        """If it is this connection's turn, pass the turn to the connection that has waited longest."""
        if self._own.turn is not self:
            return
        if self._turn_ends is not None:
            self._turn_ends.cancel()
        self._own.turn = None
        while self._own.waiting and self._own.turn is None:
            peer = self._own.waiting.popleft()
            if not peer.transport.is_closing():
                peer.flow.resume_reading()
                peer.handle_events()

    def _take_up(self) -> None:
        """Start reading from the client, if its share has room; otherwise hold the connection."""
        self._let_go()
        if self._share is not None and len(self._own.read) >= CONNECTIONS_EACH:
            self._hold()
        else:
            self._own.read.add(self)
            self._count_half()

    def _count_half(self) -> None:
        self._half = self._is_half()
        if self._half and sum(peer._half for peer in self._own.read) > HALF_REQUESTS_EACH:
            self._hold()

    def _is_half(self) -> bool:
        """Whether the client has sent an incomplete request."""
        if self._owes():
            return False
        in_body = self.cycle is not None and self.cycle.more_body
        return in_body or bool(self.conn.trailing_data[0])

    def _make_room(self) -> None:
        """Close one connection, because there is one too many. If the server waits for clients of other
        connections, it closes one of those: if any are held, a held one, and among these the one for which it
        has waited longest. If the server waits for none of the other clients, this connection may be closed
        too. The server then chooses one of the site with the most connections, in that site one of the
        largest share, and in that share preferably one that waits for its turn.
        """
        peers = [cast(SharedProtocol, peer) for peer in self.connections if peer is not self]
        waiting = [peer for peer in peers if peer.waited is not None]
        if waiting:
            last = max(waiting, key=lambda peer: (peer._held is not None, peer.waited))
        else:
            peers.append(self)
            sites = Counter(peer._site for peer in peers)
            last = max(
                peers,
                key=lambda peer: (sites[peer._site], len(peer._own.all), peer in peer._own.waiting),
            )
        last._end()

    def _hold(self) -> None:
        """Stop reading. Refuse the client after `WAIT_SECONDS`, unless a place in the share becomes free
        before. The client is not refused at once, because a hostile client that is refused at once returns at
        once.
        """
        self._half = False
        self._own.read.discard(self)
        self._own.held[self] = None
        self._held = self.loop.call_later(WAIT_SECONDS, self._refuse)
        # Pause soon and not now: asyncio starts reading from a new connection only after `connection_made`.
        self.loop.call_soon(self._pause)

    def _pause(self) -> None:
        if self._held is not None and not self._refused:
            self.transport.pause_reading()

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.cancel()
            self._held = None
            self._own.held.pop(self, None)
            self.transport.resume_reading()

    def _refuse(self) -> None:
        """Answer 503, and close the connection a little later."""
        self._refused = True
        self._own.held.pop(self, None)
        if self.transport.is_closing():
            return
        self.transport.write(_REFUSAL)
        with suppress(OSError):  # the client has ended the connection meanwhile
            self.transport.write_eof()
        self.transport.resume_reading()  # to see the client close
        self._held = self.loop.call_later(WAIT_SECONDS, self._end)

    def _end(self) -> None:
        # Leave at once: `connection_lost` is called only after all waiting connections are accepted.
        self.connections.discard(self)
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        """Give up all places in the share, and let others take them."""
        own = self._own
        if self not in own.all:
            return
        own.all.discard(self)
        own.read.discard(self)
        own.held.pop(self, None)
        if self in own.waiting:
            own.waiting.remove(self)
        self._pass_on()
        if own.held and len(own.read) < CONNECTIONS_EACH:
            next(iter(own.held))._take_up()
        if not own.all and self._share is not None:
            del self._shares[self._share]
