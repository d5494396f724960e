"""Deployments that are hindered by crashes, by strangers, or by nodes without old states. When resumed, they
send nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from protocol.beacon.networks import DEVELOPMENT
from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.connection import Connection
from protocol.chain.create2 import creation_call
from protocol.chain.deploy import deploy
from protocol.chain.deployed_code import require_package_code
from protocol.chain.deployment import Deployment, copy_to_keep, deployment_file, save_deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import DeploymentError, NotMined, RpcRefused
from protocol.chain.initialisation import Initialisation, block_before_initialisation, is_initialised
from protocol.chain.parameters import DEVNET
from protocol.chain.plan import plan
from protocol.chain.transactions import Sender, Sending
from tests.chain.conftest import QUICK

pytestmark = pytest.mark.chain

DEPLOYER = str(development_account(0, DEVELOPMENT_CHAIN).address)
IMPATIENT = Sending(timeout=0.5, poll=0.01)


@pytest.fixture
def fresh() -> Iterator[Devnet]:
    with Devnet(block_time=None) as running:
        yield running


def sender(chain: Devnet, index: int = 0, sending: Sending = QUICK) -> Sender:
    return Sender(chain.connection, development_account(index, chain.chain_id), sending)


def forget_old_states(patch: pytest.MonkeyPatch, kept: int) -> None:
    """Make the node answer like a full node, which has the states of only the newest `kept` blocks."""
    real = Connection.request

    def request(self: Connection, method: str, *parameters: Any, **options: Any) -> Any:
        if method in ("eth_call", "eth_getCode") and str(parameters[-1]).startswith("0x"):
            head = int(real(self, "eth_blockNumber"), 16)
            if int(parameters[-1], 16) < head - kept:
                raise RpcRefused(method, "missing trie node")
        return real(self, method, *parameters, **options)

    patch.setattr(Connection, "request", request)


def cut_at_the_end(patch: pytest.MonkeyPatch, chain: Devnet) -> None:
    """Deploy everything, but end with an error before the deployment file is written."""
    with patch.context() as cut, sender(chain) as sending:
        cut.setattr("protocol.chain.deploy.save_deployment", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            deploy(sending)


def test_a_deployment_cut_after_its_first_contracts_goes_on_through_a_full_node(
    fresh: Devnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = plan(DEPLOYER, DEVNET, DEVELOPMENT)
    with sender(fresh) as first:
        for made in due.creations[:2]:
            first.send(creation_call(due.salt, made.code, made.key))
    fresh.mine(300)
    forget_old_states(monkeypatch, 128)
    with sender(fresh) as again:
        deployed = deploy(again)
    assert not is_initialised(fresh.connection, deployed.addresses, deployed.block)
    require_package_code(fresh.connection, deployed)


def test_a_deployment_cut_before_its_file_has_the_block_from_the_journal(
    fresh: Devnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_at_the_end(monkeypatch, fresh)
    end = fresh.connection.block().number
    fresh.mine(300)
    forget_old_states(monkeypatch, 128)
    sent = fresh.connection.transaction_count(DEPLOYER)
    with sender(fresh) as again:
        assert deploy(again).block == end - 1
    assert fresh.connection.transaction_count(DEPLOYER) == sent


@pytest.mark.parametrize("later", [0, 1, 2, 5, 63, 100])
def test_without_a_journal_the_block_is_searched_back_from_the_newest(
    fresh: Devnet, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    fresh.mine(200)
    cut_at_the_end(monkeypatch, fresh)
    end = fresh.connection.block().number
    if later:
        fresh.mine(later)
    forget_old_states(monkeypatch, 110)
    assert (
        block_before_initialisation(fresh.connection, plan(DEPLOYER, DEVNET, DEVELOPMENT).addresses)
        == end - 1
    )


def test_a_block_too_old_for_the_node_is_one_clear_error(
    fresh: Devnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh.mine(20)
    cut_at_the_end(monkeypatch, fresh)
    fresh.mine(50)
    forget_old_states(monkeypatch, 10)
    with pytest.raises(DeploymentError, match="got missing trie node; name the URL of an archive node"):
        block_before_initialisation(fresh.connection, plan(DEPLOYER, DEVNET, DEVELOPMENT).addresses)


def test_a_stranger_who_made_the_vault_long_ago_is_no_obstacle(
    fresh: Devnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = plan(DEPLOYER, DEVNET, DEVELOPMENT)
    with sender(fresh, 7) as stranger:
        for made in due.creations:
            stranger.send(creation_call(due.salt, made.code, made.key))
    fresh.mine(500)
    forget_old_states(monkeypatch, 2)
    with sender(fresh) as sending:
        deployed = deploy(sending)
    assert deployed.block == fresh.connection.block().number - 1


def test_a_repeated_deployment_waits_for_what_the_first_one_sent() -> None:
    with Devnet(block_time=None) as slow:
        slow.connection.request("evm_setAutomine", False)
        for _ in range(2):
            with sender(slow, sending=IMPATIENT) as sending, pytest.raises(NotMined):
                deploy(sending)
        assert slow.connection.transaction_count(DEPLOYER, "pending") == 1
        slow.connection.request("evm_setAutomine", True)
        slow.mine(1)
        with sender(slow) as sending:
            deploy(sending)
        assert slow.connection.transaction_count(DEPLOYER) == 13, "eleven contracts, two initialisations"


def test_what_the_node_lost_is_handed_over_again(fresh: Devnet) -> None:
    fresh.connection.request("evm_setAutomine", False)
    with sender(fresh, sending=IMPATIENT) as sending, pytest.raises(NotMined):
        deploy(sending)
    fresh.connection.request("anvil_dropAllTransactions")
    fresh.connection.request("evm_setAutomine", True)
    with sender(fresh) as sending:
        deploy(sending)
    assert fresh.connection.transaction_count(DEPLOYER) == 13


def test_what_an_earlier_command_signed_is_handed_over_before_anything_new(
    fresh: Devnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh.connection.request("evm_setAutomine", False)
    with sender(fresh, sending=IMPATIENT) as sending, pytest.raises(NotMined):
        deploy(sending)
    fresh.connection.request("anvil_dropAllTransactions")
    monkeypatch.setattr(Sender, "send", lambda *_: 1 / 0)
    with sender(fresh) as sending, pytest.raises(ZeroDivisionError):
        deploy(sending)
    assert fresh.connection.transaction_count(DEPLOYER, "pending") == 1


def test_contracts_that_were_initialised_at_the_same_moment_are_found(
    fresh: Devnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same account has deployed everything from another machine, so this machine has no journal of it. In
    addition, some reads here are stale: they do not yet show the initialisation.
    """
    with pytest.MonkeyPatch.context() as elsewhere, sender(fresh) as sending:
        elsewhere.setattr("protocol.chain.deploy.save_deployment", lambda _: None)
        there = deploy(sending)
        sending.journal.path.unlink()
    stale = [
        True,
        True,
        False,
        True,
        False,
        True,
    ]  # `prepare` asks twice, each step before and after sending
    real = Initialisation.is_done
    monkeypatch.setattr(Initialisation, "is_done", lambda self: real(self) and (not stale or stale.pop(0)))
    with sender(fresh) as sending:
        assert deploy(sending) == there
    assert not stale


