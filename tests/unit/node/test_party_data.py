"""Where a party keeps its data, and in which other deployments it has data. Only the chain is a stub."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.beacon.networks import DEVELOPMENT
from protocol.chain.client import Client
from protocol.chain.deployment import Addresses, Deployment, deployments_of, save_deployment
from protocol.chain.parameters import DEVNET
from protocol.node.database import DatabaseError, Identity
from protocol.node.home import Home
from protocol.node.party.data import data_folder, earlier_deployments, open_database
from protocol.tasks.arithmetics import UnknownArithmetic
from solver.database import Database

GENESIS = "0x" + "ab" * 32
ME = "0x" + "cd" * 20
PLAIN = "31337-abababab-cdcdcdcd"


def deployed(number: int, arithmetic: int = 1, genesis: str = GENESIS) -> Deployment:
    """A deployment whose addresses begin with `number`, made in block 10 * `number`."""
    address = f"0x{number:02x}" + "00" * 19
    return Deployment(
        chain_id=31337,
        genesis=genesis,
        block=10 * number,
        deployer=ME,
        salt=str(number),
        addresses=Addresses(**dict.fromkeys(Addresses.model_fields, address)),
        parameters=DEVNET,
        beacon=DEVELOPMENT,
        arithmetic=arithmetic,
    )


def client(deployment: Deployment) -> Client:
    """A stub client of the account at a deployment."""
    made = SimpleNamespace(
        connection=SimpleNamespace(chain_id=31337, genesis=GENESIS),
        deployment=deployment,
        market=SimpleNamespace(address=deployment.addresses.market),
        address=ME,
    )
    return cast(Client, made)


@pytest.fixture
def home() -> Home:
    """The environment's home, which has the deployment files."""
    return Home.find()


def used(home: Home, *deployments: Deployment) -> None:
    """Create the account's data in these deployments."""
    for one in deployments:
        open_database(Database, home, client(one)).close()


def former(home: Home, deployment: Deployment) -> Path:
    """Create the account's data of `deployment` in the folder that early releases used. Those releases knew
    only one deployment per chain. Returns the folder.
    """
    folder = home.folder("solver", PLAIN)
    Database(folder / "solver.sqlite", Identity(GENESIS, deployment.addresses.market, ME)).close()
    return folder


def test_each_deployment_has_a_folder_of_its_own(home: Home) -> None:
    used(home, deployed(1), deployed(2))
    folders = sorted(path.name for path in (home.root / "solver").iterdir())
    assert folders == [f"{PLAIN}-01000000", f"{PLAIN}-02000000"]


def test_the_folder_of_an_earlier_release_stays_that_of_its_market(home: Home) -> None:
    folder = former(home, deployed(1))
    assert data_folder(Database, home, client(deployed(1))) == folder
    assert data_folder(Database, home, client(deployed(2))).name == f"{PLAIN}-02000000"


def test_deployments_in_which_the_account_has_data_are_served_the_earliest_first(home: Home) -> None:
    for number in (3, 1, 4, 2):
        save_deployment(deployed(number))
    former(home, deployed(1))
    used(home, deployed(3), deployed(2))
    assert earlier_deployments(Database, home, client(deployed(2))) == [deployed(1), deployed(3)]
    known = deployments_of(31337, GENESIS)
    assert {one.addresses.market for one in known} == {deployed(n).addresses.market for n in (1, 2, 3, 4)}


def test_data_without_their_deployment_file_are_named_and_not_passed_over(home: Home) -> None:
    save_deployment(deployed(2))
    folder = former(home, deployed(1))
    with pytest.raises(DatabaseError, match=rf"{folder}.*none of the market at 0x0100.*31337-01000000\.json"):
        earlier_deployments(Database, home, client(deployed(2)))


def test_a_file_of_another_chain_with_the_same_id_is_none_of_these(home: Home) -> None:
    save_deployment(deployed(1, genesis="0x" + "ee" * 32))
    former(home, deployed(1))
    with pytest.raises(DatabaseError, match="none of the market"):
        earlier_deployments(Database, home, client(deployed(2)))


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\x00" + bytes(4_080)])
def test_damaged_data_are_refused_and_left_as_they_are(home: Home, content: bytes) -> None:
    file = home.folder("solver", PLAIN) / "solver.sqlite"
    file.write_bytes(content)
    with pytest.raises(DatabaseError, match="put a backup in its place"):
        earlier_deployments(Database, home, client(deployed(2)))
    with pytest.raises(DatabaseError, match="put a backup in its place"):
        data_folder(Database, home, client(deployed(2)))
    assert file.read_bytes() == content


def test_a_file_that_was_never_begun_is_of_no_deployment(home: Home) -> None:
    (home.folder("solver", PLAIN) / "solver.sqlite").touch()
    assert earlier_deployments(Database, home, client(deployed(2))) == []
    assert data_folder(Database, home, client(deployed(2))).name == f"{PLAIN}-02000000"


@pytest.mark.parametrize(("mine", "other", "which"), [(2, 1, "0x0200"), (1, 2, "0x0100")])
def test_an_arithmetic_that_this_release_does_not_compute_asks_for_another_release(
    home: Home, mine: int, other: int, which: str
) -> None:
    save_deployment(deployed(1, arithmetic=other))
    former(home, deployed(1))
    told = (
        rf"contracts at {which}.*expected a version that this release computes: 1, got 2; install the release"
    )
    with pytest.raises(UnknownArithmetic, match=told):
        earlier_deployments(Database, home, client(deployed(2, arithmetic=mine)))
