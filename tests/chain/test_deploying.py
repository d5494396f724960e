"""`assay deploy` and `assay submit`: nothing is made, replaced, accepted or announced by accident."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from eth_account import Account

from assay.commands import Context, check_contracts, deploy_contracts
from assay.posting import Choices, submit
from protocol.beacon.networks import DEVELOPMENT, EVMNET
from protocol.chain.abi import contract
from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.create2 import PROXY, address_of, creation_call, first_made_by
from protocol.chain.deploy import deploy
from protocol.chain.deployed_code import require_package_code
from protocol.chain.deployment import Deployment, kept_file, load_deployment, save_deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import DeploymentError, Reverted, UnsuitableChain
from protocol.chain.fees import Call
from protocol.chain.initialisation import is_initialised
from protocol.chain.parameters import DEVNET
from protocol.chain.plan import Plan, plan
from protocol.chain.transactions import Sender
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.http import NotPublic
from protocol.node.output import Output
from tests.chain.conftest import QUICK
from tests.forked import run

pytestmark = pytest.mark.chain

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.toml"
ELSEWHERE = "0x" + "11" * 20


SALT = bytes(31) + b"\x07"
DEPLOYER = str(development_account(0, DEVELOPMENT_CHAIN).address)


def context(tmp_path: Path, url: str, **flags: object) -> Context:
    return Context(Home(tmp_path), {"rpc": url, "account": "dev:0"} | flags, Output("test", as_json=True))


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
            submit(context(tmp_path, real.url), EXAMPLE, Choices(yes=True))


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


def test_a_dry_run_says_where_everything_will_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Devnet(block_time=None) as fresh:
        deploy_contracts(context(tmp_path, fresh.url), None, None, dry_run=True)
        said = json.loads(capsys.readouterr().out)["data"]
        assert said["missing"] == [
            "token",
            "vault",
            "arbiter",
            "beacon",
            "bounds",
            "market",
            "audit",
            "commitments",
            "looks",
            "juries",
            "game",
        ]
        assert fresh.connection.transaction_count(said["deployer"]) == 0
        with Sender(fresh.connection, development_account(0, fresh.chain_id), QUICK) as sender:
            assert deploy(sender).addresses.model_dump() == said["addresses"]
        deploy_contracts(context(tmp_path, fresh.url), None, None, dry_run=True)
        assert json.loads(capsys.readouterr().out)["data"] == said | {"missing": []}


def test_addresses_are_the_same_on_every_chain_and_change_with_the_arguments() -> None:
    usual = plan(DEPLOYER, DEVNET, DEVELOPMENT)
    assert plan(DEPLOYER, DEVNET, DEVELOPMENT) == usual
    others = [
        plan(ELSEWHERE, DEVNET, DEVELOPMENT),
        plan(DEPLOYER, replace(DEVNET, draw_delay=DEVNET.draw_delay + 1), DEVELOPMENT),
        plan(DEPLOYER, DEVNET, DEVELOPMENT, ELSEWHERE),
        plan(DEPLOYER, DEVNET, DEVELOPMENT, salt="another"),
    ]
    markets = {other.addresses.market for other in (usual, *others)}
    assert len(markets) == 5
    assert others[2].addresses.token == ELSEWHERE
    assert len({plan(DEPLOYER, DEVNET, other).addresses.beacon for other in (DEVELOPMENT, EVMNET)}) == 2
    assert "token" not in {made.key for made in others[2].creations}


def test_the_proxy_s_rule_is_eip_1014_s() -> None:
    """The proxy on anvil returns the same address as `address_of`."""
    with Devnet(block_time=None) as fresh:
        empty = bytes.fromhex("60008080f3")  # creation code that returns no code, yet has an address
        data = SALT + empty
        found = fresh.connection.call_data(PROXY, data, label="proxy")
        assert found.hex() == address_of(SALT, empty)[2:].lower()


def test_deploying_again_sends_nothing(chain: Devnet, deployed: Deployment) -> None:
    account = development_account(0, chain.chain_id)
    sent = chain.connection.transaction_count(str(account.address))
    chain.mine(3)
    for keeps_file in (False, True):
        with Sender(chain.connection, account, QUICK) as sender:
            again = deploy(sender)
        assert again.model_copy(update={"block": deployed.block}) == deployed
        assert not is_initialised(chain.connection, again.addresses, again.block), keeps_file
        assert is_initialised(chain.connection, again.addresses, again.block + 1), keeps_file
    assert chain.connection.transaction_count(str(account.address)) == sent


def test_whoever_creates_the_contracts_first_has_created_ours() -> None:
    with Devnet(block_time=None) as fresh:
        due = plan(DEPLOYER, DEVNET, DEVELOPMENT)
        with Sender(fresh.connection, development_account(7, fresh.chain_id), QUICK) as stranger:
            for made in due.creations[:6]:
                stranger.send(creation_call(due.salt, made.code, made.key))
            at, market = due.addresses, contract("TaskMarket")
            taken = Call(at.market, market.encode("initialise", [at.vault] * 5), "initialise")
            with pytest.raises(Reverted, match="NotAllowed"):
                stranger.send(taken)
        with Sender(fresh.connection, development_account(0, fresh.chain_id), QUICK) as sender:
            made_by_us = deploy(sender)
        assert made_by_us.addresses == due.addresses
        require_package_code(fresh.connection, made_by_us)


def test_a_contract_that_somebody_creates_at_the_same_moment_is_found(
    chain: Devnet, deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All contracts exist, but the deployer takes all of them to be missing, as if somebody had created them
    after it looked.
    """
    everything = plan(DEPLOYER, DEVNET, DEVELOPMENT).creations
    monkeypatch.setattr(Plan, "missing", lambda _plan, _connection: list(everything))
    with Sender(chain.connection, development_account(0, chain.chain_id), QUICK) as sender:
        assert deploy(sender).addresses == deployed.addresses


