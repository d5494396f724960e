"""A solver that its operator pauses, drains, kills and queries: its answers, its actions and its ledger."""

from __future__ import annotations

import csv
import json
import re
import signal
from contextlib import ExitStack
from pathlib import Path
from socket import create_server
from time import monotonic, sleep
from typing import Any

import pytest

from protocol.chain.accounts import development_account
from protocol.chain.parameters import TOKEN
from protocol.chain.views import NOBODY, TaskStatus
from protocol.errors import ExitCode
from protocol.node.home import Home
from solver.asking import order, status
from solver.checking import check
from solver.control import ask, socket_path
from solver.earnings import earnings
from solver.errors import NotRunning
from solver.orders import Mode, load_mode
from tests.chain.ledgers import adds_up, ledger_of
from tests.chain.solver_stage import SOLVER, Solver, Stage, over, submitted
from tests.chain.test_solver_killed import configured
from tests.forked import run, start

pytestmark = pytest.mark.chain


def envelope(capsys: pytest.CaptureFixture[str]) -> Any:
    """The data in the --json output of a command that ran in this process. The output is found among the
    nodes' log lines.
    """
    (found,) = re.findall(r"^\{\n.*?^\}\n", capsys.readouterr().out, re.MULTILINE | re.DOTALL)
    return json.loads(found)["data"]


def until_seen(solver: Solver, task: int) -> None:
    """Wait until the solver has looked at the market after a task was posted."""
    deadline = monotonic() + 60
    while solver.node._auction._seen < task:
        assert monotonic() < deadline
        sleep(0.05)


