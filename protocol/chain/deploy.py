"""Deploying all contracts to a chain that was probed, and writing the deployment file.

What the chain has already is found and not made again, so a deployment that was cut short goes on, and one that is
complete changes nothing. Once all are there each learns its neighbours, once, the vault last: until then nothing can be
locked.
"""

from __future__ import annotations

from typing import Any

from eth_utils.address import to_checksum_address

from protocol.chain.abi import Contract, contract
from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.connection import Connection
from protocol.chain.create2 import creation_call, require_proxy
from protocol.chain.deployment import Addresses, Deployment, earlier_deployment, save_deployment
from protocol.chain.errors import DeploymentError, Reverted, RpcRefused, UnsuitableChain
from protocol.chain.fees import Call
from protocol.chain.parameters import DEVNET, Parameters
from protocol.chain.plan import Creation, Plan, plan
from protocol.chain.probe import probe
from protocol.chain.transactions import Sender

_NOBODY = "0x" + "00" * 20


def require_deployable(connection: Connection, token: str | None) -> None:
    """Raise DeploymentError for a chain whose money is real and no token, UnsuitableChain for a chain or a token that
    cannot be used.
    """
    if token is None and connection.chain_id != DEVELOPMENT_CHAIN:
        raise DeploymentError(
            f"token of a deployment on chain {connection.chain_id}",
            expected="the address of the ERC-20 that tasks are paid in",
            got="none, and a test token can be minted by anyone",
            remedy="name it with --token",
        )
    probe(connection)
    require_proxy(connection)
    if token is not None and not connection.code(token):
        raise UnsuitableChain(
            f"token {token}", expected="a contract", got="no code", remedy="name an ERC-20 of this chain"
        )


def deploy(
    sender: Sender, parameters: Parameters = DEVNET, token: str | None = None, salt: str = ""
) -> Deployment:
    """Deploy what is missing of the sender's deployment with these arguments (`plan`), and write the file.

    Raises DeploymentError or UnsuitableChain before anything is sent, ArtifactMissing, DeploymentError for contracts
    that were initialised with others, and what `Sender.send` raises.
    """
    connection = sender.connection
    require_deployable(connection, token)
    planned = plan(sender.address, parameters, token, salt)
    block = _block_before(connection, planned)
    for made in planned.missing(connection):
        _create(sender, planned, made)
    at = planned.addresses
    market, vault = contract("TaskMarket"), contract("StakeVault")
    _initialise(sender, market, at.market, neighbours_of_market(connection, at), [at.audit, at.game])
    _initialise(sender, vault, at.vault, neighbours_of_vault(connection, at), [at.market, at.audit, at.game])
    (arithmetic,) = connection.call(contract("Arbiter"), at.arbiter, "arithmetic")
    deployment = Deployment(
        chain_id=connection.chain_id,
        genesis=connection.genesis,
        block=block,
        deployer=to_checksum_address(sender.address),
        salt=salt,
        addresses=at,
        parameters=parameters,
        arithmetic=arithmetic,
    )
    save_deployment(deployment)
    return deployment


def neighbours_of_market(connection: Connection, at: Addresses) -> list[str]:
    """Audit board and game as the market knows them: zero addresses before it is initialised."""
    market = contract("TaskMarket")
    found = [connection.call(market, at.market, name)[0] for name in ("board", "game")]
    return [to_checksum_address(address) for address in found]


def neighbours_of_vault(connection: Connection, at: Addresses) -> list[str]:
    """Market, audit board and game as the vault knows them: zero addresses before it is initialised."""
    (found,) = connection.call(contract("StakeVault"), at.vault, "modules")
    return [to_checksum_address(address) for address in found]


def _create(sender: Sender, planned: Plan, made: Creation) -> None:
    try:
        sender.send(creation_call(planned.salt, made.code, f"deployment of {made.contract.name}"))
    except Reverted:
        # The proxy refuses an address that has code: somebody else has created this very contract meanwhile.
        if not sender.connection.code(made.address):
            raise


def _initialise(sender: Sender, made: Contract, address: str, known: list[str], due: list[Any]) -> None:
    if set(known) == {_NOBODY}:
        sender.send(Call(address, made.encode("initialise", due), f"{made.name}.initialise"))
    elif known != due:
        raise DeploymentError(
            f"{made.name} at {address}",
            expected=f"to be initialised with {', '.join(due)}",
            got=", ".join(known),
            remedy="deploy with another --salt",
        )


def _block_before(connection: Connection, planned: Plan) -> int:
    """The newest block in which the vault is not there: no event of this deployment is older."""
    head = connection.block().number
    vault = planned.addresses.vault
    if not connection.code(vault):
        return head
    earlier = earlier_deployment(connection.chain_id, connection.genesis)
    if earlier is not None and earlier.addresses == planned.addresses:
        return earlier.block
    without, there = 0, head
    try:
        while there - without > 1:
            middle = (without + there) // 2
            if connection.code(vault, middle):
                there = middle
            else:
                without = middle
    except RpcRefused as error:
        raise DeploymentError(
            f"block of the vault at {vault}",
            expected="a node that knows the code of old blocks",
            got=error.message,
            remedy="name the URL of an archive node, or copy the deployment file from whoever deployed",
        ) from error
    return without
