"""Blocks: their fields, and how a call names a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

BlockId = int | str
"""A block number, a block hash (0x…), or a tag such as "latest" or "pending"."""


@dataclass(frozen=True, slots=True)
class Block:
    """The fields of a block that the client reads. `time` is in seconds since 1970, `base_fee` in wei."""

    number: int
    hash: str
    parent: str
    time: int
    base_fee: int
    gas_limit: int

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Block:
        """Parse a block in a node's JSON."""
        return cls(
            number_of(fields["number"]),
            fields["hash"],
            fields["parentHash"],
            number_of(fields["timestamp"]),
            number_of(fields.get("baseFeePerGas") or "0x0"),
            number_of(fields["gasLimit"]),
        )


def block_tag(block: BlockId) -> Any:
    """A block as a parameter of eth_call: a tag, a hexadecimal number, or EIP-1898's object for a hash."""
    if isinstance(block, int):
        return hex(block)
    return {"blockHash": block} if block.startswith("0x") else block


def is_one(block: BlockId) -> bool:
    """Whether `block` names one particular block, by a number or a hash, instead of by a tag. A lagging node
    may not have that block yet.
    """
    return isinstance(block, int) or block.startswith("0x")


def number_of(value: Any) -> int:
    """Parse a hexadecimal number in a node's JSON."""
    return int(str(value), 16)