def test_paused_over_a_restart_resumed_and_drained_to_the_last_unit(
    scene: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    """A task is posted during the pause and won after it; another, posted while the solver drains, gets no
    bid.
    """
    home = scene.home
    with ExitStack() as stack:
        solver = Solver(scene, once=False)
        stack.callback(solver.close)
        order(home, "pause", False)
        task = scene.post()
        until_seen(solver, task)
        assert ask(home, "status")["no_bids"].startswith("paused")
        solver.close()
        assert load_mode(home) is Mode.PAUSED
        solver = Solver(scene, once=False)
        stack.callback(solver.close)
        until_seen(solver, task)
        assert scene.submitter.market.task(task).bidder == NOBODY
        order(home, "resume", False)
        scene.end_bidding(task)
        scene.until(task, submitted)
        looked_at(scene, capsys, "the running node", 0)
        said = ask(home, "status")
        assert (said["mode"], said["no_bids"], said["speed"]) == ("working", "", "assumed")
        (account,) = said["accounts"]
        assert account["tasks"][0]["task"] == task
        order(home, "drain", False)
        later = scene.post()
        until_seen(solver, later)
        scene.until_drawn(task)
        scene.attest(task)
        scene.end_challenges(task)
        assert solver.join() is ExitCode.FINE
        assert scene.submitter.market.task(later).bidder == NOBODY
        assert load_mode(home) is Mode.WORKING
        assert not socket_path(home).exists()
        sums = adds_up(scene, solver.client.address)
    assert sums.earned >= 90 * TOKEN
    assert (sums.lost, sums.burned, sums.locked) == (0, 0, 0)
    capsys.readouterr()
    tells_of_the_ledger(home, task, capsys)
    scene.post()
    looked_at(scene, capsys, "this machine (no node runs)", 1)


def looked_at(scene: Stage, capsys: pytest.CaptureFixture[str], who: str, open_tasks: int) -> None:
    """Check what `solver check` reports on a stage whose solver has everything it needs."""
    flags = {"rpc": scene.url, "account": SOLVER, "relays": (scene.relay,), "port": 0}
    capsys.readouterr()
    assert check(scene.home, flags, True) is ExitCode.FINE
    lines = {line["item"]: line for line in envelope(capsys)["lines"]}
    levels = {item: line["level"] for item, line in lines.items()}
    assert set(levels) >= {"device", "driver", "kernels", "memory", "disk", "measured", "chain"}
    assert levels["kernels"] == levels["chain"] == levels["stake"] == levels["defence"] == "ok"
    assert levels["clock"] == levels["measured"] == "warning", "its time was moved; it was not measured"
    assert levels["reachable"] in ("ok", "warning")
    assert f"leads to {who}" in lines["reachable"]["found"]
    expected = "1 of 1 open tasks pay" if open_tasks else "no task takes bids now"
    assert lines["profit"]["found"].startswith(expected)


def test_a_machine_without_a_chain_or_a_stake_has_problems_that_say_what_to_do(
    scene: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = {"rpc": "http://127.0.0.1:1", "account": "dev:7"}
    assert check(scene.home, silent, False) is ExitCode.RETRY
    assert "problem  chain        " in capsys.readouterr().out
    poor = {"rpc": scene.url, "account": "dev:7", "stake": "5"}
    taken = create_server(("127.0.0.1", 0))
    with taken:
        flags = {**poor, "port": taken.getsockname()[1], "speed": "3e9"}
        assert check(scene.home, flags, True) is ExitCode.HOPELESS
    lines = {line["item"]: line for line in envelope(capsys)["lines"]}
    assert lines["stake"]["level"] == lines["reachable"]["level"] == "problem"
    assert lines["stake"]["remedy"].startswith("send 5 tokens to 0x")
    assert "stop the other server" in lines["reachable"]["found"]
    assert lines["measured"]["found"].startswith("`speed` is set")


def tells_of_the_ledger(home: Home, task: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Check `status` and `earnings` of a home folder in which no node runs."""
    status(home, True)
    data = envelope(capsys)
    assert (data["running"], data["mode"], data["not_read"]) == (False, "working", [])
    assert data["accounts"][0]["counts"]["over"] == 1
    earnings(home, None, False, True)
    (ledger,) = envelope(capsys)["ledgers"]
    rows = [row for row in ledger["rows"] if row["task"] == task]
    assert sum(int(row["earned"]) for row in rows) == int(ledger["total"]["earned"])
    assert sum(int(row["gas"]) for row in rows) > 400_000
    assert sum(int(row["locked"]) for row in rows) == 0
    earnings(home, None, True, False)
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    earned = [line for line in lines if line["what"] == "earned" and line["task"] == str(task)]
    assert any(line["tokens"] == "90" for line in earned)
    assert all(line["time"].endswith("Z") and line["month"] == line["time"][:7] for line in lines)
    bids = [line for line in lines if line["what"] == "TaskMarket.bid"]
    assert [line["task"] for line in bids] == [str(task)]
    assert float(bids[0]["coin"]) < 0
    earnings(home, "1999-12", True, False)
    assert len(capsys.readouterr().out.splitlines()) == 1, "its head"


def test_a_drain_outlives_kill_9_and_ends_with_0(scene: Stage, tmp_path: Path) -> None:
    """The process is killed while it drains; the next one finishes. While a process runs, no other node can
    use its home folder.
    """
    configured(scene)
    log = tmp_path / "solver.log"
    flags = ["run", "--log-json", "--rpc", scene.devnet.url, "--port", "0", "--stake", "600"]
    with ExitStack() as stack:
        first = start("solver.cli", *flags, "--dev-account", "1", log=log)
        stack.callback(first.wait)
        stack.callback(first.kill)
        task = scene.sold()
        scene.until(task, submitted)
        other = run("solver.cli", *flags, "--dev-account", "3")
        assert (other.returncode, "expected one node at a time" in other.stderr) == (1, True), other.stderr
        drained = run("solver.cli", "drain", "--json")
        assert json.loads(drained.stdout)["data"]["mode"] == "draining"
        first.send_signal(signal.SIGKILL)
        first.wait(60)
        assert socket_path(scene.home).exists(), "as kill -9 leaves it"
        with pytest.raises(NotRunning):
            ask(scene.home, "status")
        told = run("solver.cli", "status", "--json")
        data = json.loads(told.stdout)["data"]
        assert (told.returncode, data["running"], data["mode"]) == (0, False, "draining")
        assert data["accounts"][0]["tasks"][0]["stage"] in ("training", "submitted")
        second = start("solver.cli", *flags, "--dev-account", "1", log=log)
        stack.callback(second.wait)
        stack.callback(second.kill)
        scene.until_drawn(task)
        scene.attest(task)
        scene.end_challenges(task)
        assert second.wait(90) == 0, log.read_text()
    assert scene.until(task, over).status is TaskStatus.SETTLED
    assert load_mode(scene.home) is Mode.WORKING
    sums = adds_up(scene, str(development_account(1, scene.devnet.chain_id).address))
    assert sums.earned >= 90 * TOKEN
    assert {entry.task for entry in ledger_of(scene)} == {0, task}
