"""The HTTP servers of the parties: a socket bound before anything is announced, and uvicorn with strangers in mind."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from protocol.runtime.exits import Retryable

if TYPE_CHECKING:
    import uvicorn

MAX_CONNECTIONS = 64
MAX_HEADERS = 16_384
"""Bytes of an unfinished request."""


class PortTaken(Retryable):
    """Another server listens on the port."""


def bind(host: str, port: int) -> socket.socket:
    """A socket to serve on; port 0: any free one. Raises PortTaken."""
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise PortTaken(
            f"HTTP server: expected to listen on {host}:{port}, got {error.strerror}; "
            "stop the other server or choose another --port"
        ) from error
    return bound


def server(app: Any) -> uvicorn.Server:
    """A server of an ASGI app; `run(sockets=[bound])` serves until it is told to stop."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=5,
            h11_max_incomplete_event_size=MAX_HEADERS,
            http="h11",
            ws="none",
            lifespan="off",
        )
    )
