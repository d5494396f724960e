"""Errors of the simulation. All are the operator's: one line that says what was expected, what came, what to do.

OperatorError (protocol.node.exits)
└── SimError
    ├── ParameterError    a parameter that does not exist, or a value that is impossible
    ├── SweepError        a sweep without points, or one that cannot be read
    ├── StudyError        a study or scenario that does not exist
    ├── ResultsError      results that belong to another question, or are damaged
    └── Disagreement      the engine's ledger and the contracts differ (exit code 3)
"""

from __future__ import annotations

from protocol.node.exits import ExitCode, OperatorError


class SimError(OperatorError):
    """Base of the errors of `sim`."""


class ParameterError(SimError):
    """A parameter that does not exist, or a value outside of its bounds."""


class SweepError(SimError):
    """A sweep that has no points, or a range that cannot be read."""


class StudyError(SimError):
    """A study or a scenario that does not exist."""


class ResultsError(SimError):
    """A folder whose results answer another question, or cannot be read."""


class Disagreement(SimError):
    """The engine's ledger and the contracts differ. `comparison` is the replay's, where it is about balances."""

    exit_code = ExitCode.FRAUD

    def __init__(self, message: str, comparison: object = None) -> None:
        super().__init__(message)
        self.comparison = comparison
