"""Failures that can be foreseen are found before the first transaction of a deployment, and in a dry run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.commands import Context, deploy_contracts
from protocol.beacon.networks import DEVELOPMENT, EVMNET
from protocol.chain.abi import contract
from protocol.chain.accounts import DEVELOPMENT_CHAIN, development_account
from protocol.chain.beacon import network_of
from protocol.chain.client import connect
from protocol.chain.create2 import PROXY, creation_call
from protocol.chain.deploy import deploy
from protocol.chain.deployable import prepare, simulate
from protocol.chain.deployed_code import differences
from protocol.chain.deployment import MAX_SALT, Deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import DeploymentError, Reverted
from protocol.chain.parameter_bounds import MAX_LEVEL, broken_bound
from protocol.chain.parameters import DEVNET, RECOMMENDED, Parameters, ParametersError
from protocol.chain.plan import plan
from protocol.chain.transactions import Sender
from protocol.errors import AssayError
from protocol.node.home import Home
from protocol.node.output import Output
from protocol.tasks.task import MAX_LOCK
from tests.chain.conftest import QUICK

pytestmark = pytest.mark.chain

DEPLOYER = str(development_account(0, DEVELOPMENT_CHAIN).address)
STRANGER = "0x" + "11" * 20
UINT32 = 2**32 - 1
GREATEST_FLOOR = MAX_LOCK // 64
GREATEST_UNIT = MAX_LOCK >> MAX_LEVEL


def context(tmp_path: Path, url: str, **flags: object) -> Context:
    return Context(Home(tmp_path), {"rpc": url, "account": "dev:0"} | flags, Output("test", as_json=True))


@pytest.fixture
def real() -> Iterator[Devnet]:
    """A chain that is not a development chain, with a test token at `STRANGER`."""
    with Devnet(block_time=None, chain_id=4242) as running:
        running.connection.request("anvil_setCode", STRANGER, "0x" + contract("TestToken").runtime.hex())
        yield running


WRONG: list[tuple[dict[str, object], type[AssayError], str]] = [
    ({"salt": "s" * (MAX_SALT + 1)}, DeploymentError, "at most 64 characters, got 65 characters"),
    ({"salt": "\udcff"}, DeploymentError, "not text in UTF-8"),
    ({"token": "0x12"}, DeploymentError, "40 hexadecimal digits"),
    ({"token": DEPLOYER.swapcase().replace("0X", "0x")}, DeploymentError, "checksum"),
    ({"network": DEVELOPMENT.model_copy(update={"public_key": "00" * 128})}, Reverted, r"NotAKey\("),
    ({"parameters": replace(DEVNET, min_period=0)}, ParametersError, "min_period"),
    (
        {"parameters": replace(DEVNET, unbonding_period=121)},
        ParametersError,
        "unbonding_period: expected 902 to",
    ),
]


@pytest.mark.parametrize(("given", "error", "message"), WRONG)
def test_what_cannot_be_deployed_is_refused_before_anything_is_sent(
    chain: Devnet, given: dict[str, str], error: type[AssayError], message: str
) -> None:
    sent = chain.connection.transaction_count(DEPLOYER)
    with (
        Sender(chain.connection, development_account(0, chain.chain_id), QUICK) as sender,
        pytest.raises(error, match=message),
    ):
        deploy(sender, **given)  # type: ignore[arg-type]
    assert chain.connection.transaction_count(DEPLOYER) == sent


def test_a_dry_run_refuses_the_same(chain: Devnet, tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="at most 64 characters"):
        deploy_contracts(context(tmp_path, chain.url), None, None, dry_run=True, salt="s" * 65)
    file = tmp_path / "parameters.toml"
    text = (Path(__file__).parents[2] / "protocol/chain/presets/devnet.toml").read_text()
    file.write_text(text.replace(f"draw_delay = {DEVNET.draw_delay}", "draw_delay = 0"))
    with pytest.raises(ParametersError, match="draw_delay: expected 1 to 4,294,967,295"):
        deploy_contracts(context(tmp_path, chain.url), None, str(file), dry_run=True)


def test_a_salt_of_the_greatest_length_is_deployed(chain: Devnet) -> None:
    with Sender(chain.connection, development_account(0, chain.chain_id), QUICK) as sender:
        assert deploy(sender, salt="ß" * MAX_SALT).salt == "ß" * MAX_SALT


OUTSIDE = [
    replace(DEVNET, min_clock=0),
    replace(DEVNET, max_clock=DEVNET.min_clock - 1),
    replace(DEVNET, min_period=0),
    replace(DEVNET, min_period=UINT32, max_period=UINT32),
    replace(DEVNET, max_period=DEVNET.min_period + 2 * DEVNET.min_clock - 1),
    replace(DEVNET, opening_period=DEVNET.min_clock - 1),
    replace(DEVNET, draw_delay=0),
    replace(DEVNET, stall_period=8 * (DEVNET.min_period + DEVNET.draw_delay) - 1),
    replace(DEVNET, unbonding_period=DEVNET.draw_delay + DEVNET.stall_period - 1),
    replace(DEVNET, draw_fee=DEVNET.stake_unit + 1),
    replace(DEVNET, stake_unit=0),
    replace(DEVNET, stake_unit=GREATEST_UNIT + 1),
    replace(DEVNET, game_floor=0),
    replace(DEVNET, game_floor=GREATEST_FLOOR + 1),
    replace(DEVNET, capital_rate=10_001),
    replace(RECOMMENDED, capital_rate=10_000 * 365 * 86_400 // (32 * RECOMMENDED.min_clock) + 1),
    replace(DEVNET, min_jurors=0),
    replace(DEVNET, min_jurors=33),
]
AT_THE_BOUNDS = [
    DEVNET,
    RECOMMENDED,
    Parameters(1, 3, 1, 1, 1, 16, 17, 1, 0, 1, 1, 0, 0, 1),
    replace(
        Parameters(
            (UINT32 - 1) // 8 - 1, UINT32, 1, UINT32, 1, UINT32 - 1, UINT32, UINT32, 0, 1, 1, 0, 10_000, 32
        ),
        draw_fee=GREATEST_UNIT,
        stake_unit=GREATEST_UNIT,
        game_floor=GREATEST_FLOOR,
        data_fee=2**64 - 1,
    ),
]


@pytest.mark.parametrize("parameters", [*OUTSIDE, *AT_THE_BOUNDS])
def test_the_bounds_are_those_of_the_market_s_constructor(
    chain: Devnet, deployed: Deployment, parameters: Parameters
) -> None:
    """Python's bounds of the parameters equal those of the market's constructor, which is simulated. The
    deployer and the token are those of the fixture `deployed`, so the vault and the arbiter already exist.
    """
    bound = broken_bound(parameters)
    market = next(made for made in plan(DEPLOYER, parameters, DEVELOPMENT).creations if made.key == "market")
    assert chain.connection.code(deployed.addresses.arbiter)
    if bound is None:
        simulate(chain.connection, market)
        return
    with pytest.raises(Reverted) as caught:
        simulate(chain.connection, market)
    first, *rest = bound.field.split("_")
    assert caught.value.name == "OutOfBounds"
    assert caught.value.arguments == {
        "field": first + "".join(map(str.capitalize, rest)),
        "least": bound.least,
        "most": bound.most,
        "value": getattr(parameters, bound.field),
    }


@pytest.mark.parametrize(
    ("field", "bits"), [("draw_delay", 32), ("stall_period", 32), ("unbonding_period", 32), ("data_fee", 64)]
)
def test_values_that_their_types_cannot_hold_are_out_of_bounds(field: str, bits: int) -> None:
    for value in (-1, 2**bits):
        bound = broken_bound(replace(DEVNET, **{field: value}))
        assert bound is not None
        assert bound.field == field


def test_a_constructor_s_own_error_is_told_though_the_proxy_hides_it(
    chain: Devnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own check of the bounds is switched off, as if its bounds were wider than the market's. The
    deployment then fails with the error of the simulated constructor, before anything is sent.
    """
    monkeypatch.setattr("protocol.chain.deployable.require_within_bounds", lambda _: None)
    monkeypatch.setattr("protocol.chain.deployment.broken_bound", lambda _: None)
    sent = chain.connection.transaction_count(DEPLOYER)
    with (
        Sender(chain.connection, development_account(0, chain.chain_id), QUICK) as sender,
        pytest.raises(Reverted, match=r"constructor of TaskMarket: .* OutOfBounds\(field=drawDelay"),
    ):
        deploy(sender, replace(DEVNET, draw_delay=0))
    assert chain.connection.transaction_count(DEPLOYER) == sent


