"""A party's data: a folder with a database for each chain, account and deployment.

A folder's name contains all three; the deployment is named by its market. An early release, which knew only
one deployment per chain, left the market out of the name. Such a folder belongs to the market that its
database names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from protocol.chain.client import Client
from protocol.chain.deployment import Deployment, deployment_file, deployments_of
from protocol.node.database import DatabaseError, Identity, NodeDatabase
from protocol.node.home import Home
from protocol.tasks.arithmetics import require_computed

Opened = TypeVar("Opened", bound=NodeDatabase)


def data_folder(kind: type[NodeDatabase], home: Home, client: Client) -> Path:
    """The data folder of this account in this deployment, for example
    "<home>/solver/31337-ab12cd34-5678ef90-12ab34cd". It is created if it is missing. Raises DatabaseError,
    HomeError.
    """
    name, market = _name(client), client.market.address
    former = home.folder(kind.PARTY) / name
    if kind.market_of(_database(kind, former)) == market:
        return former
    return home.folder(kind.PARTY, f"{name}-{market[2:10]}")


def open_database(kind: type[Opened], home: Home, client: Client) -> Opened:
    """The party's database in its data folder. Raises DatabaseError if it cannot be used (`NodeDatabase`)."""
    identity = Identity(client.connection.genesis, client.market.address, client.address)
    return kind(_database(kind, data_folder(kind, home, client)), identity)


def earlier_deployments(kind: type[NodeDatabase], home: Home, client: Client) -> list[Deployment]:
    """The other deployments of this chain in which the account has data, the earliest first. Work that was
    begun there must be finished there.

    Raises DatabaseError if a deployment's file is missing, HomeError if this user may not read the folder,
    and UnknownArithmetic if this release cannot compute the arithmetic of one of them or of the client's
    deployment.
    """
    require_computed(client.deployment.arithmetic, f"the contracts at {client.market.address}")
    connection = client.connection
    known = {one.addresses.market: one for one in deployments_of(connection.chain_id, connection.genesis)}
    found = []
    for market, folder in _markets(kind, home, client):
        if market == client.market.address:
            continue
        if market not in known:
            raise DatabaseError(
                f"data in {folder}",
                expected=f"the deployment file of their contracts beside {deployment_file(connection.chain_id)}",
                got=f"none of the market at {market}",
                remedy=f"put it there as {connection.chain_id}-{market[2:10].lower()}.json; or choose another --home, "
                "or move the data away once nothing is locked there",
            )
        require_computed(known[market].arithmetic, f"the contracts at {market}, where this account has data")
        found.append(known[market])
    return sorted(found, key=lambda one: one.block)


def _markets(kind: type[NodeDatabase], home: Home, client: Client) -> Iterator[tuple[str, Path]]:
    """The markets in which the account has data on this chain, with their folders."""
    name, party = _name(client), home.folder(kind.PARTY)
    for folder in (party / name, *sorted(party.glob(f"{name}-*"))):
        market = kind.market_of(_database(kind, folder))
        if market is not None:
            yield market, folder


def _name(client: Client) -> str:
    connection = client.connection
    return f"{connection.chain_id}-{connection.genesis[2:10]}-{client.address[2:10]}"


def _database(kind: type[NodeDatabase], folder: Path) -> Path:
    return folder / f"{kind.PARTY}.sqlite"
