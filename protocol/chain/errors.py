"""Errors of the chain package. The docstring of `protocol.errors` shows the tree of all errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from protocol.chain.refusals import remedy, said
from protocol.errors import AssayError, ExitCode
from protocol.node.addresses import public_part
from protocol.node.words import amount, coin


class ChainError(AssayError):
    """Base of this package's errors, except `parameters.ParametersError` and the internal ones of
    `transport`.
    """


class RpcError(ChainError):
    """The node could not be asked, or did not answer the question."""

    exit_code = ExitCode.RETRY


class RpcUnavailable(RpcError):
    """No node answers at the URL in time."""

    def __init__(self, url: str, cause: Exception) -> None:
        super().__init__(
            "RPC",
            expected=f"an Ethereum node at {public_part(url)}",
            got=f"{type(cause).__name__}",
            remedy="start the node (`assay devnet`) or name its URL",
        )


class RpcRefused(RpcError):
    """The node answered with nothing, with something unusable, or with an error that no contract raised."""

    def __init__(self, what: str, message: str, remedy: str = "look into the node's log") -> None:
        super().__init__(what, expected="an answer", got=message, remedy=remedy)
        self.message = message


class WrongChain(ChainError):
    """The node serves a chain other than the expected one, from the start or since a reconnection."""

    def __init__(self, url: str, expected: object, got: object) -> None:
        super().__init__(
            f"chain id at {public_part(url)}",
            expected=expected,
            got=got,
            remedy="name the URL of a node of the right chain",
        )


class ChainReset(WrongChain):
    """The chain at the node's URL was reset: it has the same id but another first block."""

    def __init__(self, url: str, expected: str, got: str) -> None:
        ChainError.__init__(
            self,
            f"chain at {public_part(url)}",
            expected=f"the one that this process began with, genesis {expected}",
            got=f"another one of the same id, genesis {got}: it was reset",
            remedy="bring the first one back, or stop this process, deploy the contracts (`assay deploy`) and start it "
            "again",
        )


class ChainTableError(ChainError):
    """A table of chains that does not have the form of chains.toml."""


class UnsuitableChain(ChainError):
    """The chain lacks a property that the contracts rely on (dispute.md section 1)."""


class DeploymentError(ChainError):
    """A deployment that is refused, or a deployment file that is missing, malformed or of another chain."""


class ArtifactMissing(ChainError):
    """A compiled contract is not where the build puts it."""


class AccountError(ChainError):
    """An account that cannot be opened or used."""


class NoTerminal(AccountError):
    """A prompt is needed, and there is no terminal."""


class AccountInUse(AccountError):
    """Another process holds the account's lock."""

    exit_code = ExitCode.RETRY


class TransactionError(ChainError):
    """A transaction that was not sent, or did not have its effect."""


class InsufficientFunds(TransactionError):
    """The account's balance does not cover the transaction. Amounts in wei."""

    def __init__(self, address: str, needed: int, available: int) -> None:
        super().__init__(
            f"balance of {address}",
            expected=f"at least {coin(needed)} for gas and value",
            got=amount(available, at_most=True),
            remedy="send some to this account, on a development chain by `assay fund`",
        )
        self.needed = needed
        self.available = available


class Reverted(TransactionError):
    """A contract refused a call. `name` and `arguments` are those of its Solidity error; `gas_used` is 0 if
    the call was not mined.
    """

    def __init__(self, label: str, name: str, arguments: Mapping[str, Any], gas_used: int = 0) -> None:
        self.label = label
        self.name = name
        self.arguments = dict(arguments)
        self.gas_used = gas_used
        super().__init__(
            label,
            expected="the contract to accept it",
            got=said(name, self.arguments),
            remedy=f"it was mined and cost {gas_used:,} gas; {remedy(name)}" if gas_used else remedy(name),
        )


class NotMined(TransactionError):
    """No receipt arrived within the allowed time. A transaction that this client sent stays in the journal.
    If its intent is sent again, the client waits for this transaction.
    """

    exit_code = ExitCode.RETRY


class NonceTaken(TransactionError):
    """The account's nonce was used by a transaction that this journal does not know."""

    exit_code = ExitCode.RETRY


class JournalError(ChainError):
    """The journal of sent transactions cannot be used."""


class UnstableChain(ChainError):
    """Block hashes keep changing while they are read."""

    exit_code = ExitCode.RETRY


class DevnetError(ChainError):
    """The development chain could not be started."""


class AnvilMissing(DevnetError):
    """The anvil program was not found."""


class PortInUse(DevnetError):
    """Another server listens on the port."""

    exit_code = ExitCode.RETRY
