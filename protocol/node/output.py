"""A command's output: text on stdout. With `--json` the text goes to stderr, and stdout gets versioned JSON:
one envelope for the result or, if the command prints many results, one envelope per line.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, is_dataclass
from typing import Any

ENVELOPE_VERSION = 1


def plain(value: Any) -> Any:
    """Convert a value for JSON. Bytes become 0x-hex, and dataclasses become objects. Integers of magnitude
    2^53 or more become strings, and so do non-finite numbers.
    """
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 53:
        return str(value)
    return value


class Output:
    """One command's output."""

    def __init__(self, command: str, as_json: bool) -> None:
        self.command = command
        self.as_json = as_json

    def say(self, text: str) -> None:
        """Print text for the person at the terminal."""
        print(text, file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def result(self, data: Any) -> None:
        """Print the command's result as JSON. Does nothing without `--json`."""
        if self.as_json:
            print(json.dumps(self._envelope(data), indent=2), flush=True)

    def line(self, data: Any) -> None:
        """Print one of many results as one line of JSON. Does nothing without `--json`."""
        if self.as_json:
            print(json.dumps(self._envelope(data)), flush=True)

    def _envelope(self, data: Any) -> dict[str, Any]:
        return {"version": ENVELOPE_VERSION, "command": self.command, "data": plain(data)}
