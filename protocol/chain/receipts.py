"""Receipts and logs as values: the outcome of a transaction, its cost and its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eth_utils.abi import collapse_if_tuple
from eth_utils.address import to_checksum_address

from protocol.chain.abi import Contract
from protocol.chain.values import decode_values


@dataclass(frozen=True, slots=True)
class Log:
    """One log entry, not decoded."""

    address: str
    topics: tuple[bytes, ...]
    data: bytes
    block: int
    block_hash: str
    transaction: str
    index: int

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Log:
        """Parse a log entry in a node's JSON."""
        return cls(
            to_checksum_address(fields["address"]),
            tuple(_bytes(topic) for topic in fields["topics"]),
            _bytes(fields["data"]),
            int(fields["blockNumber"], 16),
            fields["blockHash"],
            fields["transactionHash"],
            int(fields["logIndex"], 16),
        )


@dataclass(frozen=True, slots=True)
class Event:
    """A decoded log. `arguments` maps the arguments' names in Solidity to their values, as eth-abi decodes
    them, but with checksummed addresses.
    """

    contract: str
    name: str
    arguments: Mapping[str, Any]
    log: Log


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of a mined transaction. `contract` is the address of the contract that the transaction
    created, if any.
    """

    transaction: str
    label: str
    block: int
    block_hash: str
    success: bool
    gas_used: int
    contract: str | None
    logs: tuple[Log, ...]

    @classmethod
    def read(cls, fields: Mapping[str, Any], label: str) -> Receipt:
        """Parse a receipt in a node's JSON."""
        made = fields.get("contractAddress")
        return cls(
            fields["transactionHash"],
            label,
            int(fields["blockNumber"], 16),
            fields["blockHash"],
            int(fields["status"], 16) == 1,
            int(fields["gasUsed"], 16),
            None if made is None else to_checksum_address(made),
            tuple(Log.read(log) for log in fields["logs"]),
        )

    def events(self, contract: Contract, address: str) -> list[Event]:
        """The events of one contract in this transaction."""
        return decode_logs(self.logs, {address: contract})


def decode_logs(logs: Sequence[Log], contracts: Mapping[str, Contract]) -> list[Event]:
    """Decode the logs of known contracts. `contracts` maps addresses to contracts. Other contracts' logs and
    unknown events are left out.
    """
    events = []
    for log in logs:
        contract = contracts.get(log.address)
        entry = contract.events.get(log.topics[0]) if contract is not None and log.topics else None
        if contract is None or entry is None:
            continue
        topics = iter(log.topics[1:])
        plain = [item for item in entry["inputs"] if not item["indexed"]]
        values = iter(decode_values([collapse_if_tuple(dict(item)) for item in plain], log.data))
        arguments = {}
        for item in entry["inputs"]:
            kind = collapse_if_tuple(dict(item))
            value = decode_values([kind], next(topics))[0] if item["indexed"] else next(values)
            arguments[item["name"]] = to_checksum_address(value) if kind == "address" else value
        events.append(Event(contract.name, entry["name"], arguments, log))
    return events


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))
