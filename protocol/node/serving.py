"""An HTTP server that runs in a separate thread. Its socket is bound before its address is announced."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from protocol.errors import Retryable
from protocol.node.http import bind, server, url_of
from protocol.node.lookups import IP
from protocol.node.words import duration

START_SECONDS = 10.0


def by_market(apps: Sequence[tuple[str, Any]]) -> Any:
    """One ASGI app that combines the apps of several deployments, each below the address of its market.
    Requests that name no market go to the first app. It is the app of the earliest deployment, whose parties
    know the server by its plain address.
    """
    from starlette.routing import Mount, Router

    return Router([*(Mount(f"/{market}", app=app) for market, app in apps), Mount("/", app=apps[0][1])])


def addresses(url: str, market: str, first: bool) -> tuple[str, ...]:
    """The URLs of one deployment's app in `by_market`, served at `url`. The URL to announce comes first.
    `first` says whether the app is the first one.
    """
    below = f"{url.rstrip('/')}/{market}"
    return (url, below) if first else (below,)


class NotStarted(Retryable):
    """The server did not start, or not in time."""


class Serving:
    """Serves an ASGI app at `host:port` while the context lasts; port 0 means any free port. `proxies` are
    the addresses of proxies in front of the server, if any. Raises NoSuchHost, PortTaken and PortRefused. The
    messages of PortTaken and PortRefused name `flag`, the option with which the user can choose another port.
    Entering the context may raise NotStarted.
    """

    def __init__(
        self, app: Any, host: str, port: int, proxies: Iterable[IP] = (), flag: str = "--port"
    ) -> None:
        self._socket = bind(host, port, flag)
        self._server = server(app, proxies)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)

    @property
    def url(self) -> str:
        """The URL at which the server listens."""
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
                raise NotStarted(
                    "HTTP server",
                    expected=f"to serve {self.url} within {duration(START_SECONDS)}",
                    got="nothing",
                    remedy="start the command again",
                )
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
