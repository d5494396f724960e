"""The wheel as an operator installs it, without Node or checkout: a task from its file to its payment.

The environment holds the wheel, the requirements in its metadata, and the torch of the tests' environment.
Only anvil comes from the checkout.
"""

from __future__ import annotations

import json
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from examples.demo.children import Children
from protocol.chain.client import Client, connect
from protocol.chain.devnet import anvil_program
from protocol.chain.views import NOBODY, Seat
from protocol.node.home import Home
from protocol.node.http import free_port
from tests.toolchain.wheel import build, environment, sources, with_libraries

pytestmark = [pytest.mark.chain, pytest.mark.timeout(480)]

PATIENCE = 120.0
SOURCE = """
import torch
from torch import nn

from protocol.capture import capture


def build(steps):
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    data = {"x": torch.randn(32, 4), "y": torch.randint(3, (32,))}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def objective(model, batch):
        return nn.functional.cross_entropy(model(batch["x"]), batch["y"]), {}

    return capture(model, objective, optimizer, data, batch_size=8, steps=steps)
"""
TASK = """
[task]
name = "tiny"
source = "tiny.py"
build = "build"
segments = 2
segment_steps = 2
seed = 1

[terms]
budget = 100
stake = 1000
restitution = 100
audit_fee = 2
delay_penalty = 10
bidding_period = 300
training_period = 600
attest_period = 100
extension = 2
challenge_period = 900
clock = 300
verifiers = 1
segments_per_verifier = 1
seat_lock = 3
"""


class Operator:
    """Runs the installed commands in a separate folder."""

    def __init__(self, folder: Path, programs: Path, children: Children, beacon: str) -> None:
        self.folder = folder
        self.beacon = beacon
        self.home = Home(folder / "submitter")
        self.rpc = f"http://127.0.0.1:{free_port('127.0.0.1')}"
        self._programs = programs
        self._children = children

    def background(self, name: str, program: str, *arguments: str, ready: str) -> None:
        """Start a program; wait until it has written `ready`."""
        home = self.home.root if program == "assay" else self.folder / name
        self._children.start(name, [str(self._programs / program), *arguments], home)
        self.wait_until(lambda: ready in self._children.log(name).read_text(), f"{name} writes {ready!r}")

    def wait_until(self, reached: Callable[[], bool], what: str) -> None:
        """Wait until `reached` holds; fails if a program ends."""
        deadline = time.monotonic() + PATIENCE
        while not reached():
            self._children.require_alive()
            assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
            time.sleep(0.1)

    def ended(self, name: str) -> int:
        """Wait until a program ends by itself; returns its exit code."""
        deadline = time.monotonic() + PATIENCE
        while (code := self._children.exit_code(name)) is None:
            assert time.monotonic() < deadline, self._children.log(name).read_text()
            time.sleep(0.1)
        return code

    def type(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return subprocess.run(
            [str(self._programs / command[0]), *command[1:]],
            cwd=self.folder,
            env=self._children.environment(self.home.root),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def assay(self, *arguments: str) -> Any:
        """The data that a command of `assay` prints with --json."""
        done = self.type("assay", *arguments, "--rpc", self.rpc, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["data"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    return build(with_libraries(sources(folder / "source")), folder)


@pytest.fixture
def operator(wheel: Path, tmp_path: Path) -> Iterator[Operator]:
    programs = environment(tmp_path / "environment", wheel)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    beacon = str(free_port("127.0.0.1"))
    settings = {"OMP_NUM_THREADS": "1", "ANVIL": anvil_program(), "PYTHONPATH": ""}
    settings["ASSAY_RELAYS"] = f"http://127.0.0.1:{beacon}"
    with Children(tmp_path / "logs", settings, folder) as children:
        yield Operator(folder, programs, children, beacon)


def test_the_wheel_holds_what_runs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    endings = {Path(name).suffix for name in sizes if ".dist-info/" not in name}
    assert endings == {".json", ".py", ".so", ".toml", ".typed"}
    tops = {name.split("/")[0] for name in sizes if ".dist-info/" not in name}
    assert tops == {"assay", "protocol", "sim", "solver", "verifier"}
    libraries = sum(size for name, size in sizes.items() if name.endswith(".so"))
    assert libraries < 1_500_000, "unstripped ones have 6,000,000 bytes"


def all_attested(seats: Sequence[Seat]) -> bool:
    return bool(seats) and all(seat.attested for seat in seats)


def pass_until(client: Client, time: int) -> None:
    """Advance the chain's clock to `time`."""
    client.connection.request("evm_increaseTime", hex(max(0, time - client.now()) + 1))


def test_a_task_from_its_file_to_its_payment(operator: Operator) -> None:
    where = operator.type(
        "python", "-c", "import protocol, torch, web3; print(protocol.__file__, web3.__file__)"
    )
    assert [str(operator.folder.parent / "environment") in path for path in where.stdout.split()] == [
        True
    ] * 2
    missing = operator.type("sim", "list")
    assert (missing.returncode, "pip install 'assay[sim]'" in missing.stderr) == (2, True), missing.stderr
    replayed = operator.type("sim", "replay", "deadline", "--json")
    assert replayed.returncode == 0, replayed.stderr

    port, bundles = operator.rpc.rsplit(":", 1)[1], str(free_port("127.0.0.1"))
    operator.background(
        "devnet", "assay", "devnet", "--port", port, "--beacon-port", operator.beacon, ready="Ctrl-C ends it"
    )
    deployed = operator.assay("deploy", "--dev-account", "0")
    assert operator.assay("deploy", "--check")["addresses"] == deployed["addresses"]
    operator.background("bundles", "assay", "serve", "--port", bundles, ready="/bundles/")
    chain = ("--rpc", operator.rpc, "--deployment", deployed["file"], "--task", "1", "--once")
    operator.background("solver", "solver", "run", "--dev-account", "3", "--port", "0", *chain, ready="ready")
    watch = ("verifier", "watch", "--dev-account", "2", "--port", "0")
    operator.background("verifier", *watch, *chain, ready="ready")

    (operator.folder / "tiny.py").write_text(SOURCE)
    (operator.folder / "tiny.toml").write_text(TASK)
    served = ("--bundles-url", f"http://127.0.0.1:{bundles}")
    assert operator.assay("submit", "tiny.toml", "--yes", "--dev-account", "1", *served)["task"] == 1
    with connect(operator.rpc, Path(deployed["file"])) as seen:  # for the test only; it sends nothing
        operator.wait_until(lambda: seen.market.task(1).bidder != NOBODY, "a bid")
        pass_until(seen, seen.market.task(1).bids_until)
        operator.wait_until(lambda: all_attested(seen.audit.seats(1)), "the seat attested")
        result = operator.assay("result", "1", "--output", "result")
        pass_until(seen, seen.market.task(1).challenge_until)
    assert (result["final"], result["metrics"].keys()) == (False, {"loss"})
    assert (operator.folder / result["file"]).is_file()
    assert (operator.ended("solver"), operator.ended("verifier")) == (0, 0)
    (found,) = operator.assay("status", "1")
    assert (found["status"], found["checkpoints"], found["games"]) == ("settled", 2, [])
    assert [seat["attested"] for seat in found["seats"]] == [True]
