"""Errors of the arithmetic that are caught where no torch is loaded. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError


class SelfCheckError(AssayError, RuntimeError):
    """This machine computes other bits than the arithmetic asks for; nothing it produces may be committed."""