def test_a_test_token_on_a_chain_whose_money_is_real_is_refused(
    real: Devnet, deployed: Deployment, tmp_path: Path
) -> None:
    with pytest.raises(DeploymentError, match="test token, which anyone can mint"):
        prepare(real.connection, DEPLOYER, RECOMMENDED, STRANGER, "", EVMNET)
    with pytest.raises(DeploymentError, match="test token, which anyone can mint"):
        deploy_contracts(context(tmp_path, real.url), STRANGER, None, dry_run=True)
    at = deployed.addresses.model_copy(update={"token": STRANGER})
    file = deployed.model_copy(update={"chain_id": 4242, "addresses": at})
    assert any("token: a test token" in found for found in differences(real.connection, file))


def test_a_beacon_that_anyone_can_sign_is_refused_where_money_is_real(
    real: Devnet, deployed: Deployment, tmp_path: Path
) -> None:
    with pytest.raises(DeploymentError, match="which anyone can sign for; name another with --beacon"):
        prepare(real.connection, DEPLOYER, RECOMMENDED, STRANGER, "", DEVELOPMENT)
    with pytest.raises(DeploymentError, match="which anyone can sign for"):
        deploy_contracts(context(tmp_path, real.url), STRANGER, None, dry_run=True, beacon="development")
    renamed = DEVELOPMENT.model_copy(update={"beacon_id": "evmnet", "period": 3})
    file = deployed.model_copy(update={"chain_id": 4242, "beacon": renamed})
    assert any("beacon: a development chain's" in found for found in differences(real.connection, file))


