"""Waiting for another party, and trying again while it is busy."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep

from protocol.tasks.bundles import BundleError
from verifier.errors import Unserved

POLL_SECONDS = 0.2
PATIENCE = 1_800.0
"""Seconds to wait for each action of another party, such as a draw: as long as a demo may take."""
BUSY = (BundleError, Unserved, OSError)
"""Errors that a busy party causes. URLError is an OSError."""


def until(what: str, done: Callable[[], bool | None]) -> None:
    """Call `done` again and again while it returns False or raises an error in `BUSY`. Any other result, None
    included, ends the wait. Fails after `PATIENCE` seconds.
    """
    end = monotonic() + PATIENCE
    while True:
        try:
            if done() is not False:
                return
            assert monotonic() < end, f"no end of waiting for {what}"
        except BUSY:
            if monotonic() >= end:
                raise
        sleep(POLL_SECONDS)