def test_a_chain_without_the_proxy_is_refused_before_anything_is_sent(chain: Devnet) -> None:
    chain.connection.request("anvil_setCode", PROXY, "0x")
    account = development_account(0, chain.chain_id)
    sent = chain.connection.transaction_count(str(account.address))
    with (
        Sender(chain.connection, account, QUICK) as sender,
        pytest.raises(UnsuitableChain, match=r"got no code there; send 0\.01 .* to 0x3fAB"),
    ):
        deploy(sender, salt="another")
    assert chain.connection.transaction_count(str(account.address)) == sent


def test_the_package_s_contracts_are_recognised(
    chain: Devnet, deployed: Deployment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "deployment.json"
    file.write_text(deployed.model_dump_json())
    check_contracts(context(tmp_path, chain.url, deployment=file))
    assert json.loads(capsys.readouterr().out)["data"]["matches"] is True


def changed_code(chain: Devnet, deployed: Deployment) -> Deployment:
    code = chain.connection.code(deployed.addresses.vault)
    bent = code[:1000] + bytes([code[1000] ^ 1]) + code[1001:]
    chain.connection.request("anvil_setCode", deployed.addresses.vault, "0x" + bent.hex())
    return deployed


def changed_evidence(chain: Devnet, deployed: Deployment) -> Deployment:
    chain.connection.request("anvil_setCode", first_made_by(deployed.addresses.game), "0x00")
    return deployed


def another_deployer(_chain: Devnet, deployed: Deployment) -> Deployment:
    return deployed.model_copy(update={"deployer": ELSEWHERE})


def other_parameters(_chain: Devnet, deployed: Deployment) -> Deployment:
    bent = replace(deployed.parameters, draw_delay=deployed.parameters.draw_delay + 1)
    return deployed.model_copy(update={"parameters": bent})


def another_beacon(_chain: Devnet, deployed: Deployment) -> Deployment:
    return deployed.model_copy(update={"beacon": EVMNET})


def no_contract(_chain: Devnet, deployed: Deployment) -> Deployment:
    addresses = deployed.addresses.model_copy(update={"arbiter": ELSEWHERE})
    return deployed.model_copy(update={"addresses": addresses})


def another_board(chain: Devnet, deployed: Deployment) -> Deployment:
    """A deployment whose vault is initialised with a different board, as by a deployer who wants to take all
    stakes.
    """
    thief = ELSEWHERE[2:].rjust(64, "0")
    slot = next(
        number
        for number in range(16)
        if deployed.addresses.audit[2:].lower()
        in str(chain.connection.request("eth_getStorageAt", deployed.addresses.vault, hex(number), "latest"))
    )
    chain.connection.request("anvil_setStorageAt", deployed.addresses.vault, f"0x{slot:064x}", "0x" + thief)
    return deployed


@pytest.mark.parametrize(
    ("bend", "message"),
    [
        (changed_code, "vault: code at .* differs from the package's StakeVault from byte 1000 on"),
        (changed_evidence, "evidence of the game: 1 bytes of code"),
        (another_deployer, "vault: the package's code at .* but other arguments"),
        (other_parameters, "market: its parameters are"),
        (another_beacon, "beacon: the package's code at .* but other arguments"),
        (no_contract, f"arbiter: no contract at {ELSEWHERE}"),
        (another_board, f"vault: initialised with .*{ELSEWHERE}"),
    ],
)
def test_other_contracts_are_told_apart(
    chain: Devnet,
    deployed: Deployment,
    tmp_path: Path,
    bend: Callable[[Devnet, Deployment], Deployment],
    message: str,
) -> None:
    file = tmp_path / "deployment.json"
    file.write_text(bend(chain, deployed).model_dump_json())
    with pytest.raises(DeploymentError, match=message):
        check_contracts(context(tmp_path, chain.url, deployment=file))


def test_a_check_that_fails_ends_with_the_code_for_hopeless(
    chain: Devnet, deployed: Deployment, tmp_path: Path
) -> None:
    file = tmp_path / "deployment.json"
    file.write_text(other_parameters(chain, deployed).model_dump_json())
    where = ["--rpc", chain.url, "--deployment", str(file), "--home", str(tmp_path)]
    done = run("assay.cli", "deploy", "--check", *where)
    assert done.returncode == ExitCode.HOPELESS
    assert done.stderr.startswith("error: contracts on chain 31337: expected those of this package")
