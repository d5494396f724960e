"""Trying again while another party is busy."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep

from protocol.tasks.bundles import BundleError
from verifier.errors import Unserved

POLL_SECONDS = 0.2
PATIENCE = 1_800.0
"""Seconds for each thing that another party has to do, such as to draw a seat, or serve: as long as a demo may take."""
BUSY = (BundleError, Unserved, OSError)
"""What a party says, or what is heard of it, while it is busy. URLError is an OSError."""


def until(what: str, done: Callable[[], bool | None]) -> None:
    """Try until it is done: False, or an error of a busy party, calls for another try."""
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
