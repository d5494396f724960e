"""Errors of where steps run. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, Retryable


class DeviceError(AssayError):
    """The device that the settings ask for is not there."""


class CheckLost(Retryable):
    """The process that checks this machine's arithmetic ended without an answer, or takes too long."""
