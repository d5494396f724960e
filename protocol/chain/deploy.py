"""Deploying all contracts to a chain that was probed, and writing the deployment file.

Order: the token (a test token unless one is given), vault, arbiter, market, audit board, game; then each
learns its neighbours, once, the vault last: until then nothing can be locked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_utils.address import to_checksum_address

from protocol.chain.abi import Contract, contract
from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.connection import Connection
from protocol.chain.deployment import Addresses, Deployment, save_deployment
from protocol.chain.errors import DeploymentError, UnsuitableChain
from protocol.chain.fees import Call
from protocol.chain.parameters import DEVNET, Parameters
from protocol.chain.probe import probe
from protocol.chain.transactions import Sender


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
    if token is not None and not connection.code(token):
        raise UnsuitableChain(
            f"token {token}", expected="a contract", got="no code", remedy="name an ERC-20 of this chain"
        )


def deploy(sender: Sender, parameters: Parameters = DEVNET, token: str | None = None) -> Deployment:
    """Deploy everything from the sender's account, who also becomes the pauser of new tasks; the file is
    written.

    Raises DeploymentError or UnsuitableChain before anything is sent, ArtifactMissing, and what `Sender.send` raises.
    """
    connection = sender.connection
    require_deployable(connection, token)
    block = connection.block().number
    if token is None:
        token = _create(sender, contract("TestToken"))
    vault = _create(sender, contract("StakeVault"), token)
    arbiter = _create(sender, contract("Arbiter"))
    market = _create(sender, contract("TaskMarket"), vault, arbiter, sender.address, parameters.abi())
    audit = _create(sender, contract("AuditBoard"), vault, market)
    game = _create(sender, contract("DisputeGame"), market, vault, arbiter)
    _initialise(sender, contract("TaskMarket"), market, [audit, game])
    _initialise(sender, contract("StakeVault"), vault, [market, audit, game])
    (arithmetic,) = connection.call(contract("Arbiter"), arbiter, "arithmetic")
    deployment = Deployment(
        chain_id=connection.chain_id,
        genesis=connection.genesis,
        block=block,
        addresses=Addresses(
            token=to_checksum_address(token),
            vault=vault,
            market=market,
            audit=audit,
            game=game,
            arbiter=arbiter,
        ),
        parameters=parameters,
        arithmetic=arithmetic,
    )
    save_deployment(deployment)
    return deployment


def _create(sender: Sender, made: Contract, *arguments: Any) -> str:
    receipt = sender.send(Call(None, made.creation(arguments), f"deployment of {made.name}"))
    assert receipt.contract is not None, "a successful creation names its address"
    return receipt.contract


def _initialise(sender: Sender, made: Contract, address: str, arguments: Sequence[Any]) -> None:
    sender.send(Call(address, made.encode("initialise", arguments), f"{made.name}.initialise"))
