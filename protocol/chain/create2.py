"""Contracts at addresses known in advance: CREATE2 (EIP-1014) through the deterministic deployment proxy.

The proxy (github.com/Arachnid/deterministic-deployment-proxy) has the same address on every chain that has
it, including anvil. It creates whatever it is given. A new contract's address follows from the salt and the
creation code alone, so if somebody else creates it first, it is the same contract.
"""

from __future__ import annotations

from typing import Final

import rlp  # type: ignore[import-untyped]
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from protocol.chain.connection import Connection
from protocol.chain.errors import UnsuitableChain
from protocol.chain.fees import Call

PROXY: Final = "0x4e59b44847b379578588920cA78FbF26c0B4956C"
PROXY_CODE: Final = bytes.fromhex(
    "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378"
    "035828234f58015156039578182fd5b8082525050506014600cf3"
)
PROXY_SIGNER: Final = "0x3fAB184622Dc19b6109349B94811493BF45362e4"
"""Sender of the published transaction that creates the proxy. It needs 0.01 of the native currency for gas.
"""


def require_proxy(connection: Connection) -> None:
    """Raises UnsuitableChain if the proxy is not on the chain."""
    found = connection.code(PROXY)
    if found != PROXY_CODE:
        raise UnsuitableChain(
            "deterministic deployment proxy",
            expected=f"its {len(PROXY_CODE)} bytes of code at {PROXY}",
            got=f"{len(found)} bytes of other code" if found else "no code there",
            remedy=f"send 0.01 of the chain's currency to {PROXY_SIGNER} and broadcast the transaction published at "
            "github.com/Arachnid/deterministic-deployment-proxy",
        )


def address_of(salt: bytes, creation: bytes) -> str:
    """Checksummed address of the contract that the proxy creates from a 32-byte salt and creation code."""
    digest = keccak(b"\xff" + bytes.fromhex(PROXY[2:]) + salt + keccak(creation))
    return to_checksum_address(digest[12:])


def first_made_by(contract: str) -> str:
    """The checksummed address of the first contract that `contract` creates with CREATE (nonce 1, EIP-161)."""
    return to_checksum_address(keccak(rlp.encode([bytes.fromhex(contract[2:]), 1]))[12:])


def creation_call(salt: bytes, creation: bytes, label: str) -> Call:
    """The call that makes the proxy create a contract. It reverts if the address already has code."""
    return Call(PROXY, salt + creation, label)
