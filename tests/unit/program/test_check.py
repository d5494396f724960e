"""`check` accepts programs of the builder, refuses broken ones, and names the broken instruction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from protocol.numerics.types import DType
from protocol.program import (
    Builder,
    CheckError,
    Instruction,
    Op,
    Operand,
    Program,
    TensorType,
    check,
)
from protocol.program import attributes as attrs

F32, I32, BOOL = DType.F32, DType.I32, DType.BOOL
ROW = TensorType(F32, (2, 4))
HALF = TensorType(F32, (4,))


def callee() -> Program:
    b = Builder("callee")
    b.output(b.neg(b.input(ROW)))
    return b.build()


def good() -> Program:
    """A correct program.

    Its instructions, each after its number: 0 `input`, 1 `input`, 2 `add`, 3 `exponent`, 4 `quantise`, 5
    `strided`, 6 `call`, 7 `pad`, 8 `output`, 9 `output`.
    """
    b = Builder("good")
    x, y = b.input(ROW), b.input(HALF)
    z = b.add(x, y)
    q = b.quantise(z, b.exponent(z), 13)
    b.flip(q, 1)
    (negative,) = b.call(callee(), z)
    b.output(b.pad(negative, (3, 4), (1, 0), float("nan")))
    b.output(negative)
    return b.build()


def change(number: int, **fields: object) -> Callable[[Program], Program]:
    """A function that replaces fields of one instruction."""

    def broken(program: Program) -> Program:
        instructions = list(program.instructions)
        instructions[number] = replace(instructions[number], **fields)  # type: ignore[arg-type]
        return replace(program, instructions=tuple(instructions))

    return broken


def append(*more: Instruction) -> Callable[[Program], Program]:
    return lambda program: replace(program, instructions=program.instructions + more)


def with_operand(number: int, k: int, operand: Operand) -> Callable[[Program], Program]:
    def broken(program: Program) -> Program:
        operands = list(program.instructions[number].operands)
        operands[k] = operand
        return change(number, operands=tuple(operands))(program)

    return broken


NAN = bytes.fromhex("0100c07f")
PAD = attrs.encode_pad((1, 0), bytes(4))
BROKEN: dict[str, tuple[int | None, Callable[[Program], Program]]] = {
    "first leaf too high": (2, change(2, first=3)),
    "first leaf too low": (3, change(3, first=2)),
    "an operand that does not precede": (2, with_operand(2, 0, Operand(2, ROW))),
    "an operand of the future": (2, with_operand(2, 1, Operand(5, HALF))),
    "an operand of another type": (2, with_operand(2, 0, Operand(0, TensorType(F32, (4, 2))))),
    "an operand of another dtype": (2, with_operand(2, 0, Operand(0, TensorType(I32, (2, 4))))),
    "shapes that do not broadcast": (
        2,
        lambda p: with_operand(2, 1, Operand(1, TensorType(F32, (3,))))(
            replace(
                change(1, results=(TensorType(F32, (3,)),))(p), inputs=(p.inputs[0], TensorType(F32, (3,)))
            )
        ),
    ),
    "a result of another shape": (2, change(2, results=(HALF,))),
    "a result of another dtype": (3, change(3, results=(TensorType(F32, (2, 1)),))),
    "no result": (2, change(2, results=())),
    "two results": (2, change(2, results=(ROW, ROW))),
    "too few operands": (2, change(2, operands=(Operand(0, ROW),))),
    "too many operands": (2, change(2, operands=(Operand(0, ROW),) * 3)),
    "attributes where there are none": (2, change(2, attributes=b"\x00")),
    "attributes missing": (4, change(4, attributes=b"")),
    "p that is not allowed": (4, change(4, attributes=b"\x0c")),
    "p 30 under to_fixed only": (4, change(4, op=Op.TO_FIXED)),
    "strides outside": (5, change(5, attributes=attrs.encode_strided(0, (4, 2)))),
    "strides below zero": (5, change(5, attributes=attrs.encode_strided(2, (4, -1)))),
    "an offset far outside": (5, change(5, attributes=attrs.encode_strided(2**63 - 1, (4, 1)))),
    "a stride that would wrap": (5, change(5, attributes=attrs.encode_strided(3, (2**63 - 1, -1)))),
    "strides of another rank": (5, change(5, attributes=attrs.encode_strided(0, (4,)))),
    "strided to another dtype": (5, change(5, results=(ROW,))),
    "pad that does not hold x": (7, change(7, attributes=attrs.encode_pad((2, 0), bytes(4)))),
    "pad with a NaN that is not canonical": (7, change(7, attributes=attrs.encode_pad((1, 0), NAN))),
    "pad to another rank": (7, change(7, results=(HALF,), attributes=PAD)),
    "an input that the frame lacks": (0, change(0, attributes=attrs.encode_index(2))),
    "an input of another type": (0, change(0, attributes=attrs.encode_index(1))),
    "an input with an operand": (1, change(1, operands=(Operand(0, ROW),))),
    "an output that the frame lacks": (8, change(8, attributes=attrs.encode_index(2))),
    "an output of another type": (8, change(8, operands=(Operand(0, ROW),))),
    "an output twice": (
        10,
        append(Instruction(Op.OUTPUT, 8, (Operand(6, ROW),), (), attrs.encode_index(1))),
    ),
    "an output with a result": (9, change(9, results=(ROW,))),
    "an output missing": (None, lambda p: replace(p, instructions=p.instructions[:-1])),
    "a call of an unknown program": (6, change(6, attributes=bytes(31) + b"\x01")),
    "a call of program 0, which to the chain is the top frame's": (6, change(6, attributes=bytes(32))),
    "a short program id": (6, change(6, attributes=bytes(31))),
    "a call with other operands": (6, change(6, operands=(Operand(1, HALF),))),
    "a call with other results": (6, change(6, results=(HALF,))),
    "a callee under a wrong id": (
        6,
        lambda p: replace(p, callees={p.instructions[6].attributes: good_other()}),
    ),
    "no instructions": (None, lambda p: replace(p, instructions=())),
    "no outputs": (None, lambda p: replace(p, outputs=(), instructions=p.instructions[:-2])),
    "a reduction over an unaligned row": (
        1,
        lambda _: only(Op.EXPONENT, TensorType(F32, (2, 3)), TensorType(I32, (2, 1))),
    ),
    "an instruction of more than 255 operands": (
        1,
        lambda _: many_operands(256),
    ),
    "an instruction of more than 4,096 bytes": (
        10,
        append(Instruction(Op.NEG, 8, (), (), bytes(4096))),
    ),
}


def good_other() -> Program:
    b = Builder("other")
    b.output(b.abs(b.input(ROW)))
    return b.build()


def only(op: Op, operand: TensorType, result: TensorType) -> Program:
    """A program with one input and one further instruction. It has no output instruction."""
    read = Instruction(Op.INPUT, 0, (), (operand,), attrs.encode_index(0))
    return Program((operand,), (result,), (read, Instruction(op, 1, (Operand(0, operand),), (result,))))


def many_operands(count: int) -> Program:
    scalar = TensorType(F32, (1,))
    read = Instruction(Op.INPUT, 0, (), (scalar,), attrs.encode_index(0))
    joined = TensorType(F32, (count,))
    concat = Instruction(Op.CONCAT, 1, (Operand(0, scalar),) * count, (joined,), b"\x00")
    output = Instruction(Op.OUTPUT, 2, (Operand(1, joined),), (), attrs.encode_index(0))
    return Program((scalar,), (joined,), (read, concat, output))


def test_what_the_builder_records_is_accepted() -> None:
    check(good())
    check(many_operands(255))


@pytest.mark.parametrize("why", BROKEN)
def test_broken_programs_are_refused(why: str) -> None:
    number, broken = BROKEN[why]
    with pytest.raises(CheckError) as error:
        check(broken(good()))
    assert error.value.instruction == number
    assert error.value.expected
    assert error.value.got


def nested(levels: int) -> Program:
    """A program that calls a program, which calls another, and so on: the calls are nested `levels` deep."""
    b = Builder(f"level {levels}")
    x = b.input(HALF)
    b.output(b.call(nested(levels - 1), x)[0] if levels else b.neg(x))
    return b.build()


def test_calls_nest_eight_deep_and_no_deeper() -> None:
    check(nested(8))
    with pytest.raises(CheckError, match="8 deep"):
        check(nested(9))


def test_a_shared_callee_does_not_hide_a_deep_one() -> None:
    deep = nested(8)
    b = Builder("both")
    x = b.input(HALF)
    b.call(nested(7), x)
    b.output(b.call(deep, x)[0])
    with pytest.raises(CheckError, match="8 deep"):
        check(b.build())


def test_a_broken_callee_is_refused_in_its_caller() -> None:
    broken = change(1, first=7)(callee())
    b = Builder("caller")
    b.output(b.call(broken, b.input(ROW))[0])
    with pytest.raises(CheckError, match="callee, neg"):
        check(b.build())


@pytest.mark.parametrize("why", ["no instructions", "an instruction of more than 4,096 bytes"])
def test_a_callee_that_has_no_id_is_refused_like_any_other(why: str) -> None:
    program = good()
    broken = BROKEN[why][1](callee())
    with pytest.raises(CheckError):
        check(replace(program, callees={callee().id: broken}))
