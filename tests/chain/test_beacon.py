"""The development chain's beacon, which follows the chain's clock instead of the wall clock, and the beacon's
commands.
"""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from assay.beacon import development_beacon
from examples.demo.preloaded import Forked
from protocol.beacon.bn254 import P, hints, public_key, round_message, sign, word
from protocol.beacon.errors import NoRelay
from protocol.beacon.keys import secret_of
from protocol.beacon.networks import DEVELOPMENT
from protocol.beacon.relays import Relays
from protocol.beacon.rounds import Network
from protocol.chain.abi import contract
from protocol.chain.accounts import create_account, development_account
from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from protocol.chain.errors import Reverted
from protocol.chain.fees import Call
from protocol.chain.transactions import Sender
from protocol.errors import ExitCode
from protocol.node.http import PortTaken
from tests.bls import is_signed
from tests.chain.conftest import Connect
from tests.chain.test_verifier_watch import wait
from tests.forked import run, start
from tests.unit.beacon.networks import get

pytestmark = pytest.mark.chain

FAR = 10**6
"""Seconds by which the chain's clock is moved ahead. Also the number of a round."""


def test_rounds_come_with_the_chain_s_time_however_far_it_is_moved(chain: Devnet) -> None:
    with development_beacon(chain.connection, 0) as serving:
        relays = Relays(DEVELOPMENT, [serving.url], partial(is_signed, DEVELOPMENT))
        now = DEVELOPMENT.round_at(chain.connection.block().time)
        assert relays.signature(now)
        with pytest.raises(NoRelay, match="status 425"):
            relays.signature(now + FAR)
        chain.skip(FAR)
        assert relays.signature(now + FAR)


def test_the_newest_round_is_that_of_the_newest_block_and_no_later_one_is_signed(chain: Devnet) -> None:
    with development_beacon(chain.connection, 0) as serving:
        for seconds in (1, 7, 100):
            newest = chain.connection.block().time
            assert get(serving.url, "/public/latest")[1]["round"] == newest
            assert get(serving.url, f"/public/{newest + 1}")[0] == 425
            chain.connection.request("evm_setNextBlockTimestamp", newest + seconds)
            assert get(serving.url, f"/public/{newest + 1}")[0] == 425, "no block has that time yet"
            chain.mine()
            assert get(serving.url, f"/public/{newest + 1}")[0] == 200


def test_a_chain_that_was_taken_back_takes_its_newest_rounds_along(chain: Devnet) -> None:
    with development_beacon(chain.connection, 0) as serving:
        snapshot = chain.connection.request("evm_snapshot")
        chain.skip(500)
        newest = chain.connection.block().time
        assert get(serving.url, f"/public/{newest}")[0] == 200
        assert chain.connection.request("evm_revert", snapshot)
        assert get(serving.url, f"/public/{newest}")[0] == 425


def test_the_contract_says_of_a_signature_what_another_library_says(
    chain: Devnet, deployed: Deployment, connected: Connect
) -> None:
    network, beacon = deployed.beacon, connected(1).beacon
    secret = secret_of(bytes(development_account(0, chain.chain_id).key))
    right = sign(secret, round_message(FAR))
    mirrored = right[:32] + (P - int.from_bytes(right[32:], "big")).to_bytes(32, "big")
    others = (sign(secret + 1, round_message(FAR)), sign(secret, round_message(FAR + 1)), mirrored)
    no_points = (bytes(64), b"\1" * 64, P.to_bytes(32, "big") + right[32:], b"\xff" * 64)
    for signature in (right, *others, *no_points):
        assert (
            beacon.is_signed_round(FAR, signature)
            == is_signed(network, FAR, signature)
            == (signature == right)
        )


def test_the_contract_takes_what_a_relay_gave(
    chain: Devnet, deployed: Deployment, sender: Sender, connected: Connect
) -> None:
    made, at = contract("DrandBeacon"), deployed.addresses.beacon
    with development_beacon(chain.connection, 0) as serving:
        relays = Relays(deployed.beacon, [serving.url], connected(1).beacon.is_signed_round)
        for ahead in (1, FAR):
            chain.skip(ahead)
            number = deployed.beacon.round_at(chain.connection.block().time)
            signature = relays.signature(number)
            arguments = (number, signature, hints(round_message(number)))
            (shown,) = chain.connection.call(made, at, "word", *arguments)
            assert shown == word(signature)
            sender.send(Call(at, made.encode("show", arguments), "DrandBeacon.show"))
            assert chain.connection.call(made, at, "latest") == (number,)
        later = number + 1000
        signature = sign(secret_of(bytes(development_account(0, chain.chain_id).key)), round_message(later))
        arguments = (later, signature, hints(round_message(later)))
        with pytest.raises(Reverted, match="RoundOutside"):
            chain.connection.call(made, at, "show", *arguments)


