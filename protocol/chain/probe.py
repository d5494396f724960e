"""Asks a chain whether it has the precompiles that the contracts need (dispute.md section 1)."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from protocol.chain.connection import Connection
from protocol.chain.errors import UnsuitableChain

SHA256_PRECOMPILE: Final = "0x" + "02".rjust(40, "0")
PAIRING_PRECOMPILE: Final = "0x" + "08".rjust(40, "0")
"""EIP-197. A chain that has it also has the additions and multiplications of EIP-196."""


def probe(connection: Connection) -> None:
    """Raises UnsuitableChain for the first property that the chain lacks."""
    due = {
        ("SHA-256 precompile", SHA256_PRECOMPILE, b"abc"): sha256(b"abc").digest(),
        ("pairing precompile of BN254", PAIRING_PRECOMPILE, b""): (1).to_bytes(32, "big"),
    }
    for (what, address, data), answer in due.items():
        found = connection.call_data(address, data, label=what)
        if found != answer:
            raise UnsuitableChain(
                what,
                expected=answer.hex(),
                got=found.hex() or "nothing",
                remedy="deploy to a chain with Ethereum's Cancun rules",
            )
