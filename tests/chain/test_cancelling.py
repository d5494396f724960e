"""`assay cancel`: a task without a bid is refunded in full. If a bid is mined before the cancellation, the
task is not cancelled.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assay.cancelling import cancel
from assay.errors import NotCancelled
from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from tests.chain.solver_stage import Stage
from tests.chain.test_assay_commands import Submitter
from tests.chain.test_verifier_watch import wait

pytestmark = pytest.mark.chain


@pytest.fixture
def bidder(scene: Stage) -> Iterator[Client]:
    client = scene.client("dev:1")
    client.fund(100 * TOKEN)
    yield client
    client.close()


def test_a_task_is_taken_back_by_its_submitter_alone(scene: Stage, tmp_path: Path) -> None:
    submitter, vault = Submitter(scene, tmp_path), scene.submitter.vault
    try:
        told, _ = submitter.run(
            "submit", str(submitter.file), "--yes", "--bundles-url", submitter.serve(), "--json"
        )
    finally:
        submitter.close()
    task, view = told["task"], scene.submitter.market.task(told["task"])
    escrow, free = vault.lock_of(view.escrow).remaining, vault.free(view.submitter)
    _, refusal = submitter.run("cancel", str(task), "--dev-account", "4", code=2)
    assert (
        f"expected one that 0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65 has submitted, got one of {view.submitter}"
        in refusal
    )
    planned, _ = submitter.run("cancel", str(task), "--dry-run", "--json")
    assert scene.submitter.market.task(task).status is TaskStatus.BIDDING
    done, said = submitter.run("cancel", str(task), "--json")
    assert planned == {"task": task, "sent": False, "refund": str(escrow)}
    assert done == {"task": task, "sent": True, "refund": str(escrow)}
    assert f"task {task} is cancelled: " in said
    assert scene.submitter.market.task(task).status is TaskStatus.REFUNDED
    assert vault.free(view.submitter) == free + escrow
    _, refusal = submitter.run("cancel", str(task), code=2)
    assert "got one that is refunded" in refusal
    _, refusal = submitter.run("cancel", "99", code=2)
    assert "UnknownTask(task=99)" in refusal


def test_a_bid_that_was_there_stands(scene: Stage, bidder: Client) -> None:
    task = scene.post()
    bidder.market.bid(task, 90 * TOKEN)
    with pytest.raises(NotCancelled, match=f"got a bid of 90 tokens by {bidder.address}"):
        cancel(scene.submitter, task)


@pytest.mark.parametrize("first", ["bid", "cancel"])
def test_of_a_bid_and_a_cancellation_in_one_block_the_first_counts(
    scene: Stage, bidder: Client, first: str
) -> None:
    task, connection = scene.post(), scene.devnet.connection
    escrow = scene.submitter.market.task(task).escrow
    locked, free = scene.submitter.vault.lock_of(escrow).remaining, scene.submitter.vault.free
    had, bidders = free(scene.submitter.address), free(bidder.address)
    calls = {
        "bid": lambda: bidder.market.bid(task, 90 * TOKEN),
        "cancel": lambda: cancel(scene.submitter, task),
    }
    second = "cancel" if first == "bid" else "bid"
    connection.request("evm_setIntervalMining", 0)
    connection.request("evm_setAutomine", False)

    def waiting() -> int:
        return int(connection.request("txpool_status")["pending"], 16)

    with ThreadPoolExecutor(2) as pool:
        done = pool.submit(calls[first])
        wait(lambda: waiting() == 1)
        late = pool.submit(calls[second])
        wait(lambda: waiting() == 2)
        connection.request("evm_mine")
        done.result(60)
        error = late.exception(60)
    assert isinstance(error, NotCancelled if first == "bid" else Reverted)
    view = scene.submitter.market.task(task)
    if first == "bid":
        assert (view.status, view.bidder) == (TaskStatus.BIDDING, bidder.address)
        assert f"a bid of 90 tokens by {bidder.address}" in str(error)
    else:
        assert view.status is TaskStatus.REFUNDED
        assert free(scene.submitter.address) == had + locked
        assert free(bidder.address) == bidders, "a bid that came too late has locked nothing"
