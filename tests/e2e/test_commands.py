"""The commands as an operator types them: devnet, deploy, serve, submit, status, result, solver run, verifier watch.

Two tasks side by side: an honest solver is paid and its result fetched; one that falsifies a product, serves its data
and covers up in the split is slashed. Every process ends with the exit code that says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.demo.children import Children
from protocol.chain.devnet import HOST
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.http import free_port

pytestmark = [pytest.mark.chain, pytest.mark.timeout(480)]

ROOT = Path(__file__).parents[2]
SUBMITTER, VERIFIER, HONEST, CHEAT, FURTHER = "1", "2", "3", "4", "5"
PATIENCE = 300.0


class Operator:
    """Types commands, one after the other or in the background."""

    def __init__(self, folder: Path, children: Children, beacon: str) -> None:
        self.folder = folder
        self.beacon = beacon
        self.children = children
        self.home = Home(folder / "submitter")
        self.rpc = f"http://127.0.0.1:{free_port(HOST)}"

    def background(self, name: str, *command: str, chained: bool = True) -> None:
        where = ["--rpc", self.rpc, "--deployment", str(self.home.deployment(31337))] if chained else []
        home = self.home.root if command[0].endswith("assay") else self.folder / name
        self.children.start(name, [*command, *where], home)

    def assay(self, *arguments: str) -> Any:
        """What a command of `assay` says with --json."""
        command = [console("assay"), *arguments, "--rpc", self.rpc, "--home", str(self.home.root), "--json"]
        environment = self.children.environment(self.home.root)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert done.returncode == 0, done.stderr
        envelope = json.loads(done.stdout)
        assert (envelope["version"], envelope["command"]) == (1, arguments[0])
        return envelope["data"]

    def wait_for(self, name: str, words: str) -> None:
        """Until a process has written something."""
        deadline = time.monotonic() + PATIENCE
        while words not in self.children.log(name).read_text():
            self.children.require_alive()
            assert time.monotonic() < deadline, f"{name} never wrote {words!r}"
            time.sleep(0.3)

    def wait_until_over(self, task: int) -> dict[str, Any]:
        """The status of a task that has ended."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            (found,) = self.assay("status", str(task))
            if found["status"] not in ("bidding", "training", "submitted"):
                return dict(found)
            time.sleep(3)
        raise AssertionError(f"task {task} is not over: {found}")

    def wait_for_end(self, name: str) -> int:
        """Exit code of a process that ends by itself."""
        deadline = time.monotonic() + PATIENCE
        while (code := self.children.exit_code(name)) is None:
            assert time.monotonic() < deadline, f"{name} does not end"
            time.sleep(0.3)
        return code


def console(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    beacon = str(free_port(HOST))
    settings = {"OMP_NUM_THREADS": "1", "ASSAY_RELAYS": f"http://{HOST}:{beacon}"}
    with Children(tmp_path / "logs", settings, ROOT) as children:
        yield Operator(tmp_path, children, beacon)


def test_a_task_from_its_file_to_its_result_and_a_cheat_to_its_end(operator: Operator) -> None:
    port, bundles = operator.rpc.rsplit(":", 1)[1], str(free_port(HOST))
    operator.background(
        "devnet", console("assay"), "devnet", "--port", port, "--beacon-port", operator.beacon, chained=False
    )
    operator.wait_for("devnet", "Ctrl-C ends it")
    operator.assay("deploy", "--dev-account", "0")
    operator.background("bundles", console("assay"), "serve", "--port", bundles, chained=False)
    watch = [console("verifier"), "watch", "--whistleblow", "--further-account", f"dev:{FURTHER}"]
    watch += ["--port", "0", "--once", "--task", "1", "--task", "2"]
    operator.background("verifier", *watch, "--dev-account", VERIFIER)
    solve = ("--port", "0", "--stake", "1000")
    operator.background("honest", console("solver"), "run", "--task", "1", "--dev-account", HONEST, *solve)
    cheat = (sys.executable, "-m", "tests.adversaries", "wrong-dot", "--task", "2", "--dev-account", CHEAT)
    operator.background("cheat", *cheat, *solve)
    for name in ("verifier", "honest", "cheat"):
        operator.wait_for(name, "ready")

    submit = ("submit", str(ROOT / "examples" / "digits.toml"), "--dev-account", SUBMITTER)
    served = ("--bundles-url", f"http://127.0.0.1:{bundles}")
    assert [operator.assay(*submit, *served)["task"] for _ in range(2)] == [1, 2]

    slashed = operator.wait_until_over(2)
    assert slashed["status"] == "slashed"
    (game,) = slashed["games"]
    assert (game["phase"], game["verdict"], game["segment"], game["step"]) == (
        "closed",
        "solver_false",
        7,
        30,
    )
    settled = operator.wait_until_over(1)
    assert (settled["status"], settled["checkpoints"], settled["games"]) == ("settled", 8, [])
    assert [seat["attested"] for seat in settled["seats"]] == [True]

    result = operator.assay("result", "1", "--output", str(operator.folder / "result"))
    assert result["final"] is True
    assert Path(result["file"]).is_file()
    assert result["metrics"]["held_out_accuracy"] > 0.95

    assert operator.wait_for_end("cheat") == ExitCode.FRAUD
    assert operator.wait_for_end("verifier") == ExitCode.FRAUD, "it found a false solver"
    operator.children.stop()
    assert operator.children.exit_code("honest") == ExitCode.INTERRUPTED
