"""Errors of programs. `protocol.errors` draws the tree of all errors."""

from __future__ import annotations

from protocol.errors import AssayError


class ProgramError(AssayError, ValueError):
    """A program, or a value passed to it, is invalid.

    `instruction` is the number of the instruction at fault, if there is one. `operation` names the operation,
    the program, or both.
    """

    expected: str
    got: str

    def __init__(
        self,
        expected: str,
        got: str,
        *,
        instruction: int | None = None,
        operation: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.instruction = instruction
        self.operation = operation
        place = None if instruction is None else f"instruction {instruction}"
        what = ": ".join(part for part in (place, operation) if part is not None)
        super().__init__(what, expected=expected, got=got, remedy=remedy)


class EncodingError(ProgramError):
    """Bytes that do not decode, or values that do not encode, because they have a wrong length, are unknown
    or are out of range.
    """


class RuleError(ProgramError):
    """Operands, results or attributes that violate the rules of their primitive (encoding.md section 3)."""


class CheckError(ProgramError):
    """A program that violates encoding.md; it is refused before anything is run or staked."""


class ValueMismatch(ProgramError):
    """Tensors that do not match the program in number, type or shape."""
