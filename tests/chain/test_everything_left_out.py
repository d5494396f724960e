"""From `assay init` to a task that a solver with default settings takes: all terms are derived, none is
given.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import NOBODY, TaskStatus
from tests.chain.rounds import ANYTHING
from tests.chain.solver_stage import Solver, Stage
from tests.chain.test_assay_commands import Submitter
from tests.chain.test_verifier_watch import wait
from tests.forked import run, start

pytestmark = pytest.mark.chain


def register(scene: Stage, *accounts: str) -> None:
    """Register these accounts as verifiers."""
    for account in accounts:
        with scene.client(account) as client:
            client.fund(100 * TOKEN)
            client.audit.register(0, ANYTHING)


def test_from_a_new_folder_to_a_task_that_is_taken(scene: Stage, tmp_path: Path) -> None:
    submitter, solver = Submitter(scene, tmp_path), None
    try:
        made = run("assay.cli", "init", str(tmp_path / "spirals"))
        assert made.returncode == 0, made.stderr
        file = str(tmp_path / "spirals" / "spirals.toml")
        tried, _ = submitter.run("try", file, "--steps", "2", "--json")
        assert len(tried["steps"]) == 2
        scene.devnet.mine(200)  # until the gas price no longer changes from one empty block to the next
        priced, said = submitter.run("price", file, "--json")
        assert (priced["refused"], priced["recent"]) == (None, [])
        assert "a solver with default settings bids on it" in said
        assert "no task was posted on this chain yet" in said
        bundles = submitter.serve()
        arguments = ("submit", file, "--bundles-url", bundles)
        planned, _ = submitter.run(*arguments, "--dry-run", "--json", code=1)
        (few,) = planned["refused"]
        assert "expected at least 3 registered accounts that take a task with these terms, got 1" in few
        assert planned["terms"]["budget"] == priced["budget"]

        log = tmp_path / "submit.log"
        waiting = start(
            "assay.cli", *arguments, "--yes", "--wait", log=log, environment=submitter.environment
        )
        wait(lambda: "waiting for verifiers, at most" in log.read_text() or waiting.poll() is not None)
        assert waiting.poll() is None, log.read_text()
        assert scene.submitter.market.tasks() == 0
        solver = Solver(scene, once=False)  # before the task: the derived bidding period is short
        register(scene, "dev:4", "dev:5")
        assert waiting.wait(120) == 0, log.read_text()
        assert "task 1 (spirals) posted" in log.read_text()

        bid = scene.until(1, lambda view: view.bidder != NOBODY, 120)
        assert bid.bidder == solver.client.address
        scene.skip_to(bid.bids_until)
        sold = scene.until(1, lambda view: view.status is not TaskStatus.BIDDING, 120)
        terms = scene.submitter.market.terms(1)
        assert sold.price == terms.budget * 9 // 10

        # The home folder is lost and the gas price has changed: the derived terms differ from those posted.
        shutil.rmtree(submitter.home / "submitted")
        shutil.rmtree(submitter.home / "journals")
        base = scene.devnet.connection.gas_price
        scene.devnet.connection.request("anvil_setNextBlockBaseFeePerGas", hex(20 * base))
        scene.devnet.mine(1)
        again, said = submitter.run(*arguments, "--yes", "--json")
        assert again["task"] == 1
        assert "no other is posted" in said
        assert scene.submitter.market.tasks() == 1
        scene.devnet.mine(200)  # until the gas price no longer changes from one empty block to the next
        priced, said = submitter.run("price", file, "--json")
        (recent,) = priced["recent"]
        assert (recent["task"], recent["price"]) == (1, str(sold.price))
        assert "the last 1 tasks of the chain, 1 of them sold and of about this size:" in said
    finally:
        submitter.close()
        if solver is not None:
            solver.close()
