"""Errors of the solver. All are the operator's: one line that says what was expected, what came and what to do.

OperatorError (protocol.runtime.exits)
└── SolverError
    └── RecordError       a task's kept run has a hole that replay cannot close
"""

from __future__ import annotations

from protocol.runtime.exits import OperatorError


class SolverError(OperatorError):
    """Base of the solver's own errors."""


class RecordError(SolverError):
    """A checkpoint that was committed is neither on disk nor can it be computed again."""
