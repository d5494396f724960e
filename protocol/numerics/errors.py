"""Errors of the arithmetic, in a module that code without torch can import.

`protocol.errors` draws the tree of all errors.
"""

from __future__ import annotations

from protocol.errors import AssayError


class SelfCheckError(AssayError, RuntimeError):
    """This machine's bits differ from the arithmetic's; nothing it computes may be committed."""
