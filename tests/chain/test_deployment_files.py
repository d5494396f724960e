"""Untrusted deployment files, loaded or given to `assay deploy --check`: a false file is never accepted, and
no file hides events.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from protocol.chain.deployed_code import require_package_code
from protocol.chain.deployment import Deployment, load_deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import DeploymentError
from protocol.errors import ExitCode
from tests import forked
from tests.chain.test_deployments_cut_short import forget_old_states

pytestmark = pytest.mark.chain


def changed(deployed: Deployment, change: dict[str, Any]) -> dict[str, Any]:
    fields = json.loads(deployed.model_dump_json())
    for name, value in change.items():
        table, _, field = name.rpartition(".")
        (fields[table] if table else fields)[field] = value
    return dict(fields)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.run("assay.cli", "deploy", *arguments)


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"parameters.min_period": 2**33}, "min_period must be 1 to"),
    ({"parameters.min_period": -1}, "min_period must be 1 to"),
    ({"parameters.draw_fee": 2**200}, "draw_fee must be"),
    ({"parameters.stall_period": 2**32}, "stall_period must be"),
    ({"parameters.unbonding_period": -1}, "unbonding_period must be"),
    ({"parameters.stake_unit": 1.5}, "parameters.stake_unit"),
    ({"parameters.stake_unit": True}, "parameters.stake_unit"),
    ({"addresses.vault": "0xABCdefabcdefabcdefabcdefabcdefabcdefabcd"}, "wrong checksum"),
    ({"addresses.vault": "0x" + "g" * 40}, "addresses.vault"),
    ({"salt": "s" * 65}, "salt"),
    ({"beacon.period": 0}, "beacon.period"),
    ({"beacon.genesis_time": 2**63}, "beacon.genesis_time"),
    ({"beacon.public_key": "00"}, "beacon.public_key"),
    ({"beacon.scheme": "pedersen-bls-chained"}, "beacon.scheme"),
    ({"addresses.beacon": "0x00"}, "addresses.beacon"),
    ({"arithmetic": 0}, "arithmetic"),
    ({"block": -1}, "block"),
    ({"block": 2**63}, "block"),
    ({"chain_id": 2**64}, "chain_id"),
]


@pytest.mark.parametrize(("change", "message"), HOSTILE)
def test_values_that_no_contract_can_have_are_refused(
    deployed: Deployment, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    file = tmp_path / "deployment.json"
    file.write_text(json.dumps(changed(deployed, change)))
    with pytest.raises(DeploymentError, match=message):
        load_deployment(file)


def test_a_number_too_long_to_be_printed_is_refused(deployed: Deployment, tmp_path: Path) -> None:
    """Python refuses to print integers of more than 4,300 digits."""
    file = tmp_path / "deployment.json"
    file.write_text(re.sub('"block":[0-9]+', f'"block":{"9" * 5_000}', deployed.model_dump_json()))
    with pytest.raises(DeploymentError, match="number out of range"):
        load_deployment(file)


def test_a_salt_that_is_no_text_is_refused(deployed: Deployment, tmp_path: Path) -> None:
    file = tmp_path / "deployment.json"
    file.write_text(json.dumps(changed(deployed, {"salt": "@"})).replace('"@"', '"\\ud800"'))
    with pytest.raises(DeploymentError, match=r"deployment\.json"):
        load_deployment(file)


@pytest.mark.parametrize("form", [str.lower, lambda digits: digits.upper().replace("0X", "0x")])
def test_addresses_without_a_checksum_get_one(
    chain: Devnet, deployed: Deployment, tmp_path: Path, form: Any
) -> None:
    fields = json.loads(deployed.model_dump_json())
    fields["addresses"] = {name: form(address) for name, address in fields["addresses"].items()}
    fields["deployer"] = form(fields["deployer"])
    file = tmp_path / "deployment.json"
    file.write_text(json.dumps(fields))
    assert load_deployment(file) == deployed
    require_package_code(chain.connection, load_deployment(file))


def test_a_hostile_file_ends_the_check_with_the_code_for_hopeless(
    chain: Devnet, deployed: Deployment, tmp_path: Path
) -> None:
    file = tmp_path / "deployment.json"
    file.write_text(json.dumps(changed(deployed, {"parameters.min_period": 2**33})))
    done = run("--check", "--rpc", chain.url, "--deployment", str(file), "--home", str(tmp_path))
    assert done.returncode == ExitCode.HOPELESS
    assert done.stderr.startswith(f"error: deployment {file}")


@pytest.mark.parametrize("late", [0, 1, 10**15])
def test_a_block_that_hides_events_is_refused(chain: Devnet, deployed: Deployment, late: int) -> None:
    """The block in a deployment file must be before the initialisation. A solver that follows the chain from
    a later block might miss that it was challenged.
    """
    chain.mine(5)
    block = deployed.block + 1 if not late else chain.connection.block().number - 1 + late
    with pytest.raises(DeploymentError, match="hides challenges"):
        require_package_code(chain.connection, deployed.model_copy(update={"block": block}))


def test_every_block_before_the_initialisation_is_right(chain: Devnet, deployed: Deployment) -> None:
    for block in range(deployed.block + 1):
        require_package_code(chain.connection, deployed.model_copy(update={"block": block}))


def test_a_block_that_the_node_cannot_verify_is_no_success(
    chain: Devnet, deployed: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.mine(20)
    forget_old_states(monkeypatch, 5)
    with pytest.raises(DeploymentError, match="block could not be verified; name the URL of an archive node"):
        require_package_code(chain.connection, deployed)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--check", "--token", "0x" + "11" * 20], "--token with --check"),
        (["--check", "--parameters", "devnet", "--salt", "x"], "--parameters, --salt with --check"),
        (["--check", "--beacon", "evmnet"], "--beacon with --check"),
        (["--check", "--dry-run"], "--dry-run with --check"),
        (["--deployment", "file.json"], "--deployment without --check"),
    ],
)
def test_options_that_would_be_ignored_are_refused(tmp_path: Path, options: list[str], words: str) -> None:
    done = run(*options, "--home", str(tmp_path))
    assert done.returncode == ExitCode.HOPELESS
    assert words in done.stderr
