"""Errors of worker processes. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, Retryable


class WorkersError(AssayError):
    """The workers cannot continue. All of them are stopped."""


class TooLittleMemory(WorkersError):
    """The free memory is too small for the step's values, which each worker holds."""


class WorkerLost(WorkersError, Retryable):
    """A worker ended, was killed, or cannot reach another worker."""


class WorkerFailed(WorkersError):
    """Workers disagree about a state, or one failed its self-check."""
