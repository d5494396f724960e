"""A re-organisation takes back a post, and the command that posted is repeated. There is then one task and
one escrow, although other terms would be derived by then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.demo.preloaded import Forked
from protocol.chain.client import Client
from protocol.chain.parameters import TOKEN
from protocol.errors import ExitCode
from tests.chain.solver_stage import Stage
from tests.chain.test_assay_commands import TASK, Submitter
from tests.chain.test_train import Replaced
from tests.chain.test_verifier_watch import wait
from tests.forked import start

pytestmark = pytest.mark.chain


class Submitting:
    """`assay submit` of one file as a process. Terms that the file leaves out are derived from `gas_price`, in
    gwei.
    """

    def __init__(self, submitter: Submitter, bundles: str, gas_price: str) -> None:
        self._log, self._errors = (submitter.home / f"submit-{gas_price}.{end}" for end in ("json", "txt"))
        self.process: Forked = start(
            "assay.cli",
            *("submit", str(submitter.file), "--yes", "--bundles-url", bundles, "--json"),
            log=self._log,
            errors=self._errors,
            environment={**submitter.environment, "ASSAY_GAS_PRICE": gas_price},
        )

    @property
    def said(self) -> str:
        """The output so far, without the JSON."""
        return self._errors.read_text()

    def task(self) -> int:
        """Wait for the end; returns the task's number."""
        assert self.process.wait(90) == ExitCode.FINE, self.said
        return int(json.loads(self._log.read_text())["data"]["task"])


@pytest.fixture
def submitter(scene: Stage, tmp_path: Path) -> Iterator[Submitter]:
    """A submitter whose file leaves out a term that is derived from the gas price."""
    made = Submitter(scene, tmp_path)
    made.file.write_text(TASK.replace("game_cost = 3\n", "").replace("stake = 100", "stake = 500"))
    yield made
    made.close()


def held(client: Client, account: str) -> int:
    """The token units of an account that no task has locked."""
    return sum(client.tokens(account))


@pytest.mark.parametrize("mined", ["by the repeated command", "by itself", "after a stranger's"])
def test_a_post_that_is_taken_back_is_not_posted_twice(
    scene: Stage, submitter: Submitter, mined: str
) -> None:
    with scene.client("dev:3") as account:
        address = account.address
    market, bundles, replaced = scene.submitter.market, submitter.serve(), Replaced(scene)
    request = scene.devnet.connection.request
    before = held(scene.submitter, address)
    assert Submitting(submitter, bundles, "0.01").task() == 1
    terms, left = market.terms(1), held(scene.submitter, address)
    assert before - left > 50 * TOKEN
    replaced.take_back()
    assert (market.tasks(), held(scene.submitter, address)) == (0, before)

    number = 1
    if mined == "after a stranger's":
        number += scene.post()
    if mined == "by itself":
        request("evm_setAutomine", False)
        replaced.send_again()
    again = Submitting(submitter, bundles, "0.02")
    if mined == "by itself":
        wait(lambda: "these terms were sent before" in again.said or again.process.poll() is not None, 90)
        scene.devnet.mine(1)
        request("evm_setAutomine", True)
    assert again.task() == number, again.said
    assert market.terms(number) == terms
    assert (market.tasks(), held(scene.submitter, address)) == (number, left)

    # The post is on the chain again, so a further command posts another task, with its own terms.
    another = Submitting(submitter, bundles, "0.03")
    assert another.task() == number + 1, another.said
    assert market.terms(number + 1) != terms
