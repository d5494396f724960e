"""Checks before the first transaction of a deployment: the chain, the token, the parameters, the
constructors, and the content of the deployment file.
"""

from __future__ import annotations

from eth_utils.address import to_checksum_address
from pydantic import TypeAdapter, ValidationError

from protocol.beacon.rounds import Network
from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.beacon import is_signed_by_anyone
from protocol.chain.connection import Connection
from protocol.chain.contract_code import is_test_token_for_real
from protocol.chain.create2 import PROXY, require_proxy
from protocol.chain.deployment import Address, Deployment, copy_to_keep, first_fault, require_salt
from protocol.chain.errors import DeploymentError, RpcRefused, UnsuitableChain
from protocol.chain.initialisation import initialisations
from protocol.chain.parameter_bounds import require_within_bounds
from protocol.chain.parameters import Parameters
from protocol.chain.plan import Creation, Plan, plan
from protocol.chain.probe import probe
from protocol.tasks.arithmetics import ARITHMETIC


def require_deployable(connection: Connection, token: str | None, network: Network) -> None:
    """Raise DeploymentError if the token is not an address. On a chain with real money, also raise it if no
    token is given, or if anyone can mint the token or sign the beacon's rounds. Raise UnsuitableChain if the
    chain or the token cannot be used.
    """
    if token is None and connection.chain_id != DEVELOPMENT_CHAIN:
        raise DeploymentError(
            f"token of a deployment on chain {connection.chain_id}",
            expected="the address of the ERC-20 that tasks are paid in",
            got="none, and a test token can be minted by anyone",
            remedy="name it with --token",
        )
    if is_signed_by_anyone(network, connection.chain_id):
        raise DeploymentError(
            f"beacon of a deployment on chain {connection.chain_id}",
            expected="a network whose key nobody has alone, such as evmnet",
            got="a development chain's, which anyone can sign for",
            remedy="name another with --beacon",
        )
    if token is not None:
        _require_address(token)
    probe(connection)
    require_proxy(connection)
    if token is None:
        return
    if not connection.code(token):
        raise UnsuitableChain(
            f"token {token}", expected="a contract", got="no code", remedy="name an ERC-20 of this chain"
        )
    if is_test_token_for_real(connection, token):
        raise DeploymentError(
            f"token {token} on chain {connection.chain_id}",
            expected="an ERC-20 that is worth something",
            got="a test token, which anyone can mint",
            remedy="name another with --token",
        )


def prepare(
    connection: Connection,
    deployer: str,
    parameters: Parameters,
    token: str | None,
    salt: str,
    network: Network,
    arithmetic: int = ARITHMETIC,
) -> tuple[Plan, Deployment]:
    """The plan that `deploy` carries out, and the content of the deployment file, whose `block` and
    `arithmetic` are not final yet. Sends no transaction and writes no file.

    Raises the errors that can be known in advance: DeploymentError, ParametersError, UnsuitableChain,
    ArtifactMissing, UnknownArithmetic, and Reverted with the error of a constructor.
    """
    require_deployable(connection, token, network)
    require_salt(salt)
    require_within_bounds(parameters)
    planned = plan(deployer, parameters, network, token, salt, arithmetic)
    try:
        deployment = Deployment(
            chain_id=connection.chain_id,
            genesis=connection.genesis,
            block=connection.block().number,
            deployer=to_checksum_address(deployer),
            salt=salt,
            addresses=planned.addresses,
            parameters=parameters,
            beacon=network,
            arithmetic=arithmetic,
        )
    except ValidationError as error:
        raise DeploymentError(
            "deployment", expected="what a deployment file can hold", got=first_fault(error)
        ) from error
    copy_to_keep(deployment)
    missing = planned.missing(connection)
    for made in missing:
        if not any(bytes.fromhex(other.address[2:]) in made.code for other in missing):
            simulate(connection, made)
    there = {made.address for made in planned.creations} - {made.address for made in missing}
    for step in initialisations(connection, planned.addresses):
        if step.address in there:
            step.is_done()
    return planned, deployment


def _require_address(token: str) -> None:
    try:
        TypeAdapter(Address).validate_python(token)
    except ValidationError as error:
        raise DeploymentError(
            "token of a deployment",
            expected="an address: 0x and 40 hexadecimal digits, with the right checksum (EIP-55) or none",
            got=repr(token),
            remedy="correct --token",
        ) from error


def simulate(connection: Connection, made: Creation) -> None:
    """Run a constructor without the proxy, which would hide the constructor's error. Raises Reverted with
    that error. Has no effect if the node does not run creation code in a call.
    """
    try:
        connection.call_data(None, made.code, sender=PROXY, label=f"constructor of {made.contract.name}")
    except RpcRefused:
        return  # the node does not run creation code in a call, so the outcome is unknown
