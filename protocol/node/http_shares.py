"""What one client's address may take of an HTTP server, so that others are answered.

A server without shares is whoever's opens most connections: 100 clients that reopened half requests kept everybody out
for as long as they liked. Here an address has few connections and fewer half requests, and when there are too many
connections in all, the one goes that has made the server wait longest. An honest request comes in one piece, within a
round trip: it waits for nothing that a hostile client holds.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import ClassVar, Final, cast

from protocol.node.http_timeouts import TimedProtocol

MAX_CONNECTIONS: Final = 1_024
"""In all, for a hundred clients with as many as they may have; each is an open file."""
CONNECTIONS_EACH: Final = 8
HALF_REQUESTS_EACH: Final = 2
WAIT_SECONDS: Final = 1.0
"""For a place in the share to become free; after a refusal, for the client to read it: ended at once, the connection
would be reset under its request.
"""

_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: 43\r\n\r\ntoo many connections or half requests here\n"
)

IP = IPv4Address | IPv6Address
Share = IPv4Address | IPv6Network
"""Whom an address belongs to: an IPv6 client has 2^64 of them (RFC 6177)."""


def client_of(host: str) -> IP:
    """The IP address of a client, as a socket gives it: of IPv4 also where it came by a socket of IPv6."""
    address = ip_address(host.partition("%")[0])
    return address if isinstance(address, IPv4Address) else address.ipv4_mapped or address


def share_of(client: IP) -> Share:
    """The share that a client's address counts for."""
    return client if isinstance(client, IPv4Address) else IPv6Network((client, 64), strict=False)


class SharedProtocol(TimedProtocol):
    """Lets what is over an address's share wait, then refuses it with 503; makes room for whoever comes."""

    _proxies: ClassVar[frozenset[IP]]
    _members: ClassVar[defaultdict[Share, set[SharedProtocol]]]

    _share: Share | None = None
    _half = False
    _held: asyncio.TimerHandle | None = None
    _refused = False

    @classmethod
    def behind(cls, proxies: Iterable[IP]) -> type[SharedProtocol]:
        """The connections of one server; those of its proxies are those of many clients."""
        return type(cls.__name__, (cls,), {"_proxies": frozenset(proxies), "_members": defaultdict(set)})

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count it, and see whether there is room."""
        super().connection_made(transport)
        client = None if self.client is None else client_of(self.client[0])
        if client is not None and client not in self._proxies:
            self._share = share_of(client)
            self._members[self._share].add(self)
        if len(self.connections) > MAX_CONNECTIONS:
            self._make_room()
        self._take_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Its place is another's."""
        super().connection_lost(exc)
        self._let_go()
        self._leave()
        for peer in self._same():
            if peer._held is not None and not peer._refused:
                peer._take_up()
                return

    def data_received(self, data: bytes) -> None:
        """Nothing more is read of a client that was refused."""
        if not self._refused:
            super().data_received(data)
            self._count_half()

    def on_response_complete(self) -> None:
        """Half a request may have come behind the one that is answered now."""
        super().on_response_complete()
        self._count_half()

    def _take_up(self) -> None:
        """Read from the client, if its address's share leaves room."""
        self._let_go()
        if sum(peer._held is None for peer in self._same()) >= CONNECTIONS_EACH:
            self._hold()
        else:
            self._count_half()

    def _count_half(self) -> None:
        self._half = self._is_half()
        if self._half and sum(peer._half for peer in self._same()) >= HALF_REQUESTS_EACH:
            self._hold()

    def _is_half(self) -> bool:
        """Whether the client has begun a request and not finished it."""
        if self._owes():
            return False
        in_body = self.cycle is not None and self.cycle.more_body
        return in_body or bool(self.conn.trailing_data[0])

    def _same(self) -> list[SharedProtocol]:
        """The other connections of the share; none for a proxy's."""
        members = () if self._share is None else self._members.get(self._share, ())
        return [peer for peer in members if peer is not self]

    def _make_room(self) -> None:
        """End the connection that waits longest for its client, those over a share first; if none waits, this one."""
        peers = [cast(SharedProtocol, peer) for peer in self.connections if peer is not self]
        waiting = [peer for peer in peers if peer.waited is not None]
        last = max(waiting, key=lambda peer: (peer._held is not None, peer.waited), default=self)
        last._end()

    def _hold(self) -> None:
        """Read nothing for a while: at once refused, a hostile client would be back at once."""
        self._half = False
        self._held = self.loop.call_later(WAIT_SECONDS, self._refuse)
        # Soon: asyncio begins to read from a new connection after it is told of it, paused or not.
        self.loop.call_soon(self._pause)

    def _pause(self) -> None:
        if self._held is not None and not self._refused:
            self.transport.pause_reading()

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.cancel()
            self._held = None
            self.transport.resume_reading()

    def _refuse(self) -> None:
        """Say that there is no more for this address now."""
        self._refused = True
        if self.transport.is_closing():
            return
        self.transport.write(_REFUSAL)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.transport.resume_reading()  # to see the client close
        self._held = self.loop.call_later(WAIT_SECONDS, self._end)

    def _end(self) -> None:
        # At once: its loss is heard of after all connections that wait to be taken.
        self.connections.discard(self)
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        if self._share is not None and (members := self._members.get(self._share)) is not None:
            members.discard(self)
            if not members:
                del self._members[self._share]
