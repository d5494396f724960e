"""Random and edge elements of every primitive, compared between plain integers, torch and the arbiter on an
EVM.

`make test` compares at least 300 elements of each primitive, `make test-heavy` 100,000. Each primitive has
its own test, so that a run can be resumed with `-k`. In tensors with many elements, some elements of torch's
result are compared with plain integers; the EVM does not compute these.
"""

from __future__ import annotations

from random import Random

import pytest
from torch import Tensor

from protocol.numerics.types import to_bytes
from protocol.program.execute import require_types
from protocol.program.instruction import Instruction
from protocol.program.opcodes import Op
from protocol.program.primitives import PRIMITIVES
from tests.chain.evm import Evm, all_chunks
from tests.fuzz.instructions import GENERATORS, LARGE, fill_many
from tests.unit.program.samples import Sample, loader

pytestmark = pytest.mark.chain

FEW = 300
VALUES, EACH = 60, 20
"""The number of large values for each primitive, and the number of random elements that are compared in each
value.
"""
MANY = 100_000
EVERY = pytest.mark.parametrize("op", sorted(GENERATORS), ids=lambda op: op.label)


def words(value: Tensor, instruction: Instruction) -> list[int]:
    """Elements of a value as unsigned bits."""
    size = instruction.result.dtype.itemsize
    data = to_bytes(value, instruction.result.dtype)
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


def compare(chain: Evm, sample: Sample, seed: int) -> int:
    """Compare every element of one instruction between plain integers, torch and the arbiter; returns the
    number of elements.
    """
    instruction = sample.instruction
    primitive = PRIMITIVES[instruction.op]
    operands = sample.operands(seed)
    data = [to_bytes(x, t.dtype) for x, t in zip(operands, instruction.operand_types, strict=True)]
    load = loader(instruction, data)
    count = instruction.result.elements
    reference = [primitive.element(instruction, element, load) for element in range(count)]
    assert words(primitive.evaluate(instruction, operands), instruction) == reference
    assert chain.elements(instruction, all_chunks(data), 0, count) == reference
    return count


def compare_many(chain: Evm, op: Op, least: int, run: str) -> None:
    """Compare at least `least` elements of random instructions of one primitive."""
    r = Random(f"{run} {op.label}")
    compared = 0
    while compared < least:
        sample = GENERATORS[op](r)
        assert sample.instruction.op is op
        compared += compare(chain, sample, r.getrandbits(32))


def test_every_primitive_is_generated() -> None:
    assert set(GENERATORS) == set(PRIMITIVES)


@EVERY
def test_some_elements_agree(chain: Evm, op: Op) -> None:
    compare_many(chain, op, FEW, "some")


@pytest.mark.parametrize("op", sorted(LARGE), ids=lambda op: op.label)
def test_some_elements_of_large_values_agree(op: Op) -> None:
    """In tensors with many elements, torch code takes other paths than in small ones. Some of these paths
    depend on the number that a single-element operand holds. Some elements of such results are compared with
    plain integers.
    """
    r = Random(f"large {op.label}")
    for _ in range(VALUES):
        sample = LARGE[op](r)
        instruction = sample.instruction
        types = instruction.operand_types
        operands = [fill_many(type_, how, r) for type_, how in zip(types, sample.fills, strict=True)]
        value = PRIMITIVES[op].evaluate(instruction, operands)
        require_types(instruction.results, [value], f"results of {op.label} of {types}")
        load = loader(instruction, [to_bytes(x, t.dtype) for x, t in zip(operands, types, strict=True)])
        found = words(value, instruction)
        for element in (0, len(found) - 1, *r.sample(range(len(found)), EACH)):
            assert found[element] == PRIMITIVES[op].element(instruction, element, load), (types, element)


@pytest.mark.heavy
@pytest.mark.timeout(1_200)
@EVERY
def test_100_000_elements_agree(chain: Evm, op: Op) -> None:
    compare_many(chain, op, MANY, "many")
