"""A cell: one value and the seconds it took, or an error. Cells are lines of JSON in a file."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

Cells = Iterator[tuple[str, Callable[[], object]]]
"""Names of cells, and the functions that compute their values, which must be JSON-serialisable."""

FILE = "ASSAY_CELLS"
"""Name of the environment variable that holds the path of the cells' file."""
TRACEBACK_LINES = 12


def write(name: str, line: Mapping[str, object]) -> None:
    """Add a cell to the file."""
    with Path(os.environ[FILE]).open("a") as file:
        file.write(json.dumps({"cell": name, **line}) + "\n")


def read(file: Path) -> list[dict[str, Any]]:
    """The cells of a file; an unfinished last line is ignored."""
    text = file.read_text() if file.is_file() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def is_well(line: Mapping[str, Any]) -> bool:
    """Whether a cell reports no failure. The cell of a test must say that the test passed or was skipped. Any
    other cell must have a value, which must report neither different bits nor anything wrong.
    """
    if "outcome" in line:
        return line["outcome"] in ("passed", "skipped")
    if "value" not in line:
        return False
    value = line["value"]
    return bool(value.get("same_bits", True) and not value.get("wrong")) if isinstance(value, dict) else True


def cell(action: Callable[[], object]) -> dict[str, object]:
    """The value of a cell or its error, and the seconds it took."""
    start = time.monotonic()
    try:
        value = action()
    except Exception as problem:
        return {"error": error(problem), "seconds": round(time.monotonic() - start, 3)}
    return {"value": value, "seconds": round(time.monotonic() - start, 3)}


def error(problem: Exception) -> dict[str, object]:
    """Type and message of an error, and the last lines of its traceback."""
    lines = "".join(traceback.format_exception(problem)).splitlines()
    return {
        "type": type(problem).__name__,
        "message": str(problem)[:2000],
        "traceback": lines[-TRACEBACK_LINES:],
    }
