"""The arbiter's Solidity on a real EVM, called through a harness that computes many elements per call
(`ArbiterHarness`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from protocol.chain.abi import Contract
from protocol.chain.connection import Connection
from protocol.chain.devnet import Devnet
from protocol.program.instruction import Instruction
from protocol.program.types import CHUNK_BYTES

HARNESS = (
    Path(__file__).parents[2] / "build" / "contracts" / "out" / "ArbiterHarness.sol" / "ArbiterHarness.json"
)
ADDRESS = "0x" + "a5" * 20
GAS_LIMIT = 2**40
"""Gas limit of a block, which is also the limit of a call; no batch comes near it."""

Chunk = tuple[int, int, bytes]
"""Operand, chunk index, bytes."""


class Evm:
    """The harness on a development chain."""

    def __init__(self, connection: Connection, harness: Contract) -> None:
        self._connection = connection
        self._harness = harness

    def elements(
        self, instruction: Instruction, chunks: Sequence[Chunk], first: int, count: int
    ) -> list[int]:
        """The words of `count` elements, starting with element `first`. Long rows are split, folded and
        finished as in a game.
        """
        return list(self._call("elements", instruction.encode(), first, count, list(chunks)))

    def block_result(
        self, instruction: Instruction, element: int, block: int, chunks: Sequence[Chunk]
    ) -> int:
        """The word of one block of a reduction's element, computed from these chunks alone."""
        return int(self._call("blockResult", instruction.encode(), element, block, list(chunks)))

    def element(self, instruction: Instruction, element: int, chunks: Sequence[Chunk]) -> int:
        """The word of one element, computed from these chunks alone."""
        return int(self._call("element", instruction.encode(), element, list(chunks)))

    def _call(self, function: str, *arguments: Any) -> Any:
        return self._connection.call(self._harness, ADDRESS, function, *arguments)[0]


@contextmanager
def evm() -> Iterator[Evm]:
    """Yields the harness on its own anvil."""
    compiled = json.loads(HARNESS.read_bytes())
    code = bytes.fromhex(compiled["bytecode"]["object"].removeprefix("0x"))
    harness = Contract("ArbiterHarness", compiled["abi"], code)
    with Devnet(block_time=None) as devnet:
        runtime = devnet.connection.call_data(None, harness.creation(()), label="create")
        devnet.connection.request("anvil_setCode", ADDRESS, "0x" + runtime.hex())
        devnet.connection.request("evm_setBlockGasLimit", hex(GAS_LIMIT))
        devnet.mine()
        yield Evm(devnet.connection, harness)


def all_chunks(data: Sequence[bytes]) -> list[Chunk]:
    """All chunks of the operands' canonical bytes."""
    return [
        (operand, start // CHUNK_BYTES, piece[start : start + CHUNK_BYTES])
        for operand, piece in enumerate(data)
        for start in range(0, len(piece), CHUNK_BYTES)
    ]
