"""Errors of worker processes.

WorkersError (an OperatorError)
├── TooLittleMemory   free memory does not hold so many; none was started
├── WorkerLost        one ended, or could not go on; starting them again may help
└── WorkerFailed      one found that this machine computes wrong bits; nothing that it made may be committed
"""

from __future__ import annotations

from protocol.node.exits import OperatorError, Retryable


class WorkersError(OperatorError):
    """The workers cannot go on. They are all stopped."""


class TooLittleMemory(WorkersError):
    """The step's values, once for each worker, are more than the memory that is free."""


class WorkerLost(WorkersError, Retryable):
    """A worker ended, was killed, or cannot reach another one."""


class WorkerFailed(WorkersError):
    """Workers disagree about a state, or one failed its self-check."""
