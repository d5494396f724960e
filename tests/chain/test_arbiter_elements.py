"""Every primitive is computed in three ways: with torch, with Python integers, and by the arbiter's Solidity
on a real EVM.

The samples come from tests/unit/program; `ArbiterHarness` computes elements on the EVM in batches.
Single-chunk openings, refusals and gas are tested in contracts/test/.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from torch import Tensor

from protocol.numerics.types import to_bytes
from protocol.program.primitives import PRIMITIVES
from tests.chain.evm import Evm, all_chunks, evm
from tests.unit.program.samples import SAMPLES, Sample, loader

pytestmark = pytest.mark.chain

SEEDS = (11, 12)
MOST_ELEMENTS = 384  # per sample and seed
LEAST_IN_ALL = 20_000


@pytest.fixture(scope="module")
def chain() -> Iterator[Evm]:
    with evm() as running:
        yield running


def counted(sample: Sample) -> int:
    return min(sample.instruction.result.elements, MOST_ELEMENTS)


def canonical_bytes(sample: Sample, operands: list[Tensor]) -> list[bytes]:
    return [to_bytes(x, t.dtype) for x, t in zip(operands, sample.instruction.operand_types, strict=True)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_torch_integers_and_evm_agree(chain: Evm, sample: Sample, seed: int) -> None:
    instruction = sample.instruction
    primitive = PRIMITIVES[instruction.op]
    operands = sample.operands(seed)
    data = canonical_bytes(sample, operands)
    size = instruction.result.dtype.itemsize
    evaluated = to_bytes(primitive.evaluate(instruction, operands), instruction.result.dtype)
    torch_words = [int.from_bytes(evaluated[i : i + size], "little") for i in range(0, len(evaluated), size)]
    load, count = loader(instruction, data), counted(sample)
    evm_words = chain.elements(instruction, all_chunks(data), 0, count)
    assert evm_words == torch_words[:count]
    assert evm_words == [primitive.element(instruction, element, load) for element in range(count)]


def test_enough_elements_are_compared() -> None:
    assert len(SEEDS) * sum(map(counted, SAMPLES)) >= LEAST_IN_ALL
