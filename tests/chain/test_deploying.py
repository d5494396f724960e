"""`assay deploy` and `assay submit` where money is real: nothing is made, replaced or announced by oversight."""

from __future__ import annotations

from pathlib import Path

import pytest
from eth_account import Account

from assay.commands import Context, deploy_contracts, submit
from protocol.chain.deploy import deploy
from protocol.chain.deployment import Deployment, kept_file, load_deployment, save_deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import DeploymentError
from protocol.chain.transactions import Sender
from protocol.node.home import Home
from protocol.node.http import NotPublic
from protocol.node.output import Output
from tests.chain.conftest import QUICK

pytestmark = pytest.mark.chain

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.toml"
ELSEWHERE = "0x" + "11" * 20


def context(tmp_path: Path, url: str) -> Context:
    return Context(Home(tmp_path), {"rpc": url, "account": "dev:0"}, Output("test", as_json=True))


def test_only_a_development_chain_gets_a_token_that_anyone_can_mint(tmp_path: Path) -> None:
    with Devnet(block_time=None, chain_id=4242) as real:
        with (
            Sender(real.connection, Account.create(), QUICK) as sender,
            pytest.raises(DeploymentError, match="--token"),
        ):
            deploy(sender)
        assert real.connection.transaction_count(sender.address) == 0
        with pytest.raises(DeploymentError, match="--token"):
            deploy_contracts(context(tmp_path, real.url), None, None, dry_run=True)
        with pytest.raises(NotPublic, match="--bundles-url"):
            submit(context(tmp_path, real.url), EXAMPLE, dry_run=False)


def test_the_file_of_other_contracts_on_the_same_chain_is_kept(deployed: Deployment) -> None:
    path = save_deployment(deployed)
    save_deployment(deployed)
    assert list(path.parent.iterdir()) == [path], "the same contracts"
    addresses = deployed.addresses.model_copy(update={"market": ELSEWHERE})
    later = deployed.model_copy(update={"addresses": addresses})
    save_deployment(later)
    assert load_deployment(31337) == later
    assert load_deployment(kept_file(deployed)) == deployed
    save_deployment(deployed.model_copy(update={"genesis": "0x" + "22" * 32}))
    assert not kept_file(later).exists(), "contracts of a chain that is gone"


def test_a_dry_run_says_what_would_be_deployed(
    chain: Devnet, deployed: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy_contracts(context(tmp_path, chain.url), None, None, dry_run=True)
    assert "six contracts, a test token among them" in capsys.readouterr().err
    deploy_contracts(context(tmp_path, chain.url), deployed.addresses.token, None, dry_run=True)
    assert f"five contracts for token {deployed.addresses.token}" in capsys.readouterr().err
