"""Errors of the device that runs steps. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, Retryable


class DeviceError(AssayError):
    """The device that the settings ask for does not exist, or torch cannot use it."""


class CheckLost(Retryable):
    """The process that checks this machine's arithmetic ended without an answer, or took too long."""
