"""A module that counts, for the tests of what Python keeps."""

from __future__ import annotations

calls = 0


class Box:
    """A number to count with."""

    n = 0


def count() -> None:
    """Count in this module's global."""
    global calls
    calls += 1
