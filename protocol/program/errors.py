"""Typed errors of programs. Every one says what was expected, what came and, where it helps, what to do.

ProgramError
├── EncodingError     bytes that are no program, instruction or type
├── RuleError         operands, results or attributes that a primitive does not take
├── CheckError        a program that `check` refuses
└── ValueMismatch     tensors that do not fit the program they were given to
"""

from __future__ import annotations


class ProgramError(ValueError):
    """A program, or something given to one, is not as it must be.

    `instruction` is the number of the instruction at fault, where there is one; `operation` its name.
    """

    def __init__(
        self, expected: str, got: str, *, instruction: int | None = None, operation: str | None = None
    ) -> None:
        self.expected = expected
        self.got = got
        self.instruction = instruction
        self.operation = operation
        place = "" if instruction is None else f"instruction {instruction}: "
        name = "" if operation is None else f"{operation}: "
        super().__init__(f"{place}{name}expected {expected}, got {got}")


class EncodingError(ProgramError):
    """Bytes that do not decode: too short, too long, an unknown code, a number out of range."""


class RuleError(ProgramError):
    """Operands, results or attributes that break the rule of their primitive (encoding.md section 3)."""


class CheckError(ProgramError):
    """A program that breaks encoding.md; refused before anything runs or is staked."""


class ValueMismatch(ProgramError):
    """Tensors whose number, types or shapes are not those of the program they were given to."""
