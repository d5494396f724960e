"""Several real verifiers on a real chain have no part in a task that nobody else advances. They take turns, so
that one of them pays for a call.

Tests set the chain's clock, and tell the nodes when to look, so that the numbers are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from protocol.chain.client import Client
from protocol.chain.devnet import Devnet
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.node.home import Home
from tests.chain.conftest import Connect
from tests.chain.rounds import ANYTHING, draw_first, show
from tests.chain.test_verifier_watch import wait
from tests.chain.trees import fund, submitted, terms
from verifier.node import VerifierNode
from verifier.settings import VerifierSettings

pytestmark = pytest.mark.chain

VERIFIERS = 6
LONGEST = 100
"""Blocks, of a second each, after which every turn has come."""


class Verifiers:
    """Nodes of `VERIFIERS` accounts that look when they are told to."""

    def __init__(self, chain: Devnet, connected: Connect, folder: Path) -> None:
        self._chain = chain
        self.clients = [connected(10 + number) for number in range(VERIFIERS)]
        settings = VerifierSettings.model_validate({"relays": ("http://127.0.0.1:1",)})
        self._nodes = [
            VerifierNode(client, settings, Home(folder / client.address)) for client in self.clients
        ]

    def until(self, what: Callable[[], bool]) -> list[int]:
        """Let all nodes look at one block after the other, until `what` holds, and a few times more. Returns
        the number of transactions that each account has sent meanwhile, refused ones included.
        """
        before = self._sent()
        for _ in range(LONGEST):
            self._look()
            if what():
                break
        assert what(), "nobody has made the call"
        for _ in range(3):
            self._look()
        return [now - then for then, now in zip(before, self._sent(), strict=True)]

    def _look(self) -> None:
        """Let all nodes look at the newest block, and then mine the transactions that they have sent."""
        self._chain.connection.request("evm_setAutomine", False)
        for node in self._nodes:
            node._tick()
        wait(lambda: self._pending() == sum(len(node._workers.calls._active()) for node in self._nodes))
        self._chain.connection.request("evm_setAutomine", True)
        self._chain.mine()
        for node in self._nodes:
            node._workers.calls.wait()

    def _pending(self) -> int:
        """The number of transactions that wait for a block."""
        return int(self._chain.connection.request("txpool_status")["pending"], 16)

    def _sent(self) -> list[int]:
        return [client.connection.transaction_count(client.address) for client in self.clients]

    def skip_to(self, time: int) -> None:
        """Make a block at this time. Each later block is a second after the one before."""
        self._chain.connection.request("anvil_setBlockTimestampInterval", 1)
        self._chain.next_block_at(time)
        self._chain.mine()

    def close(self) -> None:
        """Close the nodes."""
        for node in self._nodes:
            node._close()


@pytest.fixture
def verifiers(chain: Devnet, connected: Connect, tmp_path: Path) -> Iterator[Verifiers]:
    made = Verifiers(chain, connected, tmp_path)
    yield made
    made.close()
    chain.connection.request("anvil_removeBlockTimestampInterval")


@pytest.fixture
def parties(connected: Connect) -> tuple[Client, Client]:
    """A submitter and a solver. They, and the one registered account, call only what the test lets them."""
    submitter, solver, registered = connected(1), connected(2), connected(3)
    for party in (submitter, solver, registered):
        fund(party, 2_000)
    registered.audit.register(0, ANYTHING)
    show(submitter)
    return submitter, solver


def test_one_of_all_verifiers_pays_where_a_solver_has_gone(
    parties: tuple[Client, Client], verifiers: Verifiers
) -> None:
    """The task is assigned after its bidding, and refunded after its time for training."""
    submitter, solver = parties
    market = submitter.market
    task, _ = market.post(terms())
    solver.market.bid(task, 90 * TOKEN)
    verifiers.skip_to(market.task(task).bids_until)
    assert sum(verifiers.until(lambda: market.task(task).status is TaskStatus.TRAINING)) == 1
    verifiers.skip_to(market.task(task).train_until)
    assert sum(verifiers.until(lambda: market.task(task).status is TaskStatus.REFUNDED)) == 1


def test_one_of_all_verifiers_pays_where_seat_and_solver_are_silent(
    chain: Devnet, parties: tuple[Client, Client], verifiers: Verifiers
) -> None:
    task = submitted(chain, *parties, 90 * TOKEN)
    draw_first(parties[0], chain)
    audit = parties[0].audit
    verifiers.skip_to(audit.audit(task).until)
    assert sum(verifiers.until(lambda: audit.audit(task).draws == 2)) == 1
