"""Where a party keeps what it must remember: one folder and one database for each chain and account."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from protocol.chain.client import Client
from protocol.node.database import Identity, NodeDatabase
from protocol.node.home import Home

Opened = TypeVar("Opened", bound=NodeDatabase)


def data_folder(home: Home, party: str, client: Client) -> Path:
    """The folder of this account on this chain, made if missing: "<home>/solver/31337-ab12cd34-5678ef90"."""
    connection = client.connection
    return home.folder(party, f"{connection.chain_id}-{connection.genesis[2:10]}-{client.address[2:10]}")


def open_database(kind: type[Opened], home: Home, client: Client) -> Opened:
    """The party's database in its data folder. Raises DatabaseError where it is another chain's or account's."""
    identity = Identity(client.connection.genesis, client.market.address, client.address)
    return kind(data_folder(home, kind.PARTY, client) / f"{kind.PARTY}.sqlite", identity)
