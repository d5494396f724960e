"""Errors of the submitter's tools. All are the operator's: one line that says what was expected, what came, what to do.

OperatorError (protocol.node.exits)
└── AssayError
    ├── DescriptionError     the file that describes a task
    ├── SourceError          the Python file that builds it, or what that returned
    ├── NotServed            the bundle is not where the terms would say (a later try may work)
    ├── NobodyAudits         no verifier is registered yet (a later try may work)
    ├── NotEnoughTokens      the escrow cannot be paid
    └── ResultError          no result yet, or one that is not the committed one
"""

from __future__ import annotations

from protocol.node.exits import ExitCode, OperatorError


class AssayError(OperatorError):
    """Base of the errors of `assay`."""


class DescriptionError(AssayError):
    """The file that describes a task cannot be read, or a field of it does not fit."""


class SourceError(AssayError):
    """The Python file that builds the task cannot be loaded, or does not return what it should."""


class NotServed(AssayError):
    """Nobody could fetch the bundle from the address that the terms would name."""

    exit_code = ExitCode.RETRY


class NobodyAudits(AssayError):
    """No verifier is registered, so the market takes no task."""

    exit_code = ExitCode.RETRY


class NotEnoughTokens(AssayError):
    """The account holds fewer tokens than the task locks."""


class ResultError(AssayError):
    """The task has no result, or its solver does not serve the committed one."""
