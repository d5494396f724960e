"""Errors of the solver. All are the operator's: one line that says what was expected, what came and what to do.

OperatorError (protocol.node.exits)
└── SolverError
    ├── RunStoreError       a task's kept run has a hole that replay cannot close
    └── KeepingError      a checkpoint cannot be written; a restart may help
"""

from __future__ import annotations

from protocol.node.exits import ExitCode, OperatorError


class SolverError(OperatorError):
    """Base of the solver's own errors."""


class RunStoreError(SolverError):
    """A checkpoint that was committed is neither on disk nor can it be computed again."""


class KeepingError(SolverError):
    """The disk or the database does not take the next checkpoint. All earlier ones are kept."""

    exit_code = ExitCode.RETRY
