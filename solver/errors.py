"""Errors of the solver. All are the operator's: one line that says what was expected, what came and what to do.

OperatorError (protocol.runtime.exits)
└── SolverError
    ├── DatabaseError     the node's database cannot be used
    ├── RecordError       a task's kept run has a hole that replay cannot close
    └── PortTaken         the HTTP port is in use (a later try may work)
"""

from __future__ import annotations

from protocol.runtime.exits import ExitCode, OperatorError


class SolverError(OperatorError):
    """Base of the solver's own errors."""


class DatabaseError(SolverError):
    """The database is damaged, of a newer version, or of another chain or account."""


class RecordError(SolverError):
    """A checkpoint that was committed is neither on disk nor can it be computed again."""


class PortTaken(SolverError):
    """Another server listens on the port."""

    exit_code = ExitCode.RETRY


def known(error: BaseException) -> ExitCode | None:
    """Exit codes of errors that the libraries below raise and an operator can act on; None for a defect."""
    from protocol.bundles import BundleError
    from protocol.chain.errors import AccountInUse, ChainError, NotMined, RpcUnavailable, UnstableChain
    from protocol.commitments import CommitmentError

    if isinstance(error, (RpcUnavailable, NotMined, UnstableChain, AccountInUse)):
        return ExitCode.RETRY
    if isinstance(error, (ChainError, BundleError, CommitmentError)):
        return ExitCode.HOPELESS
    return None
