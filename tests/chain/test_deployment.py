"""Deployments: the file is correct, unsuitable chains are refused, and an earlier chain's file is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from protocol.beacon.networks import DEVELOPMENT
from protocol.chain.abi import contract
from protocol.chain.accounts import development_account
from protocol.chain.client import connect
from protocol.chain.deploy import deploy
from protocol.chain.deployment import Deployment, deployment_file, load_deployment, save_deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import DeploymentError, RpcRefused, UnsuitableChain, WrongChain
from protocol.chain.parameters import DEVNET
from protocol.chain.probe import probe
from protocol.chain.transactions import Sender
from tests.chain.conftest import QUICK, Connect

pytestmark = pytest.mark.chain


def test_the_file_comes_back_and_the_contracts_know_each_other(
    deployed: Deployment, connected: Connect
) -> None:
    path = save_deployment(deployed)
    assert path == deployment_file(31337)
    assert load_deployment(31337) == deployed
    client = connected(1)
    assert client.market.parameters() == DEVNET == deployed.parameters
    assert client.market.read("board").lower() == deployed.addresses.audit.lower()
    assert client.market.read("game").lower() == deployed.addresses.game.lower()
    assert client.market.read("looks").lower() == deployed.addresses.looks.lower()
    assert client.market.read("juries").lower() == deployed.addresses.juries.lower()
    assert client.market.read("commitments").lower() == deployed.addresses.commitments.lower()
    key, genesis, period = (
        client.connection.call(contract("DrandBeacon"), deployed.addresses.beacon, name)[0]
        for name in ("key", "genesis", "period")
    )
    assert b"".join(part.to_bytes(32, "big") for part in key) == deployed.beacon.key == DEVELOPMENT.key
    assert (genesis, period) == (deployed.beacon.genesis_time, deployed.beacon.period)
    assert client.vault.read("token").lower() == deployed.addresses.token.lower()
    assert (client.market.tasks(), client.game.games(), client.audit.registered()) == (0, 0, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 5}, "version"),
        ({"surprise": 1}, "surprise"),
        ({"genesis": "0x00"}, "genesis"),
        ({"addresses": {"token": "0x0"}}, "addresses"),
    ],
)
def test_a_file_of_another_form_is_refused(
    deployed: Deployment, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "deployment.json"
    path.write_text(json.dumps(json.loads(deployed.model_dump_json()) | change))
    with pytest.raises(DeploymentError, match=message):
        load_deployment(path)


def test_a_missing_or_huge_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="assay deploy"):
        load_deployment(1)
    huge = tmp_path / "huge.json"
    huge.write_bytes(b" " * 100_000)
    with pytest.raises(DeploymentError, match="at most"):
        load_deployment(huge)


def test_a_deployment_of_an_earlier_development_chain_is_noticed(deployed: Deployment) -> None:
    with (
        Devnet(block_time=None) as fresh,
        pytest.raises(DeploymentError, match="another chain with the same id"),
    ):
        connect(fresh.url, deployed)


def test_a_node_of_another_chain_is_refused(chain: Devnet, deployed: Deployment) -> None:
    other = deployed.model_copy(update={"chain_id": 1})
    with pytest.raises(WrongChain, match="expected 1, got 31337"):
        connect(chain.url, other)


def test_every_property_that_the_contracts_need_is_there(chain: Devnet) -> None:
    probe(chain.connection)


def test_a_chain_without_pairings_is_refused_before_anything_is_sent() -> None:
    """No draw could be executed on such a chain."""
    with Devnet(block_time=None, hardfork="spuriousdragon") as old:
        account = development_account(0, old.chain_id)
        with (
            Sender(old.connection, account, QUICK) as sender,
            pytest.raises(UnsuitableChain, match=r"pairing precompile of BN254: .* got nothing"),
        ):
            deploy(sender)
        assert old.connection.transaction_count(sender.address) == 0


def test_a_token_must_be_a_contract(chain: Devnet) -> None:
    with (
        Sender(chain.connection, development_account(5, chain.chain_id), QUICK) as sender,
        pytest.raises(UnsuitableChain, match="no code"),
    ):
        deploy(sender, token="0x" + "11" * 20)


def test_an_address_without_the_contract_is_one_clear_error(chain: Devnet, deployed: Deployment) -> None:
    wrong = deployed.addresses.model_copy(update={"vault": "0x" + "11" * 20})
    client = connect(chain.url, deployed.model_copy(update={"addresses": wrong}))
    with pytest.raises(RpcRefused, match="check the deployment file"):
        client.vault.burned()
