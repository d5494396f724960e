"""Errors of the submitter's tools. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, ExitCode


class SubmitterError(AssayError):
    """Base of the errors of `assay`."""


class DescriptionError(SubmitterError):
    """The file that describes a task cannot be read, or a field of it does not fit."""


class SourceError(SubmitterError):
    """The Python file that builds the task cannot be loaded, raises an error, or does not return what it should."""

    has_lines = True


class NotServed(SubmitterError):
    """Nobody could fetch the bundle from the address that the terms would name."""

    exit_code = ExitCode.RETRY


class TooFewVerifiers(SubmitterError):
    """Too few registered accounts would take a seat of the task: its seats might stay empty."""

    exit_code = ExitCode.RETRY


class NotConfirmed(SubmitterError):
    """Nobody said that the task is to be posted."""


class NobodyTakes(SubmitterError):
    """A solver with default settings would not bid on a task with these terms."""


class NotMade(SubmitterError):
    """`assay init` was given a name that is none, or one that is taken."""


class NotCancelled(SubmitterError):
    """The task is somebody else's, has a bid, or is not up for bids any more."""


class MetricsError(SubmitterError):
    """Metrics that a server does not show, or that are not those of the committed states."""


class ResultError(SubmitterError):
    """The task has no result, or its solver does not serve the committed one."""
