"""Decides, by the clients' addresses, which clients of a server count as one."""

from __future__ import annotations

from collections.abc import Hashable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

IP = IPv4Address | IPv6Address
Share = IPv4Address | IPv6Network
"""Clients that count as one: an IPv4 address, or an IPv6 /64, because a network of IPv6 has 2^64 addresses (RFC
4291).
"""


def client_of(host: str) -> IP:
    """Parse a client's address as a socket gives it. For an IPv4 client of an IPv6 socket, this is the
    client's IPv4 address.
    """
    address = ip_address(host.partition("%")[0])
    return address if isinstance(address, IPv4Address) else address.ipv4_mapped or address


def share_of(client: IP) -> Share:
    """The share to which a client's address belongs."""
    return client if isinstance(client, IPv4Address) else IPv6Network((client, 64), strict=False)


def site_of(share: Hashable) -> Hashable:
    """A key that groups the shares that one customer may have. For an IPv6 share the key is the /48, because
    a customer's site is given up to 65,536 /64 networks (RFC 6177); otherwise the key is the share itself.
    Strangers may be in one /48, so no limit applies to a group. The key only helps to decide in which order
    clients get their turns, and which client must leave when there are too many.
    """
    return share.network_address.packed[:6] if isinstance(share, IPv6Network) else share
