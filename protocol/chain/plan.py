"""The contracts of a deployment, with their creation code and addresses, which are known before anything is
sent.

Order: the token (a test token by default), vault, arbiter, beacon, bounds of terms, market, audit board,
commitments, looks, juries, game. A constructor takes only addresses of earlier contracts, so all addresses
follow from the deployer, the parameters, the beacon network, the arithmetic's version, the token and the
salt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from protocol.beacon.rounds import Network
from protocol.chain.abi import Contract, contract
from protocol.chain.connection import Connection
from protocol.chain.create2 import address_of
from protocol.chain.deployment import Addresses
from protocol.chain.parameters import Parameters
from protocol.tasks.arithmetics import ARBITERS, ARITHMETIC, require_computed

_SALT = b"assay deployment 1"


@dataclass(frozen=True)
class Creation:
    """A contract to create. `key` names its field in `Addresses`; `code` is its creation code, with the
    constructor's arguments.
    """

    key: str
    contract: Contract
    code: bytes
    address: str


@dataclass(frozen=True)
class Plan:
    """All contracts to create, in order, and the salt of 32 bytes. An existing token is not among the contracts."""

    salt: bytes
    creations: tuple[Creation, ...]
    addresses: Addresses

    def missing(self, connection: Connection) -> list[Creation]:
        """The contracts that the chain does not have yet."""
        return [made for made in self.creations if not connection.code(made.address)]


def plan(
    deployer: str,
    parameters: Parameters,
    network: Network,
    token: str | None = None,
    salt: str = "",
    arithmetic: int = ARITHMETIC,
) -> Plan:
    """The plan for a deployment by `deployer`, who alone may initialise the contracts and may pause new
    tasks. `arithmetic` is the version of the arithmetic that the arbiter computes.

    A different `salt` gives different addresses for the same arguments. Raises ArtifactMissing,
    UnknownArithmetic.
    """
    require_computed(arithmetic, "the deployment")
    seed = keccak(_SALT + salt.encode())
    made: list[Creation] = []

    def create(key: str, name: str, *arguments: Any) -> str:
        code = contract(name).creation(arguments)
        made.append(Creation(key, contract(name), code, address_of(seed, code)))
        return made[-1].address

    token = create("token", "TestToken") if token is None else to_checksum_address(token)
    vault = create("vault", "StakeVault", token, deployer)
    arbiter = create("arbiter", ARBITERS[arithmetic])
    beacon = create("beacon", "DrandBeacon", *_beacon(network))
    bounds = create("bounds", "TermsBounds")
    market = create(
        "market", "TaskMarket", vault, arbiter, beacon, bounds, deployer, deployer, parameters.abi()
    )
    audit = create("audit", "AuditBoard", vault, market, beacon)
    commitments = create("commitments", "Commitments", vault, market, audit)
    looks = create("looks", "Looks", vault, market, audit)
    juries = create("juries", "Juries", vault, market, audit)
    game = create("game", "DisputeGame", market, vault, arbiter, commitments)
    addresses = Addresses(
        token=token,
        vault=vault,
        market=market,
        audit=audit,
        commitments=commitments,
        looks=looks,
        juries=juries,
        game=game,
        arbiter=arbiter,
        bounds=bounds,
        beacon=beacon,
    )
    return Plan(seed, tuple(made), addresses)


def _beacon(network: Network) -> tuple[list[int], int, int]:
    """The arguments of DrandBeacon: the four numbers of the key, the genesis time, and the period."""
    key = [int.from_bytes(network.key[start : start + 32], "big") for start in range(0, len(network.key), 32)]
    return key, network.genesis_time, network.period