def test_a_port_in_use_is_named_with_the_option_for_another(chain: Devnet) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(PortTaken, match="choose another --beacon-port"),
    ):
        development_beacon(chain.connection, taken.getsockname()[1])


class Command:
    """A running `assay` command. Its start is over once a printed line contains `ready`; `said` holds all
    lines printed by then.
    """

    def __init__(self, process: Forked, log: Path, ready: str) -> None:
        self._process = process
        wait(lambda: process.poll() is not None or ready in log.read_text())
        self.said = log.read_text().splitlines()
        assert any(ready in line for line in self.said), f"ended: {self.said}"

    def address(self, words: str) -> str:
        """The address in the line with these words."""
        (line,) = (line for line in self.said if words in line)
        return next(word.rstrip(",;") for word in line.split() if word.startswith("http://"))

    def end(self) -> int:
        """Ask the command to stop; returns its exit code."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(60)


@contextmanager
def running(home: Path, *arguments: str, ready: str) -> Iterator[Command]:
    log = home / "command.log"
    process = start("assay.cli", *arguments, "--home", str(home), log=log)
    try:
        yield Command(process, log, ready)
    finally:
        process.kill()
        process.wait()


def test_devnet_starts_a_beacon_and_shows_its_address(tmp_path: Path) -> None:
    with running(tmp_path, "devnet", "--port", "0", "--beacon-port", "0", ready="Ctrl-C ends it") as devnet:
        url = devnet.address("beacon at")
        status, info = get(url, "/info")
        assert (status, info["hash"], info["period"]) == (200, DEVELOPMENT.chain_hash, 1)
        newest = get(url, "/public/latest")[1]["round"]
        assert Relays(DEVELOPMENT, [url], partial(is_signed, DEVELOPMENT)).signature(newest)
        assert devnet.end() == ExitCode.FINE
    with pytest.raises(NoRelay, match="ConnectError"):
        Relays(DEVELOPMENT, [url], partial(is_signed, DEVELOPMENT)).signature(newest)


def test_a_beacon_signs_with_the_key_of_an_account_s_file(chain: Devnet, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse\n")
    home = tmp_path / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(home))
        secret = secret_of(bytes(create_account("signer", password).key))
    fields: dict[str, Any] = DEVELOPMENT.model_dump() | {
        "beacon_id": "ours",
        "public_key": public_key(secret).hex(),
        "genesis_time": 1_700_000_000,
        "period": 30,
    }
    network = Network(**fields)
    file = tmp_path / "ours.toml"
    file.write_text("\n".join(["[network]", *(f"{k} = {json.dumps(v)}" for k, v in fields.items()), ""]))
    account = ("--account", "signer", "--password-file", str(password))
    arguments = ("beacon", "--rpc", chain.url, "--network", str(file), "--port", "0")
    with running(home, *arguments, *account, ready="chain hash") as beacon:
        newest = network.round_at(chain.connection.block().time)
        assert Relays(network, [beacon.address("beacon ours")], partial(is_signed, network)).signature(newest)
        assert f"{secret:x}" not in "".join(beacon.said)
        assert beacon.end() == ExitCode.FINE


def failed(home: Path, *arguments: str) -> str:
    """Run a command that must be refused; returns its only line of error output."""
    done = run("assay.cli", *arguments, "--home", str(home))
    assert (done.returncode, done.stdout) == (ExitCode.HOPELESS, "")
    (line,) = done.stderr.splitlines()
    return line


def test_a_beacon_of_another_key_is_refused_with_the_key_that_would_fit(
    chain: Devnet, tmp_path: Path
) -> None:
    line = failed(tmp_path, "beacon", "--rpc", chain.url, "--dev-account", "3", "--port", "0")
    assert line.startswith("error: beacon network development: expected public_key ")
    assert line.endswith("or a network file with this key")


def test_on_a_real_chain_there_is_no_beacon_of_the_published_key(tmp_path: Path) -> None:
    with Devnet(block_time=None, chain_id=4242) as real:
        line = failed(tmp_path, "beacon", "--rpc", real.url, "--port", "0")
        assert "beacon network for chain 4242: expected a file that describes it" in line
        line = failed(tmp_path, "beacon", "--rpc", real.url, "--network", "development", "--port", "0")
        assert "account dev:0: expected chain id 31337" in line
