"""Checks that the contracts in a deployment file are this package's: code, constructor arguments,
initialisation.

An address that follows from the package's creation code, the arguments and the salt cannot hold any other
contract. The runtime code is compared too, ignoring immutables, to tell what differs.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol.chain.abi import contract
from protocol.chain.beacon import is_signed_by_anyone
from protocol.chain.connection import Connection
from protocol.chain.contract_code import code_difference, is_test_token_for_real
from protocol.chain.create2 import first_made_by
from protocol.chain.deployment import Deployment
from protocol.chain.errors import DeploymentError, RpcRefused
from protocol.chain.initialisation import is_initialised, neighbours_of_market, neighbours_of_vault
from protocol.chain.parameters import Parameters
from protocol.chain.plan import Plan, plan


def require_package_code(connection: Connection, deployment: Deployment) -> None:
    """Raise DeploymentError, with a list of all differences, unless the contracts on the chain are those that
    this package would deploy with the file's arguments. Also raise it if the block in the file is too late to
    see all events, or cannot be checked. Raise WrongChain if the node serves another chain.
    """
    connection.require_chain(deployment.chain_id)
    found = list(differences(connection, deployment))
    if found:
        raise DeploymentError(
            f"contracts on chain {deployment.chain_id}",
            expected="those of this package, as the deployment file says",
            got="; ".join(found),
            remedy="lock no tokens there, unless you know the version that deployed them",
        )
    _require_early_block(connection, deployment)


def differences(connection: Connection, deployment: Deployment) -> Iterator[str]:
    """The differences between the deployment on the chain and the one that this package would make, one
    phrase each.
    """
    if connection.genesis != deployment.genesis:
        yield f"the chain's genesis is {connection.genesis}, the file's {deployment.genesis}"
    due = expected(deployment)
    at = deployment.addresses
    if not connection.code(at.token):
        yield f"token: no contract at {at.token}"
    elif is_test_token_for_real(connection, at.token):
        yield f"token: a test token at {at.token}, which anyone can mint, on a chain whose money is real"
    if is_signed_by_anyone(deployment.beacon, connection.chain_id):
        yield "beacon: a development chain's, which anyone can sign for, on a chain whose money is real"
    complete = True
    for made in due.creations:
        address = getattr(at, made.key)
        wrong = code_difference(connection, made.contract, address)
        complete = complete and (wrong is None or made.key not in ("market", "vault"))
        if wrong is not None:
            yield f"{made.key}: {wrong}"
        elif address != made.address:
            yield f"{made.key}: the package's code at {address}, but other arguments or another salt than the file says"
    wrong = code_difference(connection, contract("Evidence"), first_made_by(at.game))
    if wrong is not None:
        yield f"evidence of the game: {wrong}"
    if complete:
        yield from _state_differences(connection, deployment)


def expected(deployment: Deployment) -> Plan:
    """The plan that the package would deploy with the file's arguments. The plan includes the test token if
    the file's token has the address that the test token would get. Raises UnknownArithmetic.
    """
    arguments = (deployment.deployer, deployment.parameters, deployment.beacon)
    token = deployment.addresses.token
    with_test_token = plan(*arguments, salt=deployment.salt, arithmetic=deployment.arithmetic)
    return (
        with_test_token
        if with_test_token.addresses.token == token
        else plan(*arguments, token, deployment.salt, deployment.arithmetic)
    )


def _state_differences(connection: Connection, deployment: Deployment) -> Iterator[str]:
    at = deployment.addresses
    neighbours = [at.audit, at.game, at.commitments, at.looks, at.juries]
    if (found := neighbours_of_market(connection, at)) != neighbours:
        yield f"market: initialised with {', '.join(found)}"
    if (found := neighbours_of_vault(connection, at)) != [at.market, *neighbours]:
        yield f"vault: initialised with {', '.join(found)}"
    (values,) = connection.call(contract("TaskMarket"), at.market, "parameters")
    if Parameters.from_abi(values) != deployment.parameters:
        yield f"market: its parameters are {Parameters.from_abi(values)}"


def is_early_block(connection: Connection, deployment: Deployment) -> bool:
    """Whether the chain has the file's block and the vault was not yet initialised at that block. Raises
    RpcRefused if the node cannot tell.
    """
    block = deployment.block
    return block <= connection.block().number and not is_initialised(connection, deployment.addresses, block)


def _require_early_block(connection: Connection, deployment: Deployment) -> None:
    """Raise DeploymentError if the file's block is too late, or if the node cannot tell. Parties read events
    from this block on, so with a later block a solver would miss a challenge and be slashed.
    """
    block = deployment.block
    try:
        early = is_early_block(connection, deployment)
    except RpcRefused as error:
        raise DeploymentError(
            "block of the deployment file",
            expected=f"a node that knows the state of block {block}",
            got=f"{error.message}: the contracts are this package's, but the block could not be verified",
            remedy="name the URL of an archive node with --rpc; with a wrong block a party misses challenges",
        ) from error
    if not early:
        raise DeploymentError(
            "block of the deployment file",
            expected="one before the vault was initialised, for events begin after it",
            got=f"{block}, and the newest block is {connection.block().number}",
            remedy="take part with a file that has the right block, for this one hides challenges",
        )
