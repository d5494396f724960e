"""Errors of worker processes. The docstring of `protocol.errors` shows the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, Retryable


class WorkersError(AssayError):
    """The workers cannot start or continue. None of them is running any more."""


class TooLittleMemory(WorkersError):
    """The free memory is too small for the workers: each holds the step's values and the libraries."""


class WorkerLost(WorkersError, Retryable):
    """A worker ended, was killed or did not answer, or it reported an error that does not mean wrong bits."""


class WorkerFailed(WorkersError):
    """Workers disagree about a state, or one failed its self-check."""
