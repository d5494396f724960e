"""Spans of time in words, for terms that are seconds."""

from __future__ import annotations

UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
"""Seconds of a unit, and its name, the largest first."""


def in_words(seconds: float) -> str:
    """The two largest units that the span has, rounded: "1 hour 30 minutes"."""
    left = max(0, round(seconds))
    if left == 0:
        return "0 seconds"
    first = next(number for number, (size, _) in enumerate(UNITS) if left >= size)
    smallest = UNITS[min(first + 1, len(UNITS) - 1)][0]
    left = round(left / smallest) * smallest
    said = []
    for size, name in UNITS:
        count, left = divmod(left, size)
        if count:
            said.append(f"{count} {name}{'s' if count > 1 else ''}")
    return " ".join(said)
