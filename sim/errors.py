"""Errors of the simulation. `protocol.errors` shows the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError, ExitCode


class SimError(AssayError):
    """Base of the errors of `sim`."""


class ParameterError(SimError):
    """A parameter that does not exist, or a value out of bounds."""


class SweepError(SimError):
    """A sweep without points or with too many, a range that cannot be read, or options that do not fit
    together.
    """


class ExtraMissing(SimError):
    """A package that only studies need is not installed."""


class StudyError(SimError):
    """A study or a scenario that does not exist, or an option that a scenario does not take."""


class ResultsError(SimError):
    """A folder without results, or with results that answer another question or cannot be read."""


class Disagreement(SimError):
    """The engine's ledger and the contracts differ. `comparison` is set if balances differ."""

    exit_code = ExitCode.FRAUD

    def __init__(self, message: str, comparison: object = None) -> None:
        super().__init__(message)
        self.comparison = comparison
