"""`check` tests everything that encoding.md requires of a program before it is posted or run.

This check is normative (dispute.md section 4). It includes the callees, and it creates no tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from protocol.program import attributes as attrs
from protocol.program.errors import CheckError, ProgramError
from protocol.program.instruction import MAX_OPERANDS, Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES
from protocol.program.program import MAX_INSTRUCTIONS, Program
from protocol.program.types import TensorType

T = TypeVar("T")

MAX_TRACE_LEAVES = 2**20
MAX_CALL_DEPTH = 8
"""Maximum depth of calls below the top frame. A program without calls has depth 0."""
MAX_RESULTS = 255
MAX_SIGNATURE = 65_535


def check(program: Program, max_depth: int = MAX_CALL_DEPTH) -> None:
    """Raise `CheckError` if the program is invalid. The message names the program and, if possible, the
    instruction at fault.
    """
    checker = _Checker(max_depth)
    checker.count(program)
    checker.visit(program, 0)


class _Checker:
    """One traversal of a program and its callees.

    A program that is called several times is checked only once, except for the depth of the calls. The counts
    of a program are checked first, because a program with wrong counts may have no id.
    """

    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth
        self._counted: dict[int, Program] = {}
        self._below: dict[bytes, int] = {}

    def count(self, program: Program) -> None:
        """Check the counts that must be valid before the program's id can be computed. Each program object is
        checked only once.
        """
        if id(program) not in self._counted:
            _check_counts(program)
            self._counted[id(program)] = program  # kept alive, so that no other object gets the same id()

    def visit(self, program: Program, depth: int) -> int:
        """Check a program at call depth `depth`; the top frame has depth 0. Return the maximum depth of calls
        below this program.
        """
        self._require_depth(program, depth)
        if program.id not in self._below:
            below = [self._callee(program, number, depth) for number in program.calls()]
            _check_instructions(program)
            self._below[program.id] = 1 + max(below) if below else 0
        self._require_depth(program, depth + self._below[program.id])
        return self._below[program.id]

    def _callee(self, program: Program, number: int, depth: int) -> int:
        callee = _at(program, number, lambda: program.callee(number))
        self.count(callee)
        # A cycle of calls is impossible: a caller's id is a hash of its callees' ids.
        stated = program.instructions[number].attributes
        if callee.id != stated:
            raise _refuse(program, number, f"the body of {stated.hex()}", callee.id.hex())
        return self.visit(callee, depth + 1)

    def _require_depth(self, program: Program, depth: int) -> None:
        if depth > self._max_depth:
            raise CheckError(f"calls at most {self._max_depth} deep", str(depth), operation=program.name)


def _check_counts(program: Program) -> None:
    counts = (
        ("instructions", len(program.instructions), 1, MAX_INSTRUCTIONS),
        ("trace leaves", program.trace_leaves, 1, MAX_TRACE_LEAVES),
        ("inputs", len(program.inputs), 0, MAX_SIGNATURE),
        ("outputs", len(program.outputs), 1, MAX_SIGNATURE),
    )
    for what, count, least, most in counts:
        if not least <= count <= most:
            raise CheckError(f"{least} to {most} {what}", str(count), operation=program.name)
    for number, instruction in enumerate(program.instructions):
        if len(instruction.operands) > MAX_OPERANDS or len(instruction.results) > MAX_RESULTS:
            got = f"{len(instruction.operands)} and {len(instruction.results)}"
            raise _refuse(program, number, f"at most {MAX_OPERANDS} operands and {MAX_RESULTS} results", got)
        _at(program, number, instruction.encode)


def _check_instructions(program: Program) -> None:
    leaves: list[TensorType] = []
    outputs: set[int] = set()
    for number, instruction in enumerate(program.instructions):
        if instruction.first != len(leaves):
            raise _refuse(program, number, f"first trace leaf {len(leaves)}", str(instruction.first))
        for operand in instruction.operands:
            if operand.leaf >= len(leaves):
                raise _refuse(program, number, f"an operand below leaf {len(leaves)}", str(operand.leaf))
            if operand.type != leaves[operand.leaf]:
                expected = f"operand {operand.leaf} of type {leaves[operand.leaf]}"
                raise _refuse(program, number, expected, str(operand.type))
        results = _at(program, number, partial(_results, program, number, outputs))
        if instruction.results != results:
            raise _refuse(program, number, f"results {_show(results)}", _show(instruction.results))
        leaves.extend(instruction.results)
    missing = sorted(set(range(len(program.outputs))) - outputs)
    if missing:
        raise CheckError(f"every output once, output {missing[0]} too", "none", operation=program.name)


def _results(program: Program, number: int, outputs: set[int]) -> tuple[TensorType, ...]:
    """The result types that an instruction must have. If the instruction sets an output, add the output to
    `outputs`.
    """
    instruction = program.instructions[number]
    operands = instruction.operand_types
    match instruction.op:
        case Op.INPUT:
            _count(operands, 0)
            return (_signature(instruction, program.inputs, "input"),)
        case Op.OUTPUT:
            _count(operands, 1)
            type_ = _signature(instruction, program.outputs, "output")
            k = attrs.decode_index(instruction.attributes)
            if k in outputs:
                raise ProgramError("every output once", f"output {k} again")
            if type_ != operands[0]:
                raise ProgramError(f"output {k} of type {type_}", str(operands[0]))
            outputs.add(k)
            return ()
        case Op.CALL:
            callee = program.callee(number)
            if operands != callee.inputs:
                raise ProgramError(f"operands {_show(callee.inputs)} of {callee.name}", _show(operands))
            return callee.outputs
        case _:
            declared = instruction.results[0] if instruction.results else None
            return (PRIMITIVES[instruction.op].infer(operands, instruction.attributes, declared),)


def _signature(instruction: Instruction, types: tuple[TensorType, ...], what: str) -> TensorType:
    k = attrs.decode_index(instruction.attributes)
    if k >= len(types):
        raise ProgramError(f"an {what} below {len(types)}", str(k))
    return types[k]


def _count(operands: tuple[TensorType, ...], count: int) -> None:
    if len(operands) != count:
        raise ProgramError(f"{count} operands", str(len(operands)))


def _at(program: Program, number: int, action: Callable[[], T]) -> T:
    """Run `action`. Any `ProgramError` other than a `CheckError` is raised as a `CheckError` that names the
    program and the instruction.
    """
    try:
        return action()
    except CheckError:
        raise
    except ProgramError as error:
        raise _refuse(program, number, error.expected, error.got) from error


def _refuse(program: Program, number: int, expected: str, got: str) -> CheckError:
    operation = f"{program.name}, {program.instructions[number].op.label}"
    return CheckError(expected, got, instruction=number, operation=operation)


def _show(types: tuple[TensorType, ...]) -> str:
    return ", ".join(map(str, types)) or "none"
