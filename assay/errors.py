"""Errors of the submitter's tools. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import AssayError, ExitCode

if TYPE_CHECKING:
    from assay.pricing import Price


class SubmitterError(AssayError):
    """Base of the errors of `assay`."""


class DescriptionError(SubmitterError):
    """The file that describes a task cannot be read, or a field of it does not fit."""


class SourceError(SubmitterError):
    """The Python file that builds the task cannot be loaded, raises an error, or does not return what it should."""

    has_lines = True


class StartError(SubmitterError):
    """A state that training is to go on from, and that is not a result, or whose random numbers would be
    drawn again.
    """


class NotServed(SubmitterError):
    """Nobody could fetch the bundle from the address that the terms would name."""

    exit_code = ExitCode.RETRY


class TooFewVerifiers(SubmitterError):
    """Too few registered accounts would take a seat of the task: its seats might stay empty."""

    exit_code = ExitCode.RETRY


class NotConfirmed(SubmitterError):
    """Nobody said that the task is to be posted. `price` is what it would have cost, where that was computed."""

    def __init__(
        self, what: object = "", *, expected: object, got: object, remedy: str, price: Price | None = None
    ) -> None:
        super().__init__(what, expected=expected, got=got, remedy=remedy)
        self.price = price


class NobodyTakes(SubmitterError):
    """A solver with default settings would not bid on a task with these terms."""


class NotMade(SubmitterError):
    """`assay init` was given a name that is none, or one that is taken."""


class NotCancelled(SubmitterError):
    """The task is somebody else's, has a bid, or is not up for bids any more."""


class MetricsError(SubmitterError):
    """Metrics that a server does not show, or that are not those of the committed states."""


class PlanError(SubmitterError):
    """An argument of `assay.train` that no task can have."""


class DataError(SubmitterError):
    """Training data that cannot be read, or that have no form as arrays of numbers."""


class PackageMissing(SubmitterError):
    """A package that something optional needs is not installed."""


class ResultError(SubmitterError):
    """The task has no result, or its solver does not serve the committed one."""


class NotHeld(ResultError):
    """Nobody serves a state that was committed to: neither the solver nor an attested seat."""

    exit_code = ExitCode.RETRY


class ProofError(SubmitterError):
    """A file that is not a proof, or a proof that says something else than the chain."""


class ProofMalformed(ProofError):
    """Not a proof of a version that this release reads."""


class ProofMismatch(ProofError):
    """A field of a proof that is not as the chain says, or does not fit what the chain says. `field` names it."""

    exit_code = ExitCode.FRAUD

    def __init__(self, field: str, expected: object, got: object, remedy: str = "") -> None:
        said = remedy or "do not trust this proof: ask its maker for another"
        super().__init__(f"proof, {field}", expected=_short(expected), got=_short(got), remedy=said)
        self.field = field


class WeightsError(SubmitterError):
    """A file of weights that is not a safetensors file, or that is not a task's result."""


class WeightsMalformed(WeightsError):
    """Not a safetensors file."""


class WeightsMismatch(WeightsError):
    """Tensors that are not those of the result."""

    exit_code = ExitCode.FRAUD


def _short(value: object) -> str:
    """For a terminal: what a stranger wrote may be long, or hold what is not printed."""
    text = str(value)
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= 200 else f"{text[:200]}…"
