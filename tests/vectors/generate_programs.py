"""Write programs.json: bytes of instructions and programs, ids, and roots of small runs.

README.md has the format. Deterministic: inputs come from Philox with a fixed key.
Run as `python -m tests.vectors.generate_programs`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protocol.commitments import chunk_count
from protocol.numerics.philox import philox
from protocol.numerics.types import DType, from_bytes, to_bytes
from protocol.program import (
    Builder,
    EncodingError,
    Instruction,
    Program,
    ProgramError,
    TensorType,
    Trace,
    Value,
    check,
    trace,
)
from protocol.program.program import decode_closure
from tests.vectors import program_cases

FILE = Path(__file__).with_name("programs.json")
PLACE = ("program", "number")
F32, U8, I32, U32, I64, BOOL = DType.F32, DType.U8, DType.I32, DType.U32, DType.I64, DType.BOOL


def row_sum() -> Program:
    """A program that computes two values for each row of its input, f32 [3, 4]: the row's sum, f32 [3, 1],
    which is added up in fixed point, and the place of the row's maximum, i32 [3, 1].
    """
    b = Builder("row_sum")
    x = b.input(TensorType(F32, (3, 4)))
    e = b.exponent(x)
    b.output(b.round_scaled(b.sum(b.to_fixed(x, e)), e, p=30))
    b.output(b.argmax(x))
    return b.build()


def every(callee: Program) -> Program:
    """A program that calls `callee`. Together with `row_sum`, it has at least one instruction of every
    opcode. Its outputs are the values that nothing else reads.
    """
    b = Builder("every")
    x = b.input(TensorType(F32, (3, 4)))
    y = b.input(TensorType(F32, (4,)))
    key = b.input(TensorType(U32, (2,)))
    flag = b.input(TensorType(BOOL, ()))
    table = b.input(TensorType(U8, (5, 2)))
    words = b.philox(key, b.constant(U32, (1,), 9), 2, (300,))
    for value in (*_floats(b, x, y), *_integers(b, words, table), *_rows(b, x)):
        b.output(value)
    total, place = b.call(callee, b.select(flag, x, b.neg(x)))
    b.output(b.div(total, b.constant(F32, (), 4.0)))
    b.output(b.gather(table, place))
    return b.build()


def _floats(b: Builder, x: Value, y: Value) -> Iterable[Value]:
    steps = b.sqrt(b.abs(b.sub(b.add(x, y), b.mul(x, y))))
    yield b.scale(b.minimum(b.floor(steps), b.rint(b.maximum(steps, y))), b.i32(-3))
    yield b.and_(b.lt(x, y), b.or_(b.le(y, x), b.eq(x, x)))
    yield b.pad(b.concat([x, b.flip(x, 1)], 0), (6, 5), (0, 1), float("-inf"))


def _integers(b: Builder, words: Value, table: Value) -> Iterable[Value]:
    yield b.xor(b.mulhi(words, b.constant(U32, (), 1000)), b.shl(words, b.constant(U32, (), 5)))
    yield b.bits(b.shr(words, b.constant(U32, (), 9)))
    wide = b.cast(table, I64)
    yield b.prefix_sum(wide)
    yield b.scatter_sum(b.constant(I32, (2,), 1), wide, rows=3)


def _rows(b: Builder, x: Value) -> Iterable[Value]:
    e = b.exponent(x)
    m = b.quantise(x, e, 13)
    yield b.round_scaled(b.dot(m, m), e, b.transpose(e, 0, 1), p=26)
    yield b.max(b.pad_rows(b.slice(x, 1, 0, 3), float("-inf")))


def inputs_of(program: Program, stream: int) -> list[Tensor]:
    """Inputs for a program. Their bytes are Philox words, but the magnitudes of floats are from 2^-7 to below
    2, so that all floats count in sums.
    """
    key = torch.tensor([0x41737361, 0x79000001], dtype=torch.int32)
    inputs = []
    for k, type_ in enumerate(program.inputs):
        count = -(-type_.nbytes // 4)
        words = philox(key, torch.tensor([k], dtype=torch.int32), stream, (count,))
        if type_.dtype is F32:
            words = (words & ~0x7C000000) | 0x3C000000
        inputs.append(from_bytes(to_bytes(words, U32)[: type_.nbytes], type_.dtype, type_.shape))
    return inputs


def refused(good: bytes) -> list[tuple[str, bytes]]:
    """Variations of a good instruction that do not decode, each with the reason."""
    cases = [
        ("cut inside the operands", good[:12]),
        ("cut inside the results", good[: len(good) - 1]),
        ("opcode 0", b"\x00\x00" + good[2:]),
        ("no opcode, behind call", b"\x00\x05" + good[2:]),
        ("no opcode, behind prefix_sum", b"\x08\x02" + good[2:]),
        ("more operands than bytes", good[:6] + b"\xff" + good[7:]),
        ("type code 6", good[:11] + b"\x06" + good[12:]),
        ("rank 9", good[:12] + b"\x09" + good[13:]),
        ("dimension 0", good[:13] + bytes(4) + good[17:]),
        ("dimension 2^31", good[:13] + b"\x80\x00\x00\x00" + good[17:]),
        ("more than 2^40 bytes", good[:13] + b"\x7f\xff\xff\xff" + b"\x00\x00\x04\x00" + good[21:]),
        ("longer than 4,096 bytes", good + bytes(4096)),
        ("nothing", b""),
    ]
    for why, data in cases:
        try:
            Instruction.decode(data)
        except EncodingError:
            continue
        raise AssertionError(f"{why} decodes")
    return cases


def build() -> dict[str, Any]:
    """The whole file as JSON values."""
    callee = row_sum()
    programs = [callee, every(callee)]
    top = trace(programs[1], inputs_of(programs[1], 1))
    number = next(programs[1].calls())
    runs = [trace(callee, inputs_of(callee, 0)), top, top.callee(number)]
    unary = next(i for i in callee.instructions if i.op.label == "exponent")
    return {
        "instructions": _columns(
            [
                "program",
                "number",
                "opcode",
                "first",
                "operand_leaves",
                "operand_types",
                "result_types",
                "attributes",
                "data",
                "path",
            ],
            [row for k, program in enumerate(programs) for row in _instruction_rows(k, program)],
        ),
        "refused_instructions": _columns(["why", "data"], refused(unary.encode())),
        "programs": _columns(
            ["name", "data", "instructions", "trace_leaves", "instruction_root", "signature", "id"],
            [_program_row(program) for program in programs],
        ),
        "accepted_programs": _columns(["why", "closure"], _closures(program_cases.accepted(), accepted=True)),
        "refused_programs": _columns(["why", "closure"], _closures(program_cases.refused(), accepted=False)),
        "runs": _columns(
            ["program", "inputs", "outputs", "value_roots", "trace_root"],
            [_run_row(programs, run) for run in runs],
        ),
        "values": _columns(
            ["run", "leaf", "type", "data", "chunks", "root", "path"],
            [row for k, run in enumerate(runs) for row in _value_rows(k, run)],
        ),
    }


def _closures(cases: Iterable[tuple[str, list[bytes]]], accepted: bool) -> list[tuple[str, bytes]]:
    """A row for each closure: its description, and its programs, joined. Each program is preceded by its
    length in four bytes. If `accepted`, `check` must accept all closures; if not, it must refuse all. Raises
    AssertionError if `check` decides differently.
    """
    rows = []
    for why, closure in cases:
        if _passes(closure) is not accepted:
            raise AssertionError(f"expected that `check` {'accepts' if accepted else 'refuses'} {why}")
        rows.append((why, b"".join(len(data).to_bytes(4, "big") + data for data in closure)))
    return rows


def _passes(closure: Sequence[bytes]) -> bool:
    try:
        check(decode_closure(closure))
    except ProgramError:
        return False
    return True


def _instruction_rows(k: int, program: Program) -> Iterable[tuple[Any, ...]]:
    for number, i in enumerate(program.instructions):
        yield (
            k,
            number,
            int(i.op),
            i.first,
            b"".join(operand.leaf.to_bytes(4, "big") for operand in i.operands),
            b"".join(operand.type.encode() for operand in i.operands),
            b"".join(result.encode() for result in i.results),
            i.attributes,
            i.encode(),
            list(program.open_instruction(number).path),
        )


def _program_row(program: Program) -> tuple[Any, ...]:
    opening = program.opening
    counts = (opening.instructions, opening.trace_leaves)
    return (program.name, program.encode(), *counts, opening.root, opening.signature, program.id)


def _run_row(programs: Sequence[Program], run: Trace) -> tuple[Any, ...]:
    program = run.program
    inputs = [bytes(run.value(i.first)) for i in program.instructions if i.op.label == "input"]
    outputs = [bytes(run.value(program.output(k)[1].operands[0].leaf)) for k in range(len(program.outputs))]
    return (programs.index(program), b"".join(inputs), b"".join(outputs), list(run.roots), run.tree.root)


def _value_rows(k: int, run: Trace) -> Iterable[tuple[Any, ...]]:
    for leaf in range(run.program.trace_leaves):
        data = bytes(run.value(leaf))
        type_ = run.program.leaf_type(leaf).encode()
        yield k, leaf, type_, data, chunk_count(len(data)), run.root(leaf), run.tree.inclusion_path(leaf)


def _columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    return {name: [_json(entry) for entry in column] for name, column in zip(names, zip(*rows), strict=True)}


def _json(entry: Any) -> Any:
    if isinstance(entry, list):
        return "0x" + b"".join(entry).hex()
    return "0x" + entry.hex() if isinstance(entry, bytes) else entry


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(build(), indent=1) + "\n")


if __name__ == "__main__":
    main()
