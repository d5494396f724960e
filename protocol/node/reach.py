"""Decides whether a node may connect to an address that a stranger named. Such addresses are those of bundles
in terms, and those that parties announce.

Anyone can put an address on the chain, and plain http would let a stranger make a node send requests behind
its operator's firewall. So plain http to hosts on the internet is allowed, but plain http to a private
network is allowed only for an address that lies below one that the operator allows. This machine is treated
like a private network, unless the parties share it, as on a development chain. A name is looked up before the
connection, each of its IP addresses is checked, and the connection uses these IP addresses (`http_client`).
https is always allowed: a server in a private network has no certificate for a stranger's name, so no request
is sent to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network

from protocol.errors import AssayError
from protocol.node.addresses import Address, parsed
from protocol.node.lookups import IP, Permit

_UNICAST = IPv6Network("2000::/3")
"""All IPv6 addresses of the internet so far (RFC 4291 section 2.4). The rest is local, multicast or reserved."""
_NAT64 = IPv6Network("64:ff9b::/96")
"""Addresses whose last 32 bits are the IPv4 address to which a gateway sends the packets (RFC 6052)."""


class OutOfReach(AssayError):
    """An address that this operator's nodes do not connect to."""


@dataclass(frozen=True, slots=True)
class Reach:
    """An operator's rules: URLs below which addresses are allowed, and whether this machine is allowed."""

    allowed: tuple[str, ...] = ()
    this_machine: bool = True
    anywhere: bool = False
    """Allow every address except 0.0.0.0 and ::. This is for addresses that come from the operator and not
    from strangers.
    """

    def permit(self, address: Address) -> Permit | None:
        """The check that the host's IP addresses must pass before a connection, or None if none is needed.
        Raises OutOfReach if the address alone shows that it is refused.
        """
        if address.ip is not None and address.ip.is_unspecified:
            raise _refused(address, "the address of a host", "another")
        local = self.this_machine and _is_loopback(address)
        if local or self.anywhere or address.scheme == "https" or self._is_allowed(address):
            return None

        def permit(found: Sequence[IP]) -> None:
            for ip in found:
                if not _is_public(ip):
                    raise _refused(address, "an address on the internet, or https", str(ip))

        if address.ip is not None:
            permit([address.ip])
        return permit

    def _is_allowed(self, address: Address) -> bool:
        """Whether the address is below one that the operator allows."""
        for base in filter(None, map(parsed, self.allowed)):
            same = (base.scheme, base.host, base.port) == (address.scheme, address.host, address.port)
            if same and f"{address.path}/".startswith(f"{base.path}/"):
                return True
        return False


def _is_public(ip: IP) -> bool:
    """Whether a host on the internet may have this address. An IPv6 address that contains an IPv4 address is
    public if the IPv4 address is.
    """
    if isinstance(ip, IPv4Address):
        return ip.is_global and not ip.is_multicast
    inner = _inner(ip)
    return ip in _UNICAST and ip.is_global if inner is None else _is_public(inner)


def _inner(ip: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a mapped, a 6to4 (RFC 3056) or a NAT64 address contains; None for others."""
    return IPv4Address(ip.packed[-4:]) if ip in _NAT64 else ip.ipv4_mapped or ip.sixtofour


def _is_loopback(address: Address) -> bool:
    """Whether the host is `localhost` or a loopback IP address."""
    return address.host == "localhost" if address.ip is None else address.ip.is_loopback


def _refused(address: Address, expected: str, got: str) -> OutOfReach:
    return OutOfReach(
        f"address {str(address)[:200]!a}",
        expected=expected,
        got=got,
        remedy="name another address, or allow this one by `bundles` in config.toml",
    )
