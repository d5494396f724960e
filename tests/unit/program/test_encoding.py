"""The strict encoding of types, instructions and programs (encoding.md sections 1, 3, 4).

`tests/unit/vectors` checks that the package decodes, encodes and runs the programs of programs.json.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.numerics.types import DType
from protocol.program import (
    PRIMITIVES,
    EncodingError,
    Instruction,
    Op,
    Operand,
    Program,
    TensorType,
    decode_closure,
)
from tests.unit.program.samples import SAMPLES
from tests.vectors import generate_programs

VECTORS: dict[str, dict[str, list[Any]]] = json.loads(generate_programs.FILE.read_text())


PROGRAMS = decode_closure([bytes.fromhex(data[2:]) for data in VECTORS["programs"]["data"]]).closure()

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
    assert len(cut) >= len(whole) - len(instruction.attributes)  # a valid cut can only shorten the attributes


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
