"""The beacon's contract (contracts/src/interfaces/IBeacon.sol), and which network a chain's deployment uses."""

from __future__ import annotations

from protocol.beacon.bn254 import Hints, hints, round_message
from protocol.beacon.networks import DEVELOPMENT, EVMNET
from protocol.beacon.rounds import Network
from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.bound_contract import BoundContract
from protocol.chain.errors import Reverted
from protocol.chain.receipts import Receipt


class Beacon(BoundContract):
    """The contract that checks the beacon's signatures. `Deployment.beacon` is its network."""

    def show(self, number: int, signature: bytes, hints: Hints) -> Receipt:
        """Submit the signature of a round to the contract, to prove that the beacon works. The round's number
        must be higher than that of any round shown before.
        """
        return self.write_once("show", number, signature, hints)

    def is_signed_round(self, number: int, signature: bytes) -> bool:
        """Whether the contract accepts `signature` (64 bytes) as the network's signature of a round. The
        round need not be published yet. Raises ChainError.
        """
        try:
            self.read("word", number, signature, hints(round_message(number)))
        except Reverted:
            return False
        return True

    def latest(self) -> int:
        """Number of the highest round that was shown; 0 if none was."""
        return int(self.read("latest"))


def network_of(chain_id: int) -> Network:
    """The default network of a deployment: the development network on a development chain, else evmnet."""
    return DEVELOPMENT if chain_id == DEVELOPMENT_CHAIN else EVMNET


def is_signed_by_anyone(network: Network, chain_id: int) -> bool:
    """Whether anyone can sign for the network, because its secret is published, although the chain has real
    money.
    """
    return chain_id != DEVELOPMENT_CHAIN and network.public_key == DEVELOPMENT.public_key
