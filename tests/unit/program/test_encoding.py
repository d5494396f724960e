"""The bytes of types, instructions and programs: strict, and those of programs.json (encoding.md sections 1, 3, 4)."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.commitments import tensor_root, verify_inclusion
from protocol.numerics.types import DType, from_bytes
from protocol.program import (
    PRIMITIVES,
    EncodingError,
    Instruction,
    Op,
    Operand,
    Program,
    TensorType,
    check,
    decode_closure,
    trace,
)
from tests.unit.program.samples import SAMPLES
from tests.vectors import generate_programs

VECTORS: dict[str, dict[str, list[Any]]] = json.loads(generate_programs.FILE.read_text())


def rows(section: str) -> list[dict[str, Any]]:
    """The rows of a section; hex strings as bytes."""
    table = VECTORS[section]
    return [
        {name: raw(entry) for name, entry in zip(table, row, strict=True)}
        for row in zip(*table.values(), strict=True)
    ]


def raw(entry: Any) -> Any:
    return bytes.fromhex(entry[2:]) if isinstance(entry, str) and entry.startswith("0x") else entry


def hashes(joined: bytes) -> list[bytes]:
    return [joined[at : at + 32] for at in range(0, len(joined), 32)]


PROGRAMS = decode_closure([row["data"] for row in rows("programs")]).closure()

types = st.builds(
    TensorType, st.sampled_from(list(DType)), st.lists(st.integers(1, 9), max_size=8).map(tuple)
)
u32s = st.integers(0, 2**32 - 1)
instructions = st.builds(
    Instruction,
    st.sampled_from(list(Op)),
    u32s,
    st.lists(st.builds(Operand, u32s, types), max_size=5).map(tuple),
    st.lists(types, max_size=3).map(tuple),
    st.binary(max_size=40),
)


def test_the_file_is_what_the_generator_writes() -> None:
    assert json.loads(json.dumps(generate_programs.build())) == VECTORS


def test_the_vectors_have_every_opcode() -> None:
    assert set(VECTORS["instructions"]["opcode"]) == set(map(int, Op))


@pytest.mark.parametrize("row", rows("instructions"), ids=lambda row: f"{row['program']}-{row['number']}")
def test_instruction_vectors_decode_encode_and_are_included(row: dict[str, Any]) -> None:
    instruction = Instruction.decode(row["data"])
    assert instruction.encode() == row["data"]
    assert (instruction.op, instruction.first) == (row["opcode"], row["first"])
    assert b"".join(o.leaf.to_bytes(4, "big") for o in instruction.operands) == row["operand_leaves"]
    assert b"".join(o.type.encode() for o in instruction.operands) == row["operand_types"]
    assert b"".join(r.encode() for r in instruction.results) == row["result_types"]
    assert instruction.attributes == row["attributes"]
    program = rows("programs")[row["program"]]
    size, root = program["instructions"], program["instruction_root"]
    verify_inclusion(root, size, row["number"], row["data"], hashes(row["path"]))


@pytest.mark.parametrize("row", rows("refused_instructions"), ids=lambda row: row["why"])
def test_refused_instruction_vectors(row: dict[str, Any]) -> None:
    with pytest.raises(EncodingError):
        Instruction.decode(row["data"])


@pytest.mark.parametrize("k", range(len(PROGRAMS)))
def test_program_vectors(k: int) -> None:
    row, program = rows("programs")[k], PROGRAMS[k]
    assert program.encode() == row["data"]
    assert program.opening.root == row["instruction_root"]
    assert program.signature == row["signature"]
    assert (len(program.instructions), program.trace_leaves) == (row["instructions"], row["trace_leaves"])
    assert program.id == row["id"]
    counts = row["instructions"].to_bytes(4, "big") + row["trace_leaves"].to_bytes(4, "big")
    assert sha256(b"\x02" + row["instruction_root"] + counts + row["signature"]).digest() == row["id"]
    check(program)


def test_run_vectors() -> None:
    values = rows("values")
    for k, row in enumerate(rows("runs")):
        program = PROGRAMS[row["program"]]
        inputs, at = [], 0
        for type_ in program.inputs:
            inputs.append(from_bytes(row["inputs"][at : at + type_.nbytes], type_.dtype, type_.shape))
            at += type_.nbytes
        run = trace(program, inputs)
        assert run.tree.root == row["trace_root"]
        assert b"".join(run.roots) == row["value_roots"]
        for value in (v for v in values if v["run"] == k):
            assert run.value(value["leaf"]) == value["data"]
            assert tensor_root(value["data"]) == value["root"] == run.root(value["leaf"])
            assert program.leaf_type(value["leaf"]).encode() == value["type"]
            path = hashes(value["path"])
            verify_inclusion(row["trace_root"], program.trace_leaves, value["leaf"], value["root"], path)


@given(types)
def test_types_come_back(type_: TensorType) -> None:
    assert TensorType.decode(type_.encode()) == type_


@given(instructions)
def test_instructions_come_back(instruction: Instruction) -> None:
    assert Instruction.decode(instruction.encode()) == instruction


@given(instructions, st.data())
def test_a_cut_instruction_is_refused_or_is_another_one(
    instruction: Instruction, data: st.DataObject
) -> None:
    whole = instruction.encode()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        found = Instruction.decode(cut)
    except EncodingError:
        return
    assert found.encode() == cut
    assert len(cut) >= len(whole) - len(instruction.attributes)  # only attributes run to the end


@given(st.binary(max_size=80))
def test_any_bytes_are_refused_or_come_back(data: bytes) -> None:
    for kind in (TensorType, Instruction, Program):
        try:
            found = kind.decode(data)
        except EncodingError:
            continue
        assert found.encode() == data


@pytest.mark.parametrize("cut", [1, 3, 40])
def test_a_program_with_missing_or_trailing_bytes_is_refused(cut: int) -> None:
    data = PROGRAMS[1].encode()
    with pytest.raises(EncodingError):
        Program.decode(data[:-cut])
    with pytest.raises(EncodingError):
        Program.decode(data + bytes(cut))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_attributes_of_any_other_length_are_refused(sample: Any) -> None:
    i = sample.instruction
    infer = PRIMITIVES[i.op].infer
    assert infer(i.operand_types, i.attributes, i.result) == i.result
    for wrong in (i.attributes + b"\x00", i.attributes[:-1]):
        if wrong != i.attributes:
            with pytest.raises(EncodingError):
                infer(i.operand_types, wrong, i.result)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((1,) * 9, DType.U8), ((0,), DType.U8), ((2**31,), DType.U8), ((2**20, 2**20), DType.U8 + 1)],
)
def test_types_beyond_the_limits_are_refused(shape: tuple[int, ...], dtype: int) -> None:
    with pytest.raises(EncodingError):
        TensorType(DType(dtype), shape)


@pytest.mark.parametrize(("elements", "chunks"), [(1, 1), (256, 1), (257, 2), (512, 2), (513, 3)])
def test_chunks_of_a_type(elements: int, chunks: int) -> None:
    type_ = TensorType(DType.F32, (elements,))
    assert type_.chunks == chunks
    assert type_.chunk_of(elements - 1) == chunks - 1
