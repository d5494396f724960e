"""A cell: one value with the seconds it took, or the error that came instead."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator

Cells = Iterator[tuple[str, Callable[[], object]]]
"""Names of cells, and what gives their values: anything that JSON holds."""

TRACEBACK_LINES = 12


def cell(action: Callable[[], object]) -> dict[str, object]:
    """The value of a cell and the seconds it took, or its error."""
    start = time.monotonic()
    try:
        value = action()
    except Exception as problem:
        return {"error": error(problem), "seconds": round(time.monotonic() - start, 3)}
    return {"value": value, "seconds": round(time.monotonic() - start, 3)}


def error(problem: Exception) -> dict[str, object]:
    """Type, message and the last lines of the traceback."""
    lines = "".join(traceback.format_exception(problem)).splitlines()
    return {
        "type": type(problem).__name__,
        "message": str(problem)[:2000],
        "traceback": lines[-TRACEBACK_LINES:],
    }
