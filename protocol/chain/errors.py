"""Errors of the chain package. Each message says what was expected, what came and what to do.

ChainError
├── RpcError
│   ├── RpcUnavailable       nobody answers at the URL
│   └── RpcRefused           the node answered with an error of its own
├── WrongChain               another chain id than the deployment's
├── UnsuitableChain          the chain lacks something that the contracts need
├── DeploymentError          no, an unreadable or a stale deployment file
├── ArtifactMissing          a contract was not compiled
├── AccountError             no such account, wrong password, a development key on a real chain
│   └── AccountInUse         another process sends from this account
├── TransactionError
│   ├── InsufficientFunds    the account cannot pay for the gas
│   ├── Reverted             a contract refused; `name` and `arguments` of its error
│   ├── NotMined             no receipt in time; the transaction stays in the journal
│   └── NonceTaken           another transaction used the nonce
├── JournalError             the journal file is damaged or of another version
├── HeaderError              a block header that does not hash to its block's hash
├── UnstableChain            re-organisations faster than they can be read
└── DevnetError
    ├── AnvilMissing         no anvil program
    └── PortInUse            another server listens there
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protocol.node.addresses import public_part


class ChainError(Exception):
    """Base of every error raised by `protocol.chain`. `expected`, `got` and `remedy` are for display."""

    def __init__(self, what: str, *, expected: object, got: object, remedy: str) -> None:
        super().__init__(f"{what}: expected {expected}, got {got}; {remedy}")
        self.expected = expected
        self.got = got
        self.remedy = remedy


class RpcError(ChainError):
    """The node could not be asked, or did not answer the question."""


class RpcUnavailable(RpcError):
    """Nobody answers at the URL, or not in time."""

    def __init__(self, url: str, cause: Exception) -> None:
        super().__init__(
            "RPC",
            expected=f"an Ethereum node at {public_part(url)}",
            got=f"{type(cause).__name__}",
            remedy="start the node (`assay devnet`) or name its URL",
        )


class RpcRefused(RpcError):
    """The node answered with an error that is not a contract's."""

    def __init__(self, what: str, message: str, remedy: str = "look into the node's log") -> None:
        super().__init__(what, expected="an answer", got=message, remedy=remedy)
        self.message = message


class WrongChain(ChainError):
    """The node serves another chain than the one asked for."""

    def __init__(self, url: str, expected: int, got: int) -> None:
        super().__init__(
            f"chain id at {public_part(url)}",
            expected=expected,
            got=got,
            remedy="name the URL of a node of the right chain",
        )


class UnsuitableChain(ChainError):
    """The chain lacks a property that the contracts rely on (dispute.md section 1)."""


class DeploymentError(ChainError):
    """A deployment file that is missing, malformed or about contracts that are not there."""


class ArtifactMissing(ChainError):
    """A compiled contract is not where the build leaves it."""


class AccountError(ChainError):
    """An account that cannot be opened."""


class AccountInUse(AccountError):
    """Another process holds the account's lock."""


class TransactionError(ChainError):
    """A transaction that was not sent, or did not do what it was sent for."""


class InsufficientFunds(TransactionError):
    """The account's balance does not cover the transaction. Amounts in wei."""

    def __init__(self, address: str, needed: int, available: int) -> None:
        super().__init__(
            f"balance of {address}",
            expected=f"at least {needed} wei for gas and value",
            got=f"{available} wei",
            remedy="send native currency to this account",
        )
        self.needed = needed
        self.available = available


class Reverted(TransactionError):
    """A contract refused a call. `name` and `arguments` are those of its Solidity error; `gas_used` is 0 if
    it was not mined.
    """

    def __init__(self, label: str, name: str, arguments: Mapping[str, Any], gas_used: int = 0) -> None:
        self.label = label
        self.name = name
        self.arguments = dict(arguments)
        self.gas_used = gas_used
        shown = ", ".join(f"{key}={_show(value)}" for key, value in self.arguments.items())
        super().__init__(
            label,
            expected="the contract to accept it",
            got=f"{name}({shown})",
            remedy="see this error in the contract's interface"
            if not gas_used
            else f"it was mined and cost {gas_used} gas",
        )


class NotMined(TransactionError):
    """No receipt within the time allowed. The journal keeps the transaction; sending the same intent again
    looks it up.
    """


class NonceTaken(TransactionError):
    """The account's nonce was used by a transaction that this journal does not know."""


class JournalError(ChainError):
    """The journal of sent transactions cannot be used."""


class HeaderError(ChainError):
    """The fields that the node serves do not make the block's header."""


class UnstableChain(ChainError):
    """Block hashes keep changing while they are read."""


class DevnetError(ChainError):
    """The development chain could not be started."""


class AnvilMissing(DevnetError):
    """The anvil program is not there."""


class PortInUse(DevnetError):
    """Another server listens on the port."""


def _show(value: Any) -> str:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_show, value)) + "]"
    return str(value)
