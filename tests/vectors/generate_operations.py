"""Write operations.json: how many operations are counted for instructions and for small programs.

The values come from a second implementation of docs/spec/encoding.md section 8, which reads the fields of
instructions. README.md has the format. Deterministic. Run as `python -m tests.vectors.generate_operations`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from protocol.numerics.types import DType
from protocol.program import Builder, Instruction, Op, Program, TensorType
from tests.vectors.generate_programs import every, row_sum

FILE = Path(__file__).with_name("operations.json")
F32, U8, I32, I64 = DType.F32, DType.U8, DType.I32, DType.I64

WEIGHTS = {
    4: "strided concat pad select lt le div minimum maximum",
    8: "gather sqrt argmax scatter_sum",
    16: "scale quantise",
    24: "shl shr mulhi to_fixed",
    32: "cast",
    48: "round_scaled",
}
ROWS = "exponent sum max argmax scatter_sum prefix_sum"
"""The primitives that count an operation for each element of their last operand."""
RESULTS = "exponent sum max argmax scatter_sum dot"
"""The primitives that count 16 more operations for each element of their result."""


def own(instruction: Instruction) -> int:
    """The operations of an instruction, without those of the program that it calls."""
    name, counted = instruction.op.label, 1 << 14
    if name in ("input", "output", "call"):
        return counted
    (result,), operands = instruction.results, instruction.operands
    terms = result.elements
    if name == "philox":
        terms = 20 * result.elements
    elif name in ROWS.split():
        terms = operands[-1].type.elements
    elif name == "dot":
        terms = 2 * result.elements * operands[1].type.shape[-1]
        counted += 16 * (operands[0].type.elements + operands[1].type.elements)
    if name in RESULTS.split():
        counted += 16 * result.elements
    return counted + terms * next((w for w, names in WEIGHTS.items() if name in names.split()), 1)


def run(program: Program) -> int:
    """The operations of a run: those of all instructions and, for each call, those of a run of the called program."""
    called = sum(run(program.callee(number)) for number in program.calls())
    return called + sum(own(instruction) for instruction in program.instructions)


def path_bytes(program: Program) -> int:
    """The bytes of all values of the program, plus the path bytes of the callee that has the most."""
    below = [path_bytes(program.callee(number)) for number in program.calls()]
    values = (type_.nbytes for instruction in program.instructions for type_ in instruction.results)
    return sum(values) + max(below, default=0)


def twice(callee: Program) -> Program:
    """A program that calls `callee` twice."""
    b = Builder("twice")
    x = b.input(TensorType(F32, (3, 4)))
    for value in (*b.call(callee, x), *b.call(callee, b.neg(x))):
        b.output(value)
    return b.build()


def negated() -> Program:
    """A program with few operations on many bytes. The hashing of these bytes determines its cost."""
    b = Builder("negated")
    b.output(b.neg(b.input(TensorType(F32, (64, 64)))))
    return b.build()


def two_paths(short: Program, long: Program) -> Program:
    """A program that calls `short` and `long`. The values of `long` have more bytes than those of `short`."""
    b = Builder("two paths")
    total, _ = b.call(short, b.input(TensorType(F32, (3, 4))))
    (large,) = b.call(long, b.input(TensorType(F32, (64, 64))))
    b.output(total)
    b.output(large)
    return b.build()


def reductions() -> Program:
    """A program with every reduction, each over rows of two blocks."""
    b = Builder("reductions")
    x, y = b.input(TensorType(I32, (2, 3, 512))), b.input(TensorType(I32, (2, 5, 512)))
    f, index = b.input(TensorType(F32, (3, 512))), b.input(TensorType(I32, (256,)))
    wide = b.input(TensorType(I64, (3, 256)))
    values = (b.dot(x, y), b.sum(wide), b.max(f), b.argmax(f), b.exponent(f), b.prefix_sum(wide))
    for value in (*values, b.scatter_sum(index, wide, rows=7)):
        b.output(value)
    return b.build()


def programs() -> list[Program]:
    """The programs of the file, each after the programs that it calls."""
    callee, large = row_sum(), negated()
    return [callee, every(callee), twice(callee), large, two_paths(callee, large), reductions()]


def program_rows(found: list[Program]) -> Iterable[dict[str, Any]]:
    """A row for each program. A program's closure ends with the program itself."""
    ids = [program.id for program in found]
    for program in found:
        closure = b"".join(ids.index(each.id).to_bytes(4, "big") for each in program.closure())
        counted, largest = run(program), path_bytes(program)
        yield {
            "name": program.name,
            "data": program.encode(),
            "closure": closure,
            "run": counted,
            "path_bytes": largest,
            "operations": max(counted, 7 * largest),
        }


def instruction_rows(found: list[Program]) -> Iterable[dict[str, Any]]:
    """A row for the first instruction of each opcode except `call`, and a row for every instruction of the
    program of reductions.
    """
    seen = set[Op]()
    for program in found:
        for instruction in program.instructions:
            if instruction.op not in {Op.CALL, *seen} or program.name == "reductions":
                seen.add(instruction.op)
                yield {"data": instruction.encode(), "operations": own(instruction)}


def document() -> dict[str, dict[str, list[Any]]]:
    """The whole file as JSON values."""
    found = programs()
    return {
        section: {name: [_json(row[name]) for row in rows] for name in rows[0]}
        for section, rows in (
            ("instructions", [*instruction_rows(found)]),
            ("programs", [*program_rows(found)]),
        )
    }


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(document(), indent=1) + "\n")


def _json(entry: Any) -> Any:
    return "0x" + entry.hex() if isinstance(entry, bytes) else entry


if __name__ == "__main__":
    main()
