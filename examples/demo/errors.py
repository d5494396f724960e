"""The error of the demo. `protocol.errors` shows the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError


class StageError(AssayError):
    """The demo could not be played."""
