"""Stopping a party: the first signal asks it to stop once nothing is urgent, the second stops it at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Stop:
    """A request to stop, made by SIGINT, SIGTERM or `ask`. The main loop checks `asked`; a request ends
    `wait` early.
    """

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
        """Sleep for up to `seconds`. Returns True as soon as a stop is requested, or False if none is."""
        return self._event.wait(seconds)

    def on_signals(self) -> None:
        """Install the handlers of SIGINT and SIGTERM. Call this from the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.ask()
