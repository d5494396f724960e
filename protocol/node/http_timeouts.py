"""HTTP connections that end when the client does nothing.

uvicorn counts every open connection against its limit, and sets a time only for the next request after an answer. So
a few sockets that send nothing, send a byte now and then, or do not read their answers would block a server for
everybody else. Here connections are checked regularly, and closed once they have waited for the client too long.
"""

from __future__ import annotations

import asyncio
import math
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

LOOK_SECONDS = 0.25
"""Seconds between two checks of a connection."""
REQUEST_SECONDS = 5.0
"""Seconds for a whole request, from the first byte or before: at most 16 KiB of headers, and no useful body."""
READING_SECONDS = 60.0
"""Seconds for the client to read what is buffered for it: at most 1 MiB and uvicorn's 64 KiB, so 19 KB/s."""

State = tuple[RequestResponseCycle | None, bool, bool, int]


class TimedProtocol(H11Protocol):
    """Ends a connection that sends no complete request, or does not read its answer, in time."""

    _timer: asyncio.TimerHandle | None = None
    _state: State = (None, False, False, 0)
    _since = 0.0
    _pauses = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client has this long for its first request."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._since = self.loop.time()
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the checks."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """More is buffered than the client reads. Counting this tells whether it has read since."""
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
        """Seconds that the client has made the server wait; None while the client is the one waiting."""
        return None if self._allowed() == math.inf else self._lasted()

    def _lasted(self) -> float:
        """Seconds since the connection was first seen in this state."""
        now, state = self.loop.time(), (self.cycle, self._owes(), self.transport.is_closing(), self._pauses)
        if state != self._state:
            self._state, self._since = state, now
        return now - self._since

    def _owes(self) -> bool:
        """Whether a complete request is waiting for its answer."""
        return self.cycle is not None and not (self.cycle.more_body or self.cycle.response_complete)

    def _allowed(self) -> float:
        """Seconds that the present state may last."""
        if self.transport.is_closing() or self.flow.write_paused:
            return READING_SECONDS
        return math.inf if self._owes() else REQUEST_SECONDS
