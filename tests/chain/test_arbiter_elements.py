"""Every primitive three ways: torch, plain Python integers, and the arbiter's Solidity on a real EVM.

The samples are those of tests/unit/program; elements go through the EVM in batches by `ArbiterHarness`.
Single-chunk openings, refusals and gas are tested in contracts/test/.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from torch import Tensor

from protocol.chain.abi import Contract, contract
from protocol.chain.connection import Connection
from protocol.chain.devnet import Devnet
from protocol.numerics.types import to_bytes
from protocol.program.instruction import Instruction
from protocol.program.primitives import PRIMITIVES
from protocol.program.primitives.base import Load
from protocol.program.types import CHUNK_BYTES
from tests.unit.program.samples import SAMPLES, Sample

pytestmark = pytest.mark.chain

ADDRESS = "0x" + "a5" * 20
SEEDS = (11, 12)
BATCH = 128  # at most 100k gas an element: within a block's gas limit, which also bounds a call
MOST_ELEMENTS = 384  # of one sample and seed
LEAST_IN_ALL = 20_000

Chunk = tuple[int, int, bytes]


@dataclass(frozen=True)
class Evm:
    """The harness on a development chain."""

    connection: Connection
    harness: Contract

    def elements(self, instruction: Instruction, chunks: list[Chunk], first: int, count: int) -> list[int]:
        """Words of consecutive elements; a long row is split, folded and finished as in a game."""
        data = instruction.encode()
        blocks = self._call("blocks", data)
        if blocks == 1:
            return list(self._call("elements", data, first, count, chunks))
        return [self._split(instruction, data, chunks, first + k) for k in range(count)]

    def _split(self, instruction: Instruction, data: bytes, chunks: list[Chunk], element: int) -> int:
        words = self._call("blockResults", data, element, chunks)
        folded = self._call("fold", int(instruction.op), words)
        return int(self._call("finish", int(instruction.op), folded))

    def _call(self, function: str, *arguments: Any) -> Any:
        return self.connection.call(self.harness, ADDRESS, function, *arguments)[0]


@pytest.fixture(scope="module")
def evm() -> Iterator[Evm]:
    harness = contract("ArbiterHarness")
    with Devnet(block_time=None) as devnet:
        runtime = devnet.connection.call_data(None, harness.creation(()), label="create")
        devnet.connection.request("anvil_setCode", ADDRESS, "0x" + runtime.hex())
        yield Evm(devnet.connection, harness)


def counted(sample: Sample) -> int:
    return min(sample.instruction.result.elements, MOST_ELEMENTS)


def canonical_bytes(sample: Sample, operands: list[Tensor]) -> list[bytes]:
    return [to_bytes(x, t.dtype) for x, t in zip(operands, sample.instruction.operand_types, strict=True)]


def all_chunks(data: list[bytes]) -> list[Chunk]:
    return [
        (operand, start // CHUNK_BYTES, piece[start : start + CHUNK_BYTES])
        for operand, piece in enumerate(data)
        for start in range(0, len(piece), CHUNK_BYTES)
    ]


def loader(instruction: Instruction, data: list[bytes]) -> Load:
    def load(operand: int, element: int) -> int:
        size = instruction.operands[operand].type.dtype.itemsize
        return int.from_bytes(data[operand][element * size : (element + 1) * size], "little")

    return load


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_torch_integers_and_evm_agree(evm: Evm, sample: Sample, seed: int) -> None:
    instruction = sample.instruction
    primitive = PRIMITIVES[instruction.op]
    operands = sample.operands(seed)
    data = canonical_bytes(sample, operands)
    size = instruction.result.dtype.itemsize
    evaluated = to_bytes(primitive.evaluate(instruction, operands), instruction.result.dtype)
    torch_words = [int.from_bytes(evaluated[i : i + size], "little") for i in range(0, len(evaluated), size)]
    load, chunks = loader(instruction, data), all_chunks(data)
    for first in range(0, counted(sample), BATCH):
        count = min(BATCH, counted(sample) - first)
        evm_words = evm.elements(instruction, chunks, first, count)
        assert evm_words == torch_words[first : first + count]
        assert evm_words == [primitive.element(instruction, first + k, load) for k in range(count)]


def test_enough_elements_are_compared() -> None:
    assert len(SEEDS) * sum(map(counted, SAMPLES)) >= LEAST_IN_ALL
