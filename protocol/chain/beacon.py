"""Which beacon network a chain's deployment takes."""

from __future__ import annotations

from protocol.beacon.networks import DEVELOPMENT, EVMNET
from protocol.beacon.rounds import Network
from protocol.chain.accounts import DEVELOPMENT_CHAIN


def network_of(chain_id: int) -> Network:
    """The network of a deployment that names no other: evmnet; on a development chain its own."""
    return DEVELOPMENT if chain_id == DEVELOPMENT_CHAIN else EVMNET


def is_signed_by_anyone(network: Network, chain_id: int) -> bool:
    """Whether a network whose secret is published is used on a chain whose money is real."""
    return chain_id != DEVELOPMENT_CHAIN and network.public_key == DEVELOPMENT.public_key
