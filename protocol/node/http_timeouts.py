"""HTTP connections that are closed if the client does nothing.

Every open connection counts against the server's limit, and uvicorn's only timeout is for the next request
after an answer. So a few clients could block a server for everybody else. They would only have to send
nothing, or a byte now and then, or not read their answers. Here each connection is checked regularly, and
closed once the server has waited for the client too long.
"""

from __future__ import annotations

import asyncio
import math
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

LOOK_SECONDS = 0.25
"""Seconds between two checks of a connection."""
REQUEST_SECONDS = 5.0
"""Seconds for the client to send a whole request: at most 16 KiB of headers, and a small body if it offers a
salt to a verifier.
"""
READING_SECONDS = 60.0
"""Seconds for the client to read the buffered bytes. There are at most 1 MiB of them, and uvicorn's 64 KiB,
so a client that reads 19 KB/s is in time.
"""

State = tuple[RequestResponseCycle | None, bool, bool, int]


class TimedProtocol(H11Protocol):
    """A connection that is closed if the client does not send a complete request, or read its answer, in
    time.
    """

    _timer: asyncio.TimerHandle | None = None
    _state: State = (None, False, False, 0)
    _since = 0.0
    _pauses = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the checks; the time for the first request begins."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._since = self.loop.time()
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the checks."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Count the pauses: the count shows whether the client has read since the last check."""
        self._pauses += 1
        super().pause_writing()

    def _look_later(self) -> None:
        self._timer = self.loop.call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        if self._lasted() > self._allowed():
            self.transport.abort()
            return
        self._look_later()

    @property
    def waited(self) -> float | None:
        """Seconds for which the server has waited for the client; None if the client waits for the server."""
        return None if self._allowed() == math.inf else self._lasted()

    def _lasted(self) -> float:
        """Seconds since the connection was first seen in its present state."""
        now, state = self.loop.time(), (self.cycle, self._owes(), self.transport.is_closing(), self._pauses)
        if state != self._state:
            self._state, self._since = state, now
        return now - self._since

    def _owes(self) -> bool:
        """Whether the server owes an answer to a complete request."""
        return self.cycle is not None and not (self.cycle.more_body or self.cycle.response_complete)

    def _allowed(self) -> float:
        """Seconds for which the present state may last."""
        if self.transport.is_closing() or self.flow.write_paused:
            return READING_SECONDS
        return math.inf if self._owes() else REQUEST_SECONDS
