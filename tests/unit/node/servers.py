"""Loopback servers that send whatever a test wants, including malformed answers of a hostile solver."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Handler = Callable[[socket.socket, str], None]
"""Called with a connection and the request's target; sends the answer."""


class Server:
    """Serves one connection after another in a thread. `targets` are the requests' targets so far."""

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.targets: list[str] = []
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop accepting connections."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                request = b""
                while b"\r\n\r\n" not in request:
                    request += connection.recv(4096)
                self.targets.append(request.split()[1].decode())
                self._handle(connection, self.targets[-1])


@contextmanager
def serving(handle: Handler) -> Iterator[Server]:
    """A server that is closed afterwards."""
    server = Server(handle)
    try:
        yield server
    finally:
        server.close()


def answers(body: bytes, status: str = "200 OK", *headers: str, length: int | None = None) -> Handler:
    """A handler that sends `body`; `length` is the announced length, by default the body's."""

    def handle(connection: socket.socket, _target: str) -> None:
        announced = len(body) if length is None else length
        lines = [f"HTTP/1.1 {status}", f"content-length: {announced}", "connection: close", *headers]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return handle
