"""Errors of worker processes. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, Retryable


class WorkersError(AssayError):
    """The workers cannot go on. They are all stopped."""


class TooLittleMemory(WorkersError):
    """The step's values, once for each worker, exceed the free memory."""


class WorkerLost(WorkersError, Retryable):
    """A worker ended, was killed, or cannot reach another one."""


class WorkerFailed(WorkersError):
    """Workers disagree about a state, or one failed its self-check."""
