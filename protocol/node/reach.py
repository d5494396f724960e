"""Which addresses named by strangers a node may connect to: bundles' in terms, and those that parties have announced.

Strangers name them on a chain, and plain http would open every door behind an operator's firewall. So plain http is
allowed to the internet only; to a private network only below an address that the operator allows, and to this machine
where the node's chain is a development chain, whose parties share it. A name is looked up before the connection, each
of its addresses is checked, and the connection uses these (`http_client`). https is always allowed: a server in a
private network has no certificate for a stranger's name, so it is sent no request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protocol.errors import AssayError
from protocol.node.addresses import Address, parsed
from protocol.node.lookups import IP, Permit


class OutOfReach(AssayError):
    """An address that this operator's nodes do not connect to."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What an operator permits: URLs below which everything may be requested, and whether this machine may be."""

    allowed: tuple[str, ...] = ()
    this_machine: bool = True
    anywhere: bool = False
    """For addresses that the operator names itself."""

    def permit(self, address: Address) -> Permit | None:
        """The check to make before a connection to an address; None where it may lead anywhere. Raises OutOfReach if
        the address alone shows that it is refused.
        """
        if address.ip is not None and address.ip.is_unspecified:
            raise _refused(address, "the address of a host", "another")
        local = self.this_machine and _is_loopback(address)
        if local or self.anywhere or address.scheme == "https" or self._is_allowed(address):
            return None

        def permit(found: Sequence[IP]) -> None:
            for ip in found:
                if not ip.is_global:
                    raise _refused(address, "an address on the internet, or https", str(ip))

        if address.ip is not None:
            permit([address.ip])
        return permit

    def _is_allowed(self, address: Address) -> bool:
        """Whether it lies below one that the operator allows."""
        for base in filter(None, map(parsed, self.allowed)):
            same = (base.scheme, base.host, base.port) == (address.scheme, address.host, address.port)
            if same and f"{address.path}/".startswith(f"{base.path}/"):
                return True
        return False


def _is_loopback(address: Address) -> bool:
    """Whether a host is written as this machine."""
    return address.host == "localhost" if address.ip is None else address.ip.is_loopback


def _refused(address: Address, expected: str, got: str) -> OutOfReach:
    return OutOfReach(
        f"address {str(address)[:200]!a}",
        expected=expected,
        got=got,
        remedy="name another address, or allow this one by `bundles` in config.toml",
    )
