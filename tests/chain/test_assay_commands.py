"""The submitter's commands as processes, from a task file to a checked result on disk."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from examples.demo.preloaded import Forked
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from tests.chain.solver_stage import Solver, Stage
from tests.chain.test_verifier_watch import wait
from tests.forked import run, start

pytestmark = pytest.mark.chain

SOURCE = """
import torch
from torch import nn
from protocol.capture import capture

def build(steps):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    data = {"x": torch.arange(32.0).reshape(8, 4) / 32, "y": torch.ones(8, 2)}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return capture(model, objective, optimizer, data, batch_size=4, steps=steps, history=4)

def objective(model, batch):
    return ((model(batch["x"]) - batch["y"]) ** 2).mean(), {}

def norm(state):
    return state["weight"].norm()
"""
TASK = """
[task]
name = "line"
source = "line.py"
segments = 2
segment_steps = 3
[result]
evaluate = "norm"
[terms]
budget = 50
stake = 100
restitution = 10
audit_fee = 1
game_cost = 3
delay_penalty = 1
bidding_period = 600
training_period = 600
challenge_period = 600
attest_period = 400
extension = 20
clock = 350
verifiers = 1
segments_per_verifier = 1
"""


class Submitter:
    """Runs `assay` as development account 3, with its own home folder."""

    def __init__(self, scene: Stage, folder: Path) -> None:
        scene.client("dev:3").close()  # gives it tokens
        self.home = folder / "submitter"
        self.home.mkdir()
        deployment = self.home / "deployment.json"
        deployment.write_text(scene.deployment.model_dump_json())
        settings = {
            "rpc": scene.devnet.url,
            "account": "dev:3",
            "deployment": str(deployment),
            "relays": [scene.relay],
        }
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        (self.home / "config.toml").write_text("\n".join(["[assay]", *lines, ""]))
        (folder / "line.py").write_text(SOURCE)
        self.file = folder / "line.toml"
        self.file.write_text(TASK)
        self._server: Forked | None = None

    def run(self, *arguments: str, code: int = ExitCode.FINE) -> tuple[Any, str]:
        """Run a command, which must end with `code`. Returns the data of its JSON output (None without
        `--json`) and its error output.
        """
        done = run("assay.cli", *arguments, environment=self.environment)
        assert done.returncode == code, done.stderr
        told = json.loads(done.stdout)["data"] if "--json" in arguments else None
        return told, done.stderr

    def serve(self) -> str:
        """Start the bundle server; returns its address."""
        log = self.home / "serve.log"
        self._server = start("assay.cli", "serve", "--port", "0", log=log, environment=self.environment)
        wait(lambda: "\n" in log.read_text())
        line = log.read_text().splitlines()[0]
        return line.split(" at ")[1].strip().removesuffix("/bundles/")

    def close(self) -> None:
        """End the server, if it was started."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait(10)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the submitter's processes, in addition to this process's."""
        return {"ASSAY_HOME": str(self.home)}


