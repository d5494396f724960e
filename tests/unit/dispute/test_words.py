"""Words of a split (dispute.md section 5): the solver computes them on whole arrays, and gets the same words
as the definition, which is evaluated one element at a time.
"""

from __future__ import annotations

from functools import reduce
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from protocol.dispute.evidence import loader
from protocol.dispute.provider import Frame
from protocol.dispute.splitting import block_words, parts
from protocol.numerics.types import DType, to_bytes
from protocol.program import Builder, TensorType
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES, Reduction, reductions
from protocol.program.trace import trace
from tests.unit.program.samples import Sample, fill, sample

F32, I32, I64 = DType.F32, DType.I32, DType.I64
PIECE = 3
"""Blocks computed at once in these tests, so that a short row has several pieces."""
ONE_OPERAND = {"exponent": F32, "max": F32, "argmax": F32, "sum": I64, "prefix_sum": I64}
NUMBERS = ("bits", "finite", "ties")


def made(method: str, blocks: int, rows: int) -> Sample:
    """A sample that applies the reduction `method` to `rows` rows, each of `blocks` blocks."""
    if method == "dot":
        length = 256 * blocks
        types = [TensorType(I32, (rows, length)), TensorType(I32, (2, length))]
        return sample(method, types, lambda b, x, y: b.dot(x, y))
    length = 1024 // ONE_OPERAND.get(method, I64).itemsize * blocks
    if method == "scatter_sum":
        types = [TensorType(I32, (length,)), TensorType(I64, (rows, length))]
        return sample(method, types, lambda b, i, x: b.scatter_sum(i, x, 3), ("index", "bits"))
    type_ = TensorType(ONE_OPERAND[method], (rows, length))
    return sample(method, [type_], lambda b, x: getattr(b, method)(x))


def framed(instruction: Instruction, operands: list[Tensor]) -> Frame:
    """A frame whose values are these operands."""
    data = {
        operand.leaf: to_bytes(x, operand.type.dtype)
        for operand, x in zip(instruction.operands, operands, strict=True)
    }
    return cast(Frame, SimpleNamespace(value=data.__getitem__))


def defined(frame: Frame, instruction: Instruction, element: int, lo: int, hi: int) -> list[int]:
    """The words of the parts into which blocks [lo, hi) are split, computed by the definition."""
    primitive = PRIMITIVES[instruction.op]
    assert isinstance(primitive, Reduction)
    load = loader(frame, instruction)
    return [
        reduce(
            primitive.fold,
            [primitive.block_result(instruction, element, at, load) for at in range(start, end)],
        )
        for start, end in parts(lo, hi)
    ]


def test_every_reduction_is_compared() -> None:
    found = {op.label for op, primitive in PRIMITIVES.items() if isinstance(primitive, Reduction)}
    assert found == {*ONE_OPERAND, "dot", "scatter_sum"}


@pytest.mark.parametrize("method", [*ONE_OPERAND, "dot", "scatter_sum"])
@given(data=st.data())
def test_words_are_those_of_the_definition(method: str, data: st.DataObject) -> None:
    """This holds for NaN, infinities, subnormals, both zeros, ties and extreme integers, and for any part of
    a row.
    """
    blocks = data.draw(st.integers(2, 9), "blocks")
    one = made(method, blocks, data.draw(st.integers(1, 2), "rows"))
    instruction = one.instruction
    how = data.draw(st.sampled_from(NUMBERS), "values") if ONE_OPERAND.get(method) is F32 else "bits"
    fills = [how] if method in ONE_OPERAND else one.fills
    draw = Random(data.draw(st.integers(0, 2**32), "seed"))
    operands = [fill(type_, each, draw) for type_, each in zip(instruction.operand_types, fills, strict=True)]
    if ONE_OPERAND.get(method) is F32 and data.draw(st.booleans(), "one value nearly everywhere"):
        operands[0][:, 1:] = operands[0][:, :1]
        operands[0][:, draw.randrange(operands[0].shape[1])] = draw.choice((0.0, -0.0, torch.nan, -1e-45))
    element = data.draw(st.integers(0, instruction.result.elements - 1), "element")
    lo = data.draw(st.integers(0, blocks - 1), "lo")
    hi = data.draw(st.integers(lo + 1, blocks), "hi")
    frame = framed(instruction, operands)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reductions, "PIECE", PIECE)
        assert block_words(frame, instruction, element, lo, hi) == defined(
            frame, instruction, element, lo, hi
        )


@pytest.mark.parametrize("method", ["sum", "argmax", "prefix_sum"])
def test_parts_of_many_blocks_and_a_shorter_last_one(method: str) -> None:
    """300 blocks split into parts of 128, 128 and 44 blocks."""
    one = made(method, 301, 1)
    instruction = one.instruction
    frame = framed(instruction, one.operands(seed=4))
    for element in {0, instruction.result.elements // 2, instruction.result.elements - 1}:
        words = block_words(frame, instruction, element, 1, 301)
        assert len(words) == 3
        assert words == defined(frame, instruction, element, 1, 301)


READS: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((2, 512), (0, 0), 5),
    ((2, 512), (512, -1), 511),
    ((2, 512), (1, 2), 0),
]
"""Shape, strides and offset of three kinds of rows: one element repeated, reversed rows, and columns."""


@pytest.mark.parametrize(("shape", "strides", "offset"), READS)
@pytest.mark.parametrize("method", ["max", "argmax", "exponent"])
def test_words_of_rows_that_are_views(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int, method: str
) -> None:
    b = Builder("views")
    given = TensorType(F32, (1024,))
    value = getattr(b, method)(b.strided(b.input(given), shape, strides, offset))
    b.output(value)
    program = b.build()
    frame = trace(program, [fill(given, "finite", Random(method))])
    instruction = program.instructions[program.producer(value.leaf)]
    for element in range(2):
        words = block_words(frame, instruction, element, 0, 2)
        assert words == defined(frame, instruction, element, 0, 2)


def test_words_of_a_long_row_load_no_element_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a row of 2^24 elements are computed without loading elements one by one, which would be
    slow. Speed matters, because a submitter may play sixteen games at once, and in each of them select a
    result's element that is reduced from such a row.
    """
    length = 1 << 24
    type_ = TensorType(F32, (length,))
    instruction = sample("argmax", [type_], lambda b, x: b.argmax(x)).instruction
    row = torch.randn(length, generator=torch.Generator().manual_seed(1))
    frame = framed(instruction, [row])
    blocks = length // 256
    sampled = (0, 1, 777, blocks - 1)
    right = [defined(frame, instruction, 0, at, at + 1) for at in sampled]

    def refuse(*_: Any) -> int:
        raise AssertionError("an element was loaded by itself")

    monkeypatch.setattr(reductions, "load_value", refuse)
    words = block_words(frame, instruction, 0, 0, blocks)
    assert len(words) == 4
    fold = cast(Reduction, PRIMITIVES[Op.ARGMAX]).fold
    assert reduce(fold, words) & 0xFFFFFFFF == int(torch.argmax(row))
    assert [block_words(frame, instruction, 0, at, at + 1) for at in sampled] == right
