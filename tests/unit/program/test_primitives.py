"""Every primitive: torch, plain integers and the opened chunks of a proof agree (encoding.md section 3)."""

from __future__ import annotations

from functools import reduce

import pytest
import torch
from torch import Tensor

from protocol.numerics.types import DType, to_bytes
from protocol.program.builder import Builder
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES, Reduction, chunks_needed
from protocol.program.types import TensorType
from tests.unit.program.samples import SAMPLES, Sample, loader

EVERY = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
REDUCTIONS = [s for s in SAMPLES if isinstance(PRIMITIVES[s.instruction.op], Reduction)]
MAX_ELEMENTS = 400


def operand_bytes(instruction: Instruction, operands: list[Tensor]) -> list[bytes]:
    return [to_bytes(x, o.type.dtype) for x, o in zip(operands, instruction.operands, strict=True)]


def elements(sample: Sample) -> range:
    count = sample.instruction.result.elements
    return range(0, count, max(1, -(-count // MAX_ELEMENTS)))


def test_there_is_a_primitive_and_a_sample_for_every_opcode() -> None:
    alone = {Op.INPUT, Op.OUTPUT, Op.CALL}
    assert set(PRIMITIVES) | alone == set(Op)
    assert {sample.instruction.op for sample in SAMPLES} == set(PRIMITIVES)


@EVERY
def test_torch_agrees_with_plain_integers(sample: Sample) -> None:
    instruction = sample.instruction
    primitive = PRIMITIVES[instruction.op]
    operands = sample.operands(seed=1)
    value = primitive.evaluate(instruction, operands)
    assert tuple(value.shape) == instruction.result.shape
    data = to_bytes(value, instruction.result.dtype)
    size = instruction.result.dtype.itemsize
    load = loader(instruction, operand_bytes(instruction, operands))
    for element in elements(sample):
        got = int.from_bytes(data[element * size : (element + 1) * size], "little")
        assert got == primitive.element(instruction, element, load), f"element {element}"


@EVERY
def test_an_element_reads_only_the_chunks_that_a_proof_opens(sample: Sample) -> None:
    instruction = sample.instruction
    primitive = PRIMITIVES[instruction.op]
    inner = loader(instruction, operand_bytes(instruction, sample.operands(seed=2)))
    opened: set[tuple[int, int]] = set()

    def load(operand: int, element: int) -> int:
        chunk = instruction.operands[operand].type.chunk_of(element)
        assert (operand, chunk) in opened, f"operand {operand}, chunk {chunk} was not opened"
        return inner(operand, element)

    for element in list(elements(sample))[:50]:
        blocks = primitive.blocks(instruction) if isinstance(primitive, Reduction) else 1
        for block in range(blocks):
            needed = chunks_needed(instruction, element, block, inner)
            assert len(needed) <= 3
            opened = set(needed)
            if isinstance(primitive, Reduction):
                primitive.block_result(instruction, element, block, load)
            else:
                primitive.element(instruction, element, load)


@pytest.mark.parametrize("sample", REDUCTIONS, ids=lambda sample: sample.name)
def test_block_results_fold_to_the_element(sample: Sample) -> None:
    instruction = sample.instruction
    primitive = PRIMITIVES[instruction.op]
    assert isinstance(primitive, Reduction)
    operands = sample.operands(seed=3)
    row = instruction.operands[-1].type
    assert primitive.blocks(instruction) == max(1, row.shape[-1] * row.dtype.itemsize // 1024)
    data = to_bytes(primitive.evaluate(instruction, operands), instruction.result.dtype)
    size = instruction.result.dtype.itemsize
    load = loader(instruction, operand_bytes(instruction, operands))
    for element in range(instruction.result.elements):
        words = [
            primitive.block_result(instruction, element, block, load)
            for block in range(primitive.blocks(instruction))
        ]
        assert all(0 <= word < 2**64 for word in words)
        bits = primitive.finish(reduce(primitive.fold, words))
        assert bits == int.from_bytes(data[element * size : (element + 1) * size], "little")


def test_argmax_blocks_keep_the_index_in_the_whole_row_and_the_first_of_equal_zeros() -> None:
    sample = next(s for s in SAMPLES if s.name == "argmax 768 ties")
    primitive = PRIMITIVES[Op.ARGMAX]
    assert isinstance(primitive, Reduction)
    zero, minus_zero = 0, 0x80000000

    def load(_operand: int, element: int) -> int:
        return minus_zero if element == 300 else zero if element == 600 else 0xBF800000

    words = [primitive.block_result(sample.instruction, 0, block, load) for block in range(3)]
    assert words == [0xBF800000 << 32, minus_zero << 32 | 300, zero << 32 | 600]
    assert primitive.finish(reduce(primitive.fold, words)) == 300


def test_select_opens_only_the_branch_that_is_taken() -> None:
    sample = next(s for s in SAMPLES if s.name == "select F32")
    assert chunks_needed(sample.instruction, 0, 0, lambda *_: 1) == [(0, 0), (1, 0)]
    assert chunks_needed(sample.instruction, 0, 0, lambda *_: 0) == [(0, 0), (2, 0)]


@pytest.mark.parametrize("dtype", DType)
@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((), (), 17),
        ((1,), (2**40,), 3),
        ((4, 3), (-7, 1), 40),
        ((2, 1, 5), (0, -(2**40), 9), 2),
        ((3, 2, 2), (1, 1, 0), 5),
        ((96,), (-1,), 95),
        ((8, 12), (1, 8), 0),
    ],
)
def test_strided_of_a_view_has_the_elements_of_its_copy(
    dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> None:
    """Small results are picked out of the view. Larger results are views of a copy."""
    base = torch.arange(96).remainder(2 if dtype is DType.BOOL else 127).to(dtype.storage)
    layouts = [base.view(8, 12).t(), base.view(4, 6, 4).permute(2, 0, 1), base[5].expand(12, 8)]
    for operand in layouts:
        b = Builder("strided")
        b.output(b.strided(b.input(TensorType(dtype, tuple(operand.shape))), shape, strides, offset))
        instruction = b.build().instructions[1]
        due = PRIMITIVES[Op.STRIDED].evaluate(instruction, [operand.contiguous()])
        found = PRIMITIVES[Op.STRIDED].evaluate(instruction, [operand])
        assert found.dtype is due.dtype
        assert torch.equal(found, due)
