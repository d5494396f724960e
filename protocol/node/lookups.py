"""Looking up a host's addresses within the caller's time limit.

The system's resolver cannot be interrupted: it waits half a minute for a silent name server, which may be a
stranger's. An event loop waits for its worker threads when it ends, so each lookup runs in its own daemon
thread.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from threading import Thread
from typing import Final

IP = IPv4Address | IPv6Address
Permit = Callable[[Sequence[IP]], None]
"""A check that raises an AssayError unless connections to all these addresses are allowed."""

MOST: Final = 8
"""Maximum number of addresses of one name that are used."""


async def look_up(host: str, port: int) -> Sequence[IP]:
    """The first `MOST` addresses of a host, in the resolver's order. An IP address is returned unchanged.

    Raises OSError for a name without address, and what the resolver raises.
    """
    with suppress(ValueError):
        return [ip_address(host)]
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[IP]] = loop.create_future()

    def finish(addresses: list[IP], error: Exception | None) -> None:
        if found.done():  # the caller has given up
            return
        if error is None:
            found.set_result(addresses)
        else:
            found.set_exception(error)

    def work() -> None:
        addresses: list[IP] = []
        failure: Exception | None = None
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = [ip_address(entry[4][0]) for entry in entries][:MOST]
            if not addresses:
                failure = OSError(f"no address of {host}")
        except Exception as error:
            failure = error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(finish, addresses, failure)

    Thread(target=work, name="look-up", daemon=True).start()
    return await found
