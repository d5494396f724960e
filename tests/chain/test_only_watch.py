"""A verifier that only watches. After a re-organisation has given a task's number to another task, the
verifier must use the terms of the new task.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol.chain.client import Client, connect
from protocol.chain.deployment import Deployment
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.node.home import Home
from tests.chain.conftest import Connect
from tests.chain.rounds import ANYTHING
from tests.chain.test_idle_calls import RELAYS, SENDING, Paced, running
from tests.chain.trees import fund, terms
from verifier.only_watch import OnlyWatch
from verifier.settings import VerifierSettings

pytestmark = pytest.mark.chain


def test_terms_are_those_of_the_task_that_has_the_number_now(
    chain: Devnet, deployed: Deployment, connected: Connect, tmp_path: Path
) -> None:
    submitter, solver = connected(5), connected(6)
    for client in (submitter, solver):
        fund(client, 2000)
    solver.audit.register(0, ANYTHING)
    snapshot = chain.connection.request("evm_snapshot")
    with connect(
        chain.url, deployed, "dev:7", sending=SENDING
    ) as rival:  # closed, so that it sends nothing again
        fund(rival, 2000)
        rival.market.post(terms(training_period=600))
    stop = Paced()
    settings = VerifierSettings.model_validate({"port": 0, "relays": RELAYS, "low_disk_gib": 0})
    node = OnlyWatch(Client(solver.connection, deployed, None), settings, Home(tmp_path), stop)
    with running(node, stop):
        assert chain.connection.request("evm_revert", snapshot)
        task, _ = submitter.market.post(terms(training_period=500))
        chain.mine(20)
        stop.look()
        solver.market.bid(task, 50 * TOKEN)
        chain.skip(61)
        solver.market.assign(task)
        chain.mine()
        stop.look()
        view = solver.market.task(task)
        assert view.status is TaskStatus.TRAINING
        assert node._terms[task].training_period == 500
        (due,) = node.known.deadlines
        assert (due.at, due.period) == (view.train_until, 500)
