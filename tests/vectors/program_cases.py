"""Programs at the limits of `check`, and programs that it refuses (encoding.md sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from protocol.numerics.types import DType
from protocol.program import Builder, Instruction, Program, TensorType
from protocol.program.attributes import encode_index, encode_pad, encode_strided
from protocol.program.instruction import Operand
from protocol.program.opcodes import Op

F32, U8, I32, U32, I64, BOOL = DType.F32, DType.U8, DType.I32, DType.U32, DType.I64, DType.BOOL
Closure = list[bytes]
"""Encoded programs, callees first."""


def type_(dtype: DType, *shape: int) -> TensorType:
    """A type."""
    return TensorType(dtype, shape)


ROW = type_(F32, 4)
NAN, PAYLOAD = bytes.fromhex("0000c07f"), bytes.fromhex("0100c07f")
DEEPEST = 8


def chain(depth: int) -> Program:
    """A program whose calls are `depth` deep."""
    b = Builder(f"depth_{depth}")
    x = b.input(ROW)
    b.output(b.call(chain(depth - 1), x)[0] if depth else b.neg(x))
    return b.build()


def single(
    op: Op,
    operands: Sequence[TensorType],
    result: TensorType,
    attributes: bytes = b"",
    callee: Program | None = None,
) -> Closure:
    """A program with an input for each operand, one instruction on these inputs, and its result as the output."""
    count = len(operands)
    given = [Instruction(Op.INPUT, k, (), (x,), encode_index(k)) for k, x in enumerate(operands)]
    leaves = tuple(Operand(k, x) for k, x in enumerate(operands))
    tested = Instruction(op, count, leaves, (result,), attributes)
    return [
        *(program.encode() for program in (callee.closure() if callee else ())),
        program_of(operands, [*given, tested]),
    ]


def program_of(inputs: Sequence[TensorType], instructions: Sequence[Instruction]) -> bytes:
    """The bytes of a program with these inputs and instructions. Its output is the result of the last instruction."""
    last = instructions[-1]
    (result,) = last.results
    out = Instruction(Op.OUTPUT, last.first + 1, (Operand(last.first, result),), (), encode_index(0))
    return Program(tuple(inputs), (result,), (*instructions, out)).encode()


def accepted() -> Iterator[tuple[str, Closure]]:
    """Accepted programs. Each is at a limit of `check` and comes with a description of that limit."""
    yield "calls 8 deep", [program.encode() for program in chain(DEEPEST).closure()]
    yield "no input", [program_of([], [Instruction(Op.CONSTANT, 0, (), (ROW,), NAN)])]
    yield "255 operands", single(Op.CONCAT, [type_(U8, 1)] * 255, type_(U8, 255), b"\0")
    yield "strided over all of x, backward", single(Op.STRIDED, [ROW], ROW, encode_strided(3, [-1]))
    yield (
        "any stride along an axis of one",
        single(Op.STRIDED, [ROW], type_(F32, 1), encode_strided(3, [2**63 - 1])),
    )
    yield "pad without padding", single(Op.PAD, [ROW], ROW, encode_pad([0], NAN))
    yield (
        "a step of rank 0",
        single(Op.PHILOX, [type_(U32, 2), type_(U32)], type_(U32, 5), encode_index(2**32 - 1)),
    )
    yield "a row of 1,024 bytes", single(Op.MAX, [type_(F32, 256)], type_(F32, 1))
    yield "a row of 2,048 bytes", single(Op.MAX, [type_(F32, 2, 512)], type_(F32, 2, 1))
    yield "gather from a table of rank 1", single(Op.GATHER, [ROW, type_(I32)], type_(F32))
    yield "p of 255", single(Op.ROUND_SCALED, [type_(I64, 4), type_(I32)], ROW, b"\xff")


def refused() -> Iterator[tuple[str, Closure]]:
    """Programs that are refused, each with the reason. Three of them do not decode; `check` refuses the others."""
    yield from _refused_frames()
    yield from _refused_rows()
    yield from _refused_movement()
    yield from _refused_types()


def _refused_frames() -> Iterator[tuple[str, Closure]]:
    zero, one = encode_index(0), encode_index(1)
    given = Instruction(Op.INPUT, 0, (), (ROW,), zero)
    out = Instruction(Op.OUTPUT, 1, (Operand(0, ROW),), (), zero)

    def frame(*instructions: Instruction, outputs: Sequence[TensorType] = (ROW,)) -> Closure:
        return [Program((ROW,), tuple(outputs), instructions).encode()]

    good = frame(given, out)[0]
    yield "calls 9 deep", [program.encode() for program in chain(DEEPEST + 1).closure()]
    yield "a callee that is not there", [chain(1).encode()]
    yield "one byte too many", [good + b"\0"]
    yield "one byte too few", [good[:-1]]
    yield "no instructions", frame()
    yield "no outputs", frame(given, outputs=())
    yield "an output is missing", frame(given, out, outputs=(ROW, ROW))
    yield "an output twice", frame(given, out, out)
    yield (
        "an output that the signature does not have",
        frame(given, Instruction(Op.OUTPUT, 1, out.operands, (), one)),
    )
    yield "an output of another type", frame(given, out, outputs=(type_(F32, 5),))
    yield "an output with a result", frame(given, Instruction(Op.OUTPUT, 1, out.operands, (ROW,), zero))
    yield "an input that the signature does not have", frame(Instruction(Op.INPUT, 0, (), (ROW,), one), out)
    yield (
        "an input of another type",
        frame(
            Instruction(Op.INPUT, 0, (), (type_(I32, 4),), zero),
            Instruction(Op.OUTPUT, 1, (Operand(0, type_(I32, 4)),), (), zero),
        ),
    )
    yield "an operand that follows", frame(Instruction(Op.NEG, 0, (Operand(0, ROW),), (ROW,)), out)
    yield (
        "an operand of another type than its leaf",
        frame(given, Instruction(Op.NEG, 1, (Operand(0, type_(F32, 2, 2)),), (type_(F32, 2, 2),)), out),
    )
    yield (
        "a first result that is not the next leaf",
        frame(given, Instruction(Op.NEG, 2, (Operand(0, ROW),), (ROW,)), out),
    )
    yield (
        "two results of an operation",
        frame(given, Instruction(Op.NEG, 1, (Operand(0, ROW),), (ROW, ROW)), out),
    )
    yield "no result of an operation", frame(given, Instruction(Op.NEG, 1, (Operand(0, ROW),), ()), out)
    callee = chain(0)
    yield "a call with another operand", single(Op.CALL, [type_(F32, 5)], ROW, callee.id, callee)
    yield "a call without its operand", single(Op.CALL, [], ROW, callee.id, callee)
    yield "a call with another result", single(Op.CALL, [ROW], type_(F32, 5), callee.id, callee)
    yield "a callee that is refused", _above(single(Op.NEG, [type_(I32, 4)], type_(I32, 4))[0], type_(I32, 4))


def _above(callee: bytes, of: TensorType) -> Closure:
    """The encoded program `callee`, and a program that calls it. The operand and the result of the call have
    the type `of`.
    """
    below = Program.decode(callee)
    given = Instruction(Op.INPUT, 0, (), (of,), encode_index(0))
    call = Instruction(Op.CALL, 1, (Operand(0, of),), (of,), below.id)
    return [callee, program_of([of], [given, call])]


def _refused_rows() -> Iterator[tuple[str, Closure]]:
    yield "a row of 12 bytes", single(Op.MAX, [type_(F32, 3)], type_(F32, 1))
    yield "a row of 1,536 bytes", single(Op.SUM, [type_(I64, 192)], type_(I64, 1))
    yield "a reduction of rank 0", single(Op.EXPONENT, [type_(F32)], type_(I32))
    yield "a reduction that drops its axis", single(Op.MAX, [type_(F32, 2, 4)], type_(F32, 2))
    yield "a dot of rank 1", single(Op.DOT, [type_(I32, 4), type_(I32, 4)], type_(I64, 1, 1))
    yield (
        "a dot of rows of two lengths",
        single(Op.DOT, [type_(I32, 1, 4), type_(I32, 1, 8)], type_(I64, 1, 1)),
    )
    yield (
        "a dot of other leading dimensions",
        single(Op.DOT, [type_(I32, 2, 1, 4), type_(I32, 1, 1, 4)], type_(I64, 2, 1, 1)),
    )
    wide = [type_(I32, 8), type_(I64, 4)]
    yield (
        "an index of another length than the row",
        single(Op.SCATTER_SUM, wide, type_(I64, 3), encode_index(3)),
    )
    same = [type_(I32, 4), type_(I64, 4)]
    yield (
        "another number of rows than the attribute",
        single(Op.SCATTER_SUM, same, type_(I64, 4), encode_index(3)),
    )
    yield "a scatter to no rows", single(Op.SCATTER_SUM, same, type_(I64, 1), encode_index(0))
    yield "a prefix sum of another shape", single(Op.PREFIX_SUM, [type_(I64, 4)], type_(I64, 2, 2))


def _refused_movement() -> Iterator[tuple[str, Closure]]:
    yield "a literal of a NaN with payload", single(Op.CONSTANT, [], ROW, PAYLOAD)
    yield "a literal of a bool of 2", single(Op.CONSTANT, [], type_(BOOL, 4), b"\2")
    yield "a literal of two elements", single(Op.CONSTANT, [], ROW, bytes(8))
    yield "strided to one element behind x", single(Op.STRIDED, [ROW], ROW, encode_strided(1, [1]))
    yield "strided to one element before x", single(Op.STRIDED, [ROW], ROW, encode_strided(2, [-1]))
    yield "strided to another type", single(Op.STRIDED, [ROW], type_(I32, 4), encode_strided(0, [1]))
    yield "strided with a stride too many", single(Op.STRIDED, [ROW], ROW, encode_strided(0, [1, 1]))
    yield "pad of x outside the result", single(Op.PAD, [ROW], type_(F32, 6), encode_pad([3], bytes(4)))
    yield "pad to another rank", single(Op.PAD, [ROW], type_(F32, 4, 1), encode_pad([0], bytes(4)))
    yield "pad with a NaN with payload", single(Op.PAD, [ROW], type_(F32, 5), encode_pad([0], PAYLOAD))
    yield "concat of nothing", single(Op.CONCAT, [], ROW, b"\0")
    yield "concat along an axis that there is not", single(Op.CONCAT, [ROW, ROW], type_(F32, 8), b"\1")
    yield "concat of two types", single(Op.CONCAT, [ROW, type_(I32, 4)], type_(F32, 8), b"\0")
    yield "concat of two ranks", single(Op.CONCAT, [ROW, type_(F32, 1, 4)], type_(F32, 8), b"\0")
    yield (
        "concat of two sizes along another axis",
        single(Op.CONCAT, [type_(F32, 2, 4), type_(F32, 2, 5)], type_(F32, 4, 4), b"\0"),
    )
    yield "gather by u32", single(Op.GATHER, [ROW, type_(U32, 2)], type_(F32, 2))
    yield "gather from rank 0", single(Op.GATHER, [type_(F32), type_(I32, 2)], type_(F32, 2))


def _refused_types() -> Iterator[tuple[str, Closure]]:
    flags = type_(BOOL, 4)
    yield "an attribute where there is none", single(Op.NEG, [ROW], ROW, b"\0")
    yield "add of bools", single(Op.ADD, [flags, flags], flags)
    yield "add of two types", single(Op.ADD, [ROW, type_(I32, 4)], ROW)
    yield "add of shapes that do not broadcast", single(Op.ADD, [ROW, type_(F32, 2)], ROW)
    yield "add with a result of another shape", single(Op.ADD, [ROW, type_(F32, 1)], type_(F32, 1, 4))
    yield "add of three", single(Op.ADD, [ROW] * 3, ROW)
    yield "div of integers", single(Op.DIV, [type_(I32, 4)] * 2, type_(I32, 4))
    yield "lt of bools", single(Op.LT, [flags, flags], flags)
    yield "select by an integer", single(Op.SELECT, [type_(U8, 4), ROW, ROW], ROW)
    yield "and of f32", single(Op.AND, [ROW, ROW], ROW)
    yield "a shift by another type", single(Op.SHL, [type_(I64, 4), type_(I32, 4)], type_(I64, 4))
    yield "mulhi of i32", single(Op.MULHI, [type_(I32, 4)] * 2, type_(I32, 4))
    yield "cast from f32 to u8", single(Op.CAST, [ROW], type_(U8, 4))
    yield "cast to the same type", single(Op.CAST, [type_(I32, 4)], type_(I32, 4))
    yield "bits of i32", single(Op.BITS, [type_(I32, 4)], ROW)
    yield "quantise to 14 bits", single(Op.QUANTISE, [ROW, type_(I32)], type_(I32, 4), b"\x0e")
    yield "to_fixed to 20 bits", single(Op.TO_FIXED, [ROW, type_(I32)], type_(I64, 4), b"\x14")
    yield "three exponents", single(Op.ROUND_SCALED, [type_(I64, 4), *[type_(I32)] * 3], ROW, b"\x1e")
    yield (
        "a key of three words",
        single(Op.PHILOX, [type_(U32, 3), type_(U32)], type_(U32, 4), encode_index(0)),
    )
    yield "two steps", single(Op.PHILOX, [type_(U32, 2), type_(U32, 2)], type_(U32, 4), encode_index(0))
