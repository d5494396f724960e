"""Errors of the solver. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, ExitCode


class SolverError(AssayError):
    """Base of the solver's own errors."""


class StakeSlashed(SolverError):
    """The chain has slashed the solver's stake."""

    exit_code = ExitCode.FRAUD


class StakeNotDeposited(SolverError):
    """The token or the vault refused the deposit of a task's stake. Submitting again may work."""

    exit_code = ExitCode.RETRY


class RunStoreError(SolverError):
    """A checkpoint is not on disk and cannot be computed again, or the bundle of a finished task is lost."""


class PublicPlaceError(SolverError):
    """A public bucket or folder cannot be opened, written or read, or the public cannot read it."""

    exit_code = ExitCode.RETRY


class KeepingError(SolverError):
    """The disk or the database did not accept the next checkpoint. All earlier ones are kept."""

    exit_code = ExitCode.RETRY


class OrdersError(SolverError):
    """The file with the operator's orders is damaged, or cannot be read or written."""


class ControlError(SolverError):
    """The control socket cannot be used, or the node refused the request."""


class NotRunning(ControlError):
    """No node of the home folder runs."""

    exit_code = ExitCode.RETRY


class LaneRunning(SolverError):
    """Another process runs this lane in the home folder."""

    exit_code = ExitCode.RETRY


class AnotherNode(SolverError):
    """Another node of the home folder runs."""

    exit_code = ExitCode.RETRY
