"""Initialises a deployment's market and vault with the addresses of the other contracts, and finds out when
this was done.

Only the deployer can initialise the market and the vault, each of them once. The vault is initialised last.
Every task, verifier and challenge begins with a lock in the vault, and only the contracts that the vault was
initialised with can lock. So no event that a party needs is older than the vault's initialisation, no matter
who created the contracts or when.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from eth_utils.address import to_checksum_address

from protocol.chain.abi import Contract, contract
from protocol.chain.blocks import BlockId
from protocol.chain.connection import Connection
from protocol.chain.deployment import Addresses
from protocol.chain.errors import DeploymentError, Reverted, RpcRefused
from protocol.chain.fees import Call
from protocol.chain.receipts import Receipt
from protocol.chain.transactions import Sender

NOBODY: Final = "0x" + "00" * 20


def neighbours_of_market(connection: Connection, at: Addresses) -> list[str]:
    """Addresses that the market was initialised with: audit board, game, commitments, looks, juries. They are
    zero before the initialisation.
    """
    market = contract("TaskMarket")
    names = ("board", "game", "commitments", "looks", "juries")
    found = [connection.call(market, at.market, name)[0] for name in names]
    return [to_checksum_address(address) for address in found]


def neighbours_of_vault(connection: Connection, at: Addresses, block: BlockId = "latest") -> list[str]:
    """Addresses that the vault was initialised with: market, audit board, game, commitments, looks, juries.
    They are zero before the initialisation.
    """
    (found,) = connection.call(contract("StakeVault"), at.vault, "modules", block=block)
    return [to_checksum_address(address) for address in found]


@dataclass(frozen=True)
class Initialisation:
    """The call of one contract's `initialise`. `due` are the arguments of the call; `known` reads the values
    that the contract has now.
    """

    contract: Contract
    address: str
    due: list[str]
    known: Callable[[], list[str]]

    def is_done(self) -> bool:
        """Whether the contract is initialised. Raises DeploymentError if it was initialised with other arguments."""
        known = self.known()
        if set(known) == {NOBODY}:
            return False
        if known != self.due:
            raise DeploymentError(
                f"{self.contract.name} at {self.address}",
                expected=f"to be initialised with {', '.join(self.due)}",
                got=", ".join(known),
                remedy="deploy with another --salt",
            )
        return True

    def carry_out(self, sender: Sender) -> Receipt | None:
        """Initialise the contract, only once even across restarts. Returns the receipt, also if an earlier
        process sent the transaction; None if the contract was initialised by a transaction that the sender's
        journal does not have. Raises DeploymentError if the contract was initialised with other arguments.
        """
        intent = f"initialise:{self.address}"
        if self.is_done() and not sender.journal.of_intent(intent):
            return None
        call = Call(
            self.address, self.contract.encode("initialise", self.due), f"{self.contract.name}.initialise"
        )
        try:
            receipt = sender.send(call, intent)
        except Reverted:
            # The same account may have initialised it meanwhile, from another machine.
            if not self.is_done():
                raise
            return None
        self.is_done()  # the journal's transaction may be from a command with other parameters
        return receipt


def initialisations(connection: Connection, at: Addresses) -> tuple[Initialisation, Initialisation]:
    """The initialisations of the market and of the vault, in this order."""
    return (
        Initialisation(
            contract("TaskMarket"),
            at.market,
            [at.audit, at.game, at.commitments, at.looks, at.juries],
            lambda: neighbours_of_market(connection, at),
        ),
        Initialisation(
            contract("StakeVault"),
            at.vault,
            [at.market, at.audit, at.game, at.commitments, at.looks, at.juries],
            lambda: neighbours_of_vault(connection, at),
        ),
    )


def is_initialised(connection: Connection, at: Addresses, block: BlockId = "latest") -> bool:
    """Whether the vault existed and was initialised at a block. Raises RpcRefused for a block whose state is gone."""
    return bool(connection.code(at.vault, block)) and set(neighbours_of_vault(connection, at, block)) != {
        NOBODY
    }


def block_before_initialisation(connection: Connection, at: Addresses) -> int:
    """The last block before the vault's initialisation, which must have taken place.

    The search goes back from the newest block. If the block that it finds is n blocks back, it reads no state
    that is more than about 2 n blocks back. Raises DeploymentError if the node does not have the state of the
    block that it finds.
    """
    head = there = connection.block().number
    before, step = head, 1

    def initialised(block: int) -> bool:
        try:
            return is_initialised(connection, at, block)
        except RpcRefused:
            return False  # the state is too old for this node: search newer blocks

    while there and initialised(before := max(0, head - step)):
        there, step = before, 2 * step
    while there - before > 1:
        middle = (before + there) // 2
        if initialised(middle):
            there = middle
        else:
            before = middle
    try:
        is_initialised(connection, at, before)
    except RpcRefused as error:
        raise DeploymentError(
            f"block in which the vault at {at.vault} was initialised",
            expected="a node that knows the state of that block",
            got=error.message,
            remedy="name the URL of an archive node, or copy the deployment file from the party that has it",
        ) from error
    return before
