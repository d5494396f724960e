"""Errors of the submitter's tools. All are the operator's: one line that says what was expected, what came, what to do.

OperatorError (protocol.runtime.exits)
└── AssayError
    ├── DescriptionError     the file that describes a task
    ├── SourceError          the Python file that builds it, or what that returned
    ├── NotServed            the bundle is not where the terms would say (a later try may work)
    ├── NobodyAudits         no verifier is registered yet (a later try may work)
    ├── NotEnoughTokens      the escrow cannot be paid
    ├── ResultError          no result yet, or one that is not the committed one
    └── PortTaken            the HTTP port is in use (a later try may work)
"""

from __future__ import annotations

from protocol.runtime.exits import ExitCode, OperatorError


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


class PortTaken(AssayError):
    """Another server listens on the port."""

    exit_code = ExitCode.RETRY


def known(error: BaseException) -> ExitCode | None:
    """Exit codes of errors that the libraries below raise and an operator can act on; None for a defect."""
    from protocol.bundles import BundleError
    from protocol.chain.errors import (
        AccountInUse,
        ChainError,
        NotMined,
        PortInUse,
        RpcUnavailable,
        UnstableChain,
    )
    from protocol.commitments import CommitmentError
    from protocol.program.errors import ProgramError
    from protocol.task import TermsError

    if isinstance(error, (RpcUnavailable, NotMined, UnstableChain, AccountInUse, PortInUse)):
        return ExitCode.RETRY
    if isinstance(error, (ChainError, BundleError, CommitmentError, ProgramError, TermsError)):
        return ExitCode.HOPELESS
    return None