def test_from_a_file_to_a_checked_result(scene: Stage, tmp_path: Path) -> None:
    submitter = Submitter(scene, tmp_path)
    solver: Solver | None = None
    try:
        planned, said = submitter.run("submit", str(submitter.file), "--dry-run", "--json", code=1)
        assert (planned["task"], planned["sent"], scene.submitter.market.tasks()) == (None, False, 0)
        assert "6 steps" in said
        (refused,) = planned["refused"]
        assert "start `assay serve`" in refused
        _, refusal = submitter.run("submit", str(submitter.file), code=2)
        assert "expected --yes, where no terminal is there to ask at" in refusal
        _, refusal = submitter.run(
            "submit", str(submitter.file), "--yes", "--bundles-url", "http://127.0.0.1:1", code=1
        )
        assert "start `assay serve`" in refusal
        bundles = submitter.serve()
        assert scene.submitter.beacon.latest() == 0
        serving = ("--bundles-url", bundles, "--json")
        ready, said = submitter.run("submit", str(submitter.file), "--dry-run", *serving)
        assert (ready["refused"], ready["sent"]) == ([], False)
        assert said.endswith("nothing was sent\n")
        unsold, said = submitter.run("submit", str(submitter.file), "--yes", *serving)
        assert "derived for 2 segments and this budget: reward 6, seat_lock 1.1, bond 6.00" in said
        assert re.search(r"trust costs [\d.]+ % of the budget: audit fees 2 %, draws and gas", said)
        assert unsold["trust"]["audit_fees"] == str(TOKEN)
        assert 0.02 < unsold["trust"]["share_of_budget"] < 0.3
        shown = scene.submitter.beacon.latest()
        assert shown > 0, "no task is taken before"
        assert unsold["terms"]["program_id"] == planned["terms"]["program_id"]
        # There is no solver yet, so the task has no result however long the command takes.
        _, refusal = submitter.run("result", str(unsold["task"]), "--output", str(tmp_path / "out"), code=2)
        assert "expected a submitted or settled task" in refusal
        # Its bidding is over, so the solver is free for the next one.
        scene.skip_to(scene.submitter.market.task(unsold["task"]).bids_until)
        solver = Solver(scene, once=False)
        posted, _ = submitter.run("submit", str(submitter.file), "--yes", *serving)
        task = posted["task"]
        assert scene.submitter.beacon.latest() == shown, "it is not half a day old"
        scene.end_bidding(task)
        scene.until_drawn(task)
        _, said = submitter.run("status", str(task), "--json")
        assert re.search(rf"  seat 0: {scene.submitter.address}, segments [12]; \d+ min( \d+ s)? left", said)
        scene.attest(task)
        scene.end_challenges(task)
        scene.until(task, lambda view: view.status is TaskStatus.SETTLED)
        ((status,), _) = submitter.run("status", str(task), "--json")
        unfinished, said = submitter.run("status", "--json")
        every, _ = submitter.run("status", "--past", "--json")
        result, _ = submitter.run("result", str(task), "--output", str(tmp_path / "out"), "--json")
        # A seat's account may serve the result too: it announces the solver's server, the solver a dead one.
        scene.submitter.market.announce(scene.submitter.market.endpoint_of(solver.client.address))
        solver.client.market.announce("http://127.0.0.1:1")
        again, _ = submitter.run("result", str(task), "--output", str(tmp_path / "again"), "--json")
    finally:
        submitter.close()
        if solver is not None:
            solver.close()
    assert (status["status"], status["checkpoints"], status["price"]) == ("settled", 2, str(45 * TOKEN))
    assert status["solver"] == solver.client.address
    assert [one["task"] for one in every] == [unsold["task"], task]
    assert [one["task"] for one in unfinished] == [unsold["task"]]
    assert "1 task is over: `assay status --past` shows it too" in said
    (seat,) = status["seats"]
    assert (seat["seat"], seat["account"], seat["attested"]) == (0, scene.submitter.address, True)
    assert seat["segments"] in ([1], [2])
    assert (seat["seconds_left"], status["awaited_round"]) == (None, None)
    state = load_file(result["file"])
    assert result["final"]
    other = load_file(again["file"])  # a file's metadata are unordered, so its bytes may differ
    assert other.keys() == state.keys()
    assert all(torch.equal(other[name], value) for name, value in state.items())
    assert result["metrics"]["norm"] == pytest.approx(float(state["weight"].norm()))
    assert result["metrics"]["loss"] == pytest.approx(float(state["metric.loss"]))
    assert int(state["step"]) == 6
    with Path(result["history"]).open() as file:
        table = list(csv.DictReader(file))
    assert [row["step"] for row in table] == ["3", "4", "5", "6"]
    assert float(table[-1]["loss"]) == float(state["metric.loss"])


def test_status_of_what_does_not_exist_is_one_clear_line(scene: Stage, tmp_path: Path) -> None:
    submitter = Submitter(scene, tmp_path)
    nothing, said = submitter.run("status", "--json")
    assert (nothing, said) == ([], "no task was posted yet\n")
    _, refusal = submitter.run("status", "7", code=2)
    assert refusal.count("\n") == 1
    assert "UnknownTask(task=7)" in refusal
