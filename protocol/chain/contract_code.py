"""Comparing the code at an address with a contract of this package, ignoring immutables."""

from __future__ import annotations

from protocol.chain.abi import Contract, contract
from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.connection import Connection


def code_difference(connection: Connection, made: Contract, address: str) -> str | None:
    """How the code at an address differs from a contract's code, in words; None if it does not differ.
    Immutables are ignored.
    """
    found = connection.code(address)
    if not found:
        return f"no contract at {address}"
    if len(found) != len(made.runtime):
        return f"{len(found)} bytes of code at {address}, the package's {made.name} has {len(made.runtime)}"
    if (bare := without_immutables(made, found)) != made.runtime:
        first = next(i for i, (a, b) in enumerate(zip(bare, made.runtime, strict=True)) if a != b)
        return f"code at {address} differs from the package's {made.name} from byte {first} on"
    return None


def without_immutables(made: Contract, code: bytes) -> bytes:
    """Runtime code as the compiler outputs it, that is, with zeros in place of the immutables that the
    constructor wrote.
    """
    bare = bytearray(code)
    for places in made.immutables:
        for start, length in places:
            bare[start : start + length] = bytes(length)
    return bytes(bare)


def is_test_token_for_real(connection: Connection, token: str) -> bool:
    """Whether anyone can mint the token, because it is the test token, although the chain has real money."""
    return (
        connection.chain_id != DEVELOPMENT_CHAIN
        and code_difference(connection, contract("TestToken"), token) is None
    )
