"""Errors of the submitter's tools. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import AssayError, ExitCode

if TYPE_CHECKING:
    from assay.pricing import Price


class SubmitterError(AssayError):
    """Base of the errors of `assay`."""


class DescriptionError(SubmitterError):
    """The file that describes a task cannot be read, or one of its fields is not valid."""


class SourceError(SubmitterError):
    """The Python file that builds the task cannot be loaded, raises an error, or does not return what it should."""

    has_lines = True


class StartError(SubmitterError):
    """The state to continue from is not the result of a task, or the new task would use the same random
    numbers as the task that it continues.
    """


class NotServed(SubmitterError):
    """The bundle could not be fetched from the address that the terms would name."""

    exit_code = ExitCode.RETRY


class TooFewVerifiers(SubmitterError):
    """Too few registered accounts would take a seat of the task, so its seats might stay empty."""

    exit_code = ExitCode.RETRY


class NotConfirmed(SubmitterError):
    """Nobody confirmed that the task should be posted. `price` is the task's price; None if it was not computed."""

    def __init__(
        self, what: object = "", *, expected: object, got: object, remedy: str, price: Price | None = None
    ) -> None:
        super().__init__(what, expected=expected, got=got, remedy=remedy)
        self.price = price


class NobodyTakes(SubmitterError):
    """A solver with default settings would not bid on a task with these terms."""


class NotMade(SubmitterError):
    """`assay init` or `assay split` cannot make its folder: the given name is invalid or taken, or the place
    cannot be written to.
    """


class NotCancelled(SubmitterError):
    """The task belongs to another account, has a bid, or is no longer open for bids."""


class AnotherTask(SubmitterError):
    """Since a re-organisation, a task does not have its old number any more: another task has that number, or
    no task has it. `number` is the task's new number; None if it was not found.
    """

    def __init__(self, task: int, submitter: str, other: str | None, number: int | None) -> None:
        remedy = "look for yours with `assay status`"
        if number is not None:
            remedy = f"yours is task {number} now: follow it with `assay watch {number}`"
        super().__init__(
            f"task {task} is another one since a re-organisation",
            expected=f"the task that {submitter} posted",
            got="none" if other is None else f"one of {other}, with its terms",
            remedy=remedy,
        )
        self.number = number


class NotMinedAgain(SubmitterError):
    """A re-organisation has removed the block with a task's post, and no later block has the post yet."""

    exit_code = ExitCode.RETRY


class MetricsError(SubmitterError):
    """Metrics that a server does not serve, or that differ from the committed states."""


class PlanError(SubmitterError):
    """An argument of `assay.train` that is not valid for a task."""


class DataError(SubmitterError):
    """Training data that cannot be read, or cannot be represented as arrays of numbers."""


class PackageMissing(SubmitterError):
    """An optional package that is not installed."""


class ResultError(SubmitterError):
    """A task has no result, or its result or proof cannot be fetched, made or written."""


class NotHeld(ResultError):
    """Neither the solver nor an attested seat serves a committed state."""

    exit_code = ExitCode.RETRY


class ProofError(SubmitterError):
    """A file that is not a proof, or a proof that contradicts the chain."""


class ProofMalformed(ProofError):
    """A file that cannot be read, that is not a proof, or that is a proof of a version that this release does
    not read.
    """


class ProofMismatch(ProofError):
    """A field of a proof contradicts the chain, or something that follows from the chain. `field` is the name
    of that field.
    """

    exit_code = ExitCode.FRAUD

    def __init__(self, field: str, expected: object, got: object, remedy: str = "") -> None:
        said = remedy or "do not trust this proof: ask its maker for another"
        super().__init__(f"proof, {field}", expected=_short(expected), got=_short(got), remedy=said)
        self.field = field


class WeightsError(SubmitterError):
    """A file of weights that is not a safetensors file, or that is not a task's result."""


class WeightsMalformed(WeightsError):
    """A file that cannot be read, or that is not a safetensors file."""


class WeightsMismatch(WeightsError):
    """Tensors that are not those of the result."""

    exit_code = ExitCode.FRAUD


def _short(value: object) -> str:
    """Shorten and escape a stranger's text for a terminal: it may be long, or contain unprintable
    characters.
    """
    text = str(value)
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= 200 else f"{text[:200]}…"