def test_contracts_initialised_with_others_are_refused_before_anything_is_sent(
    chain: Devnet, deployed: Deployment
) -> None:
    """A market with other parameters but the same deployer, token and salt would have the same vault. That
    vault is already initialised with the existing market, so the deployment is refused.
    """
    sent = chain.connection.transaction_count(DEPLOYER)
    other = replace(DEVNET, draw_delay=DEVNET.draw_delay + 1)
    with sender(chain) as sending, pytest.raises(DeploymentError, match=r"StakeVault .* --salt"):
        deploy(sending, other)
    assert chain.connection.transaction_count(DEPLOYER) == sent
    assert deployed.deployer == DEPLOYER


def test_a_file_that_cannot_be_read_is_kept_beside_the_new_one(deployed: Deployment) -> None:
    path = deployment_file(deployed.chain_id)
    first_version = json.loads(deployed.model_dump_json()) | {"version": 1}
    for name in ("deployer", "salt"):
        del first_version[name]
    for text in (json.dumps(first_version), "damaged"):
        path.write_text(text)
        copy = copy_to_keep(deployed)
        save_deployment(deployed)
        assert copy is not None
        assert copy.parent == path.parent
        assert copy.read_text() == text
    assert len(list(path.parent.iterdir())) == 3


def test_a_file_that_cannot_be_opened_is_refused_before_anything_is_sent(fresh: Devnet) -> None:
    deployment_file(fresh.chain_id).mkdir()
    with sender(fresh) as sending, pytest.raises(DeploymentError, match="to keep a copy of"):
        deploy(sending)
    assert fresh.connection.transaction_count(DEPLOYER) == 0
