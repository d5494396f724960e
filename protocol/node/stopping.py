"""Stopping a party: the first signal asks it to stop when no deadline is near, the second stops it at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Stop:
    """Set by SIGINT or SIGTERM. The main loop looks at `asked`; `wait` sleeps but wakes for a signal."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def asked(self) -> bool:
        """Whether the party has been asked to stop."""
        return self._event.is_set()

    def ask(self) -> None:
        """Ask the party to stop."""
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Sleep up to `seconds`; True as soon as a stop is asked for."""
        return self._event.wait(seconds)

    def on_signals(self) -> None:
        """Handle SIGINT and SIGTERM of this process (main thread only)."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.ask()