def test_a_real_chain_gets_evmnet_and_a_development_chain_its_own() -> None:
    assert network_of(DEVELOPMENT_CHAIN) == DEVELOPMENT
    assert all(network_of(chain_id) == EVMNET for chain_id in (1, 10, 8453, 31338))


def test_tokens_are_given_out_of_the_deployment_just_made(chain: Devnet, tmp_path: Path) -> None:
    """The new tokens are those of the new deployment, even if a setting names another deployment file."""
    named = tmp_path / "named.json"
    named.write_text("of other contracts")
    deploy_contracts(context(tmp_path, chain.url, deployment=named), None, None, dry_run=False, salt="new")
    made = plan(DEPLOYER, DEVNET, DEVELOPMENT, salt="new").addresses
    assert made.token != plan(DEPLOYER, DEVNET, DEVELOPMENT).addresses.token
    with connect(chain.url) as client:
        assert client.deployment.addresses == made
        assert client.token.balance_of(DEPLOYER) > 0


def test_the_proxy_reverts_without_a_reason(chain: Devnet) -> None:
    """If a constructor fails, the proxy reverts without a reason. This is why constructors are simulated
    without the proxy.
    """
    due = plan(DEPLOYER, replace(DEVNET, draw_delay=0), DEVELOPMENT)
    market = next(made for made in due.creations if made.key == "market")
    call = creation_call(due.salt, market.code, "market")
    with pytest.raises(Reverted, match="NoReason"):
        chain.connection.call_data(PROXY, call.data, label=call.label)
