"""A library function: a body of primitives and calls, and a kernel on tensors with the same bits.

`define` adds a body and its kernel to the catalogue; with `define_by_body`, the kernel evaluates the body.
Kernels are found only by the id of the body's program. Names and attributes in a bundle are hints:
`recognise` builds the body from them and compares ids (dispute.md section 4). It records no more instructions
than the program has, so a false hint costs no more than a true one. A program with an unknown id runs by its
body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from torch import Tensor

from protocol.program.builder import Builder
from protocol.program.execute import Kernel
from protocol.program.library.evaluate import Body, TensorOperations, evaluate
from protocol.program.library.forms import takes
from protocol.program.program import Program
from protocol.program.types import TensorType

Attribute = bool | int | float
Attributes = Mapping[str, Attribute]


class LibraryFunction:
    """A body and a kernel with the same bits, under one name."""

    def __init__(self, name: str, body: Callable[..., Any], kernel: Callable[..., Any]) -> None:
        self.name = name
        self.__doc__ = body.__doc__
        self._body = body
        self._kernel = kernel

    def program(
        self, operands: Sequence[TensorType], attributes: Attributes, most: int | None = None
    ) -> Program:
        """The body's program for these operand types.

        Raises `ProgramError` if the body does not accept these types, or if the program has more than `most`
        instructions.
        """
        # 0.0 and -0.0, or 1 and True, are equal keys in Python, but give different programs.
        told_apart = tuple((name, value, repr(value)) for name, value in sorted(attributes.items()))
        return _build(self, tuple(operands), told_apart, most)

    def kernel(self, attributes: Attributes) -> Kernel:
        """The kernel with the bits of `program` for the same attributes."""
        return LibraryKernel(self, attributes)

    def call(self, b: Builder | TensorOperations, *operands: Any, **attributes: Attribute) -> Any:
        """Record a call of this function; returns one `Value`, or a tuple if there are several results.

        With `TensorOperations`, operands and results are tensors.
        """
        if isinstance(b, TensorOperations):
            found = self.kernel(attributes)(operands)
            return found[0] if len(found) == 1 else found
        results = b.call(self.program([x.type for x in operands], attributes), *operands)
        return results[0] if len(results) == 1 else results


@dataclass(frozen=True, eq=False)
class LibraryKernel:
    """The kernel of a library function with given attributes."""

    function: LibraryFunction
    attributes: Attributes

    def __call__(self, operands: Sequence[Tensor], /) -> tuple[Tensor, ...]:
        """The results for these operands."""
        result = self.function._kernel(*operands, **self.attributes)
        return result if isinstance(result, tuple) else (result,)


CATALOGUE: dict[str, LibraryFunction] = {}
"""Every library function by name."""


@dataclass(frozen=True, slots=True)
class Hint:
    """The possible origin of a program: a library function's name and attributes.

    It is checked, never trusted.
    """

    name: str
    attributes: Attributes


_MADE: dict[bytes, Hint] = {}
"""Hints by program id: one for each program that this process has built, if kernels support the program's
operands and attributes.
"""


def define(name: str, *, kernel: Callable[..., Any]) -> Callable[[Body], LibraryFunction]:
    """Decorator: make a body a library function. A body takes a builder, operands and keyword attributes.

    The kernel takes tensors and the same attributes. Its results must have the bits of the body.
    """

    def add(body: Body) -> LibraryFunction:
        CATALOGUE[name] = LibraryFunction(name, body, kernel)
        return CATALOGUE[name]

    return add


def define_by_body(
    name: str, *, compiled: Callable[..., Any] | None = None, rows: int = 0
) -> Callable[[Body], LibraryFunction]:
    """Decorator: make a body a library function. Its kernel uses the results of `compiled` if there are any;
    otherwise it evaluates the body with torch (`evaluate`).

    `rows` is passed to `evaluate`. `compiled` takes the operands and attributes. It returns the results, or
    None if no compiled code may be used for these operands and attributes.
    """

    def add(body: Body) -> LibraryFunction:
        def kernel(*operands: Tensor, **attributes: Attribute) -> Any:
            result = None if compiled is None else compiled(*operands, **attributes)
            return evaluate(body, operands, attributes, rows) if result is None else result

        return define(name, kernel=kernel)(body)

    return add


def hints(program: Program) -> dict[bytes, Hint]:
    """The hints for a bundle: one for each program in `program.closure()` for which this process knows a hint."""
    return {callee.id: _MADE[callee.id] for callee in program.closure() if callee.id in _MADE}


def kernels(program: Program, hints: Mapping[bytes, Hint]) -> dict[bytes, Kernel]:
    """Kernels by program id, for `Interpreter`: one for each program in `program.closure()` that has a valid hint."""
    found = (
        (callee.id, recognise(callee, hints[callee.id])) for callee in program.closure() if callee.id in hints
    )
    return {id_: kernel for id_, kernel in found if kernel is not None}


def recognise(program: Program, hint: Hint) -> Kernel | None:
    """The kernel for `program` if the hint's function and attributes give exactly this program, else None.

    Also None if the kernel does not support the form of the call (`forms`). The program then runs by its
    body.
    """
    function = CATALOGUE.get(hint.name)
    if function is None or not takes(hint.name, program.inputs, hint.attributes):
        return None
    try:
        made = function.program(program.inputs, hint.attributes, most=len(program.instructions))
        same = made.id == program.id
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None  # a wrong hint: the body cannot be built for these types or attributes, or is longer
    return function.kernel(hint.attributes) if same else None


@lru_cache(maxsize=4096)
def _build(
    function: LibraryFunction,
    operands: tuple[TensorType, ...],
    attributes: tuple[tuple[str, Attribute, str], ...],
    most: int | None,
) -> Program:
    b = Builder(function.name, most)
    given = {name: value for name, value, _ in attributes}
    results = function._body(b, *map(b.input, operands), **given)
    for result in results if isinstance(results, tuple) else (results,):
        b.output(result)
    program = b.build()
    if takes(
        function.name, operands, given
    ):  # other attributes may give the same program, but a hint with them would be refused
        _MADE.setdefault(program.id, Hint(function.name, given))
    return program
