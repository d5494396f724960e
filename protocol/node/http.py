"""Parts of the parties' HTTP servers: binding a socket before its address is announced, checks of that
address, and uvicorn hardened against strangers.
"""

from __future__ import annotations

import errno
import resource
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any

from protocol.errors import AssayError, Retryable
from protocol.node.addresses import Address, parsed

if TYPE_CHECKING:
    import uvicorn

MAX_HEADERS = 16_384
"""Maximum bytes of an unfinished request."""
FILES = 1 << 16
"""Maximum number of files that a process with a server may open, if the system permits so many. Connections
with clients and with other parties count as files. The number is not higher, because some programs that the
process may start close every file descriptor up to the limit, one by one.
"""


class PortTaken(Retryable):
    """Another server listens on the port."""


class PortRefused(AssayError):
    """The system does not let this process listen on the port."""


class NoSuchHost(AssayError):
    """The address to listen on does not belong to this machine."""


class NotPublic(AssayError):
    """An announced address that others cannot reach."""


def url_of(host: str, port: int) -> str:
    """The URL, without a path, of a server that listens on `host:port`. An IPv6 address gets brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def require_public(url: str, flag: str = "--url") -> None:
    """Raise NotPublic for an announced address that is invalid or that others cannot reach: loopback, 0.0.0.0
    or ::. `flag` names the option to change. Do not call this for development chains, whose parties share a
    machine. Names and addresses in private networks are accepted, without a check that others can reach them.
    """
    address = parsed(url)
    if address is None or _is_of_this_machine(address):
        raise NotPublic(
            "announced address",
            expected="one that other machines reach",
            got=repr(url),
            remedy=f"say with {flag} where strangers find this server, such as https://node.example.org",
        )


def _is_of_this_machine(address: Address) -> bool:
    ip = address.ip
    if ip is None:
        return address.host == "localhost" or address.host.endswith(".localhost")
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_loopback or ip.is_unspecified


def free_port(host: str) -> int:
    """A port of `host`, an IPv4 host, that nobody listens on now."""
    with hold_port(host) as held:
        return int(held.getsockname()[1])


def hold_port(host: str) -> socket.socket:
    """A socket bound to a free port of `host`, an IPv4 host. Until it is closed, the system gives this port
    to no program that asks for any port. A server that names the port and sets SO_REUSEADDR can listen on it
    (socket(7)).
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((host, 0))
    return held


def bind(host: str, port: int, flag: str = "--port") -> socket.socket:
    """A socket to serve on; port 0 means any free port. Raises NoSuchHost, PortTaken and PortRefused. The
    messages of the last two advise choosing another port with `flag`.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only on sockets that name it. Without it, the
    # body of each answer on a kept connection waited 40 ms for the client's acknowledgement of the headers.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise NoSuchHost(
                "HTTP server",
                expected="a host name or IP address of this machine to listen on",
                got=f"{host}: {error.strerror}",
                remedy="name another with --host",
            ) from error
        refused = error.errno != errno.EADDRINUSE
        remedy = "choose" if refused else "stop the other server or choose"
        raise (PortRefused if refused else PortTaken)(
            "HTTP server",
            expected=f"to listen on {host}:{port}",
            got=error.strerror,
            remedy=f"{remedy} another {flag}",
        ) from error
    return bound


def server(app: Any, proxies: Iterable[IPv4Address | IPv6Address] = ()) -> uvicorn.Server:
    """A server for an ASGI app; `run(sockets=[bound])` serves until it is told to stop. `SharedProtocol`
    limits connections and requests. uvicorn's own limit is not used: as soon as a few clients reached that
    limit, it would refuse everybody.

    `proxies` are IP addresses of proxies. The connections of a proxy come from many clients, which the proxy
    itself must limit.
    """
    import uvicorn

    from protocol.node.http_shares import SharedProtocol

    _allow_files()
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            log_level="error",  # a line for each malformed request would fill the disk
            timeout_keep_alive=5,
            timeout_graceful_shutdown=5,
            h11_max_incomplete_event_size=MAX_HEADERS,
            http=SharedProtocol.behind(proxies),
            ws="none",
            lifespan="off",
        )
    )


def _allow_files() -> None:
    """Let this process open `FILES` files, or as many as the system permits; the usual limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
