"""An HTTP server on a free loopback port; no thread and no socket remains after it is closed."""

from __future__ import annotations

import select
import socket
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Lock, Thread
from typing import Any, Final

POLL_SECONDS: Final = 0.02
"""Interval at which the accepting thread checks whether to end."""


class Listener(HTTPServer):
    """Starts to serve at once: each connection has a `handler` in its own thread. `owner` is any object that
    the handlers use.
    """

    request_queue_size = 64

    def __init__(self, handler: type[Handler], owner: Any) -> None:
        self.owner = owner
        self.ended = Event()
        self._lock = Lock()
        self._open: set[socket.socket] = set()
        self._running: list[Thread] = []
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._accepting = Thread(target=self.serve_forever, args=(POLL_SECONDS,), daemon=True)
        self._accepting.start()

    @property
    def open(self) -> int:
        """The number of open connections."""
        with self._lock:
            return len(self._open)

    def hang_up(self) -> None:
        """Close every open connection, as a server does when it restarts."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End every connection, and wait for the threads."""
        self.ended.set()
        self.shutdown()
        self._accepting.join()
        self.server_close()
        self.hang_up()
        for thread in self._running:
            thread.join()

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = Thread(target=self._serve, args=(request, client_address), daemon=True)
        self._running = [running for running in self._running if running.is_alive()] + [thread]
        with self._lock:
            self._open.add(request)
        thread.start()

    def _serve(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:
            self.handle_error(request, client_address)
        finally:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:  # another connection may reuse a closed descriptor at once
            self._open.discard(request)
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # clients may disconnect at any time
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection. Nothing is logged, and small answers are not held back."""

    server: Listener
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def holds(self, seconds: float) -> bool:
        """Wait for `seconds`; returns False as soon as either side has ended the connection."""
        with suppress(OSError, ValueError):
            if not select.select([self.connection], [], [], seconds)[0]:
                return True
            # Bytes of another request do not mean that the client has ended the connection.
            if self.connection.recv(1, socket.MSG_PEEK):
                return not self.server.ended.wait(seconds)
        return False

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
