"""One client for all contracts of a deployment, each with its own class.

with connect("http://127.0.0.1:8545", account="dev:0") as client:
    client.market.task(1)
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from protocol.chain.abi import Contract, contract
from protocol.chain.accounts import open_account
from protocol.chain.audit import Audit
from protocol.chain.beacon import Beacon
from protocol.chain.chains import Finality
from protocol.chain.commitments import Commitments
from protocol.chain.connection import Connection
from protocol.chain.deployment import Deployment, load_deployment, require_alive
from protocol.chain.errors import ChainError, Reverted
from protocol.chain.game import Game
from protocol.chain.inclusion import Inclusion
from protocol.chain.juries import Juries
from protocol.chain.looks import Looks
from protocol.chain.market import Market
from protocol.chain.receipts import Receipt
from protocol.chain.token import Token
from protocol.chain.transactions import Sender, Sending, Sent
from protocol.chain.vault import Vault

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount


class Client:
    """The contracts of one deployment, for one account. Without an account, it can only read."""

    def __init__(
        self, connection: Connection, deployment: Deployment, sender: Sender | None, *, shared: bool = False
    ) -> None:
        self.connection = connection
        self._shared = shared
        self._funding = threading.Lock()
        self.deployment = deployment
        self.sender = sender
        at = deployment.addresses
        self.token = Token(contract("IERC20"), at.token, connection, sender)
        self.vault = Vault(contract("StakeVault"), at.vault, connection, sender)
        self.market = Market(contract("TaskMarket"), at.market, connection, sender)
        self.audit = Audit(contract("AuditBoard"), at.audit, connection, sender)
        self.commitments = Commitments(contract("Commitments"), at.commitments, connection, sender)
        self.looks = Looks(contract("Looks"), at.looks, connection, sender)
        self.juries = Juries(contract("Juries"), at.juries, connection, sender)
        self.game = Game(contract("DisputeGame"), at.game, connection, sender)
        self.beacon = Beacon(contract("DrandBeacon"), at.beacon, connection, sender)

    def for_deployment(self, deployment: Deployment) -> Client:
        """A client of another deployment on the same chain. It shares the connection, the account and its
        journal, and is closed with this client. Raises WrongChain, DeploymentError.
        """
        self.connection.require_chain(deployment.chain_id)
        require_alive(deployment, self.connection)
        return Client(self.connection, deployment, self.sender)

    @property
    def address(self) -> str:
        """The address of the account that sends; the zero address without an account."""
        return self.sender.address if self.sender is not None else "0x" + "00" * 20

    @property
    def contracts(self) -> dict[str, Contract]:
        """The contracts except token and beacon, by address, as `events.Follower` takes them."""
        bound = (self.vault, self.market, self.audit, self.commitments, self.looks, self.juries, self.game)
        return {item.address: item.contract for item in bound}

    @property
    def inclusion(self) -> float:
        """Seconds to expect between sending a transaction and its receipt, never less than two block times."""
        taken = Inclusion() if self.sender is None else self.sender.inclusion
        return taken.seconds(self.connection.block_time)

    def now(self) -> int:
        """The chain's clock: time of the newest block in seconds since 1970."""
        return self.connection.block().time

    def tokens(self, account: str | None = None) -> tuple[int, int]:
        """Two amounts: the tokens of `account` that are free in the vault, and its tokens outside the vault.
        The default is the account of this client. Both amounts are read at one block, which is not older than
        any seen before.
        """
        block, owner = self.connection.block().number, account or self.address
        return self.vault.free(owner, block), self.token.balance_of(owner, block)

    def is_final(self, receipt: Receipt) -> bool:
        """Whether a transaction is in a final block, as irreversible actions require."""
        final = self.connection.final_block()
        return receipt.block <= final and self.connection.stands(receipt.block, receipt.block_hash)

    def is_over_for_good(self, task: int) -> bool:
        """Whether the task was already over at the newest final block."""
        try:
            return self.market.task(task, self.connection.final_block()).status.is_over
        except Reverted:  # not even posted at that block
            return False

    def outcomes(self, sent: Sequence[Sent]) -> list[Receipt | ChainError | None]:
        """The present outcomes of calls that this account has sent (`Sender.outcomes`)."""
        assert self.sender is not None, "who sent them has an account"
        return self.sender.outcomes(sent)

    def tend(self) -> None:
        """Resend this account's transactions that the chain or the node has lost. It may be called often: it
        limits its requests (`Sender.tend`).
        """
        if self.sender is not None:
            self.sender.tend()

    def fund(self, amount: int) -> list[Receipt]:
        """Ensure that the account's free balance in the vault is at least `amount`, by a deposit of the
        missing tokens. Returns the receipts of the transactions that were sent for this. Threads that call
        this at once take turns, because each deposit uses up the approval that was made for it.
        """
        with self._funding:
            missing = amount - self.tokens()[0]
            if missing <= 0:
                return []
            sent = []
            if self.token.allowance(self.address, self.vault.address) < missing:
                sent.append(self.token.approve(self.vault.address, missing))
            return [*sent, self.vault.deposit(missing)]

    def for_account(
        self,
        account: str | LocalAccount,
        *,
        password_file: Path | None = None,
        sending: Sending | None = None,
    ) -> Client:
        """A client of another account through the same connection. Close it before this client. Raises what
        `connect` raises.
        """
        return Client(
            self.connection,
            self.deployment,
            _sender(self.connection, account, password_file, sending),
            shared=True,
        )

    def close(self) -> None:
        """Release the account's lock. Also close the sockets, unless another client owns the connection
        (`for_account`).
        """
        if self.sender is not None:
            self.sender.close()
        if not self._shared:
            self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(
    urls: str | Sequence[str],
    deployment: Deployment | Path | None = None,
    account: str | LocalAccount | None = None,
    *,
    password_file: Path | None = None,
    sending: Sending | None = None,
    finality: Finality | None = None,
) -> Client:
    """A client of a chain, through the node or nodes at `urls`. `deployment` is by default the deployment
    file of the chain; `account` is a name for `open_account`, or an opened account.

    Transactions that an earlier process left in the journal are resent first. Raises RpcUnavailable,
    WrongChain, DeploymentError, AccountError.
    """
    connection = Connection(urls, finality=finality)
    if not isinstance(deployment, Deployment):
        deployment = load_deployment(connection.chain_id if deployment is None else deployment)
    connection.require_chain(deployment.chain_id)
    require_alive(deployment, connection)
    sender = None if account is None else _sender(connection, account, password_file, sending)
    return Client(connection, deployment, sender)


def _sender(
    connection: Connection,
    account: str | LocalAccount,
    password_file: Path | None,
    sending: Sending | None,
) -> Sender:
    key = open_account(account, connection.chain_id, password_file) if isinstance(account, str) else account
    sender = Sender(connection, key, sending)
    sender.recover()
    return sender
