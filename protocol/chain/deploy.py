"""Deploying all contracts to a probed chain, and writing the deployment file.

Existing contracts are not created again. So an interrupted deployment continues, and repeating a complete
deployment changes nothing. Once all contracts exist, first the market and then the vault is initialised with
the addresses of the other contracts; until then nothing can be locked. Predictable failures are found before
the first transaction (protocol.chain.deployable).
"""

from __future__ import annotations

from protocol.beacon.rounds import Network
from protocol.chain.abi import contract
from protocol.chain.beacon import network_of
from protocol.chain.create2 import creation_call
from protocol.chain.deployable import prepare, simulate
from protocol.chain.deployment import Deployment, earlier_deployment, save_deployment
from protocol.chain.errors import Reverted
from protocol.chain.initialisation import block_before_initialisation, initialisations
from protocol.chain.parameters import DEVNET, Parameters
from protocol.chain.plan import Creation, Plan
from protocol.chain.transactions import Sender
from protocol.tasks.arithmetics import ARITHMETIC


def deploy(
    sender: Sender,
    parameters: Parameters = DEVNET,
    token: str | None = None,
    salt: str = "",
    network: Network | None = None,
    arithmetic: int = ARITHMETIC,
) -> Deployment:
    """Deploy the contracts that `plan` gives for the sender and these arguments, unless they exist, and write
    the deployment file. The default beacon network depends on the chain (`network_of`).

    Before anything is sent, raises what `prepare` raises. Later, raises DeploymentError if a contract was
    initialised with other addresses, and what `Sender.send` raises.
    """
    connection = sender.connection
    network = network or network_of(connection.chain_id)
    planned, deployment = prepare(connection, sender.address, parameters, token, salt, network, arithmetic)
    sender.recover()
    for made in planned.missing(connection):
        _create(sender, planned, made)
    market, vault = initialisations(connection, planned.addresses)
    market.carry_out(sender)
    receipt = vault.carry_out(sender)
    (stated,) = connection.call(contract("Arbiter"), planned.addresses.arbiter, "arithmetic")
    block = _known_block(sender, deployment) if receipt is None else receipt.block - 1
    deployment = deployment.model_copy(update={"block": block, "arithmetic": stated})
    save_deployment(deployment)
    return deployment


def _create(sender: Sender, planned: Plan, made: Creation) -> None:
    """Make the proxy create a contract, only once even across restarts."""
    connection = sender.connection
    simulate(connection, made)
    call = creation_call(planned.salt, made.code, f"deployment of {made.contract.name}")
    try:
        sender.send(call, f"create:{made.address}")
    except Reverted:
        # The proxy refuses an address that has code: somebody else has created the same contract meanwhile.
        if not connection.code(made.address):
            simulate(connection, made)
            raise


def _known_block(sender: Sender, deployment: Deployment) -> int:
    """The block from which to read events. This is used if the journal does not have the transaction that
    initialised the vault. The block comes from the deployment file if that file has the same contracts, and
    otherwise from a search of the chain.
    """
    earlier = earlier_deployment(deployment.chain_id, deployment.genesis)
    if earlier is not None and earlier.addresses == deployment.addresses:
        return earlier.block
    return block_before_initialisation(sender.connection, deployment.addresses)
