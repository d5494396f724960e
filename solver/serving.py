"""The HTTP server in a thread of its own; its socket is bound before anything is announced."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from protocol.node.http import bind, server, url_of
from protocol.node.lookups import IP
from solver.errors import SolverError
from solver.limits import App

START_SECONDS = 10.0


class Serving:
    """An app served at `host:port` (port 0: any free one) while the context lasts, behind `proxies` if there are any.
    Raises PortTaken.
    """

    def __init__(self, app: App, host: str, port: int, proxies: Iterable[IP] = ()) -> None:
        self._socket = bind(host, port)
        self._server = server(app, proxies)
        self._thread = threading.Thread(target=self._run, name="solver-http", daemon=True)

    @property
    def url(self) -> str:
        """Where the server listens."""
        host, port = self._socket.getsockname()[:2]
        return url_of(host, port)

    @property
    def port(self) -> int:
        """The port that was bound."""
        return int(self._socket.getsockname()[1])

    def __enter__(self) -> Self:
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise SolverError(f"HTTP server: expected it to start on {self.url} within {START_SECONDS} s")
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])
