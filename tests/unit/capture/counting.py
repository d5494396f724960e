"""A module that counts its calls, for the tests of hidden Python state."""

from __future__ import annotations

calls = 0


class Box:
    """Holds a counter."""

    n = 0


def count() -> None:
    """Increment this module's global `calls`."""
    global calls
    calls += 1
