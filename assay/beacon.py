"""`assay beacon`: signs the rounds of a private beacon network, timed by the chain's clock, and serves them
over HTTP.

For development chains and test networks, not where money is at stake: a single key signs, whereas drand needs
a threshold of its members' keys, and the timing of the answers may reveal the key. The key is derived from an
account's key (`protocol.beacon.keys`).
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from eth_account.signers.local import LocalAccount
from fastapi import FastAPI

from protocol.beacon.bn254 import public_key
from protocol.beacon.errors import NetworkError
from protocol.beacon.keys import secret_of
from protocol.beacon.networks import DEVELOPMENT, load_network
from protocol.beacon.rounds import Network
from protocol.beacon.server import application
from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account, open_account
from protocol.chain.connection import Connection
from protocol.chain.devnet import HOST
from protocol.node.serving import Serving
from protocol.node.stopping import Stop

if TYPE_CHECKING:
    from assay.commands import Context


def serve(context: Context, source: str | None) -> None:
    """Serve a network's rounds until stopped. `source` names the network; None stands for the development
    chain's network.
    """
    stop = Stop()
    stop.on_signals()
    settings = context.settings
    with closing(Connection(settings.rpc)) as connection:
        network = load_network(source) if source is not None else _own_network(connection.chain_id)
        account = open_account(settings.account, connection.chain_id, settings.password_file)
        app = signing(connection, network, account)
        with Serving(app, settings.host, settings.beacon_port, settings.proxies) as serving:
            context.output.say(
                f"beacon {network.beacon_id} at {serving.url}, chain hash {network.chain_hash}, rounds by the time of "
                f"chain {connection.chain_id}; Ctrl-C ends it"
            )
            while not stop.wait(60.0):
                pass


def development_beacon(connection: Connection, port: int) -> Serving:
    """Start the beacon of a development chain, reachable from this machine only. Raises PortTaken, PortRefused, and
    AccountError if the chain is not a development chain.
    """
    account = development_account(0, connection.chain_id)
    return Serving(signing(connection, DEVELOPMENT, account), HOST, port, flag="--beacon-port")


def signing(connection: Connection, network: Network, account: LocalAccount) -> FastAPI:
    """The app that signs a network's rounds with the account's key. Raises NetworkError if the network's
    public key does not belong to that key.
    """
    secret = secret_of(bytes(account.key))
    own = public_key(secret)
    if own != network.key:
        raise NetworkError(
            f"beacon network {network.beacon_id}",
            expected=f"public_key {own.hex()}, which follows from account {account.address}",
            got=network.public_key,
            remedy="name the account that signs for the network, or a network file with this key",
        )
    return application(network, secret, lambda: connection.block().time)


def _own_network(chain_id: int) -> Network:
    if chain_id != DEVELOPMENT_CHAIN:
        raise NetworkError(
            f"beacon network for chain {chain_id}",
            expected="a file that describes it",
            got="none",
            remedy="name it with --network; protocol/beacon/networks.toml shows the form",
        )
    return DEVELOPMENT
