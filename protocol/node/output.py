"""A command's output: prose on stdout. With `--json` prose goes to stderr, and stdout has one versioned envelope, or
one per line from a command that follows something.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict, is_dataclass
from typing import Any

ENVELOPE_VERSION = 1


def plain(value: Any) -> Any:
    """A value as JSON can hold it: bytes as 0x-hex, dataclasses as objects, integers beyond 2^53 and what is not finite
    as strings.
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
        """Prose for the person at the terminal."""
        print(text, file=sys.stderr if self.as_json else sys.stdout, flush=True)

    def result(self, data: Any) -> None:
        """The command's result, for programs; printed only with `--json`."""
        if self.as_json:
            print(json.dumps(self._envelope(data), indent=2), flush=True)

    def line(self, data: Any) -> None:
        """One of many results, in its own line; printed only with `--json`."""
        if self.as_json:
            print(json.dumps(self._envelope(data)), flush=True)

    def _envelope(self, data: Any) -> dict[str, Any]:
        return {"version": ENVELOPE_VERSION, "command": self.command, "data": plain(data)}
