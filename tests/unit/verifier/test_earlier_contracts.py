"""A verifier that serves two deployments. The tests check which of the two it registers in, and that it ends
only when the tasks of both are over. The chain is a stub.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.beacon.networks import DEVELOPMENT
from protocol.chain.client import Client
from protocol.chain.deployment import Deployment
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.party.funds import NotEnoughTokens
from tests.unit.verifier.test_registration import Board
from verifier.node import VerifierNode
from verifier.settings import VerifierSettings

ME = "0x" + "cd" * 20


def client(market: str, tokens: int) -> Any:
    """The client of an unregistered account with that many tokens."""
    board, announced = Board(), list[str]()
    return SimpleNamespace(
        connection=SimpleNamespace(genesis="0x" + "22" * 32, chain_id=31337),
        deployment=SimpleNamespace(beacon=DEVELOPMENT, parameters=DEVNET),
        beacon=SimpleNamespace(is_signed_round=None),
        market=SimpleNamespace(address=market, endpoint_of=lambda _who: "", announce=announced.append),
        announced=announced,
        audit=board,
        address=ME,
        inclusion=2.0,
        tokens=lambda _account: (0, tokens),
        fund=lambda _amount: None,
    )


class Pair:
    """Nodes of both deployments, and what their clients did."""

    def __init__(self, folder: Path, tokens: int, earlier: int = 1) -> None:
        self.old, self.new = client("0xformer", tokens), client("0xlatest", tokens)
        self.new.for_deployment = lambda _deployment: self.old
        settings = VerifierSettings(stake=100, tasks=(7,))
        self.node = VerifierNode(
            cast(Client, self.new),
            settings,
            Home(folder),
            earlier=[cast(Deployment, None)] * earlier,
        )
        self.nodes = [*self.node._earlier, self.node]
        for node in self.nodes:
            node._urls = (f"http://127.0.0.1:1/{node.context.client.market.address}",)

    def prepare(self) -> None:
        """Prepare both nodes, as the loop does."""
        for node in self.nodes:
            node._prepare()

    def close(self) -> None:
        """Close the databases."""
        for node in self.nodes:
            node.context.database.close()


@pytest.fixture
def rich(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path, 1_000 * TOKEN)
    yield made
    made.close()


def test_it_registers_under_the_later_contracts_alone(rich: Pair) -> None:
    rich.prepare()
    assert (len(rich.old.audit.made), len(rich.new.audit.made)) == (0, 1)
    assert (rich.old.announced, rich.new.announced) == (
        ["http://127.0.0.1:1/0xformer"],
        ["http://127.0.0.1:1/0xlatest"],
    )


def test_without_tokens_for_a_second_stake_the_earlier_contracts_are_served(tmp_path: Path) -> None:
    poor, alone = Pair(tmp_path / "both", 0), Pair(tmp_path / "one", 0, earlier=0)
    poor.prepare()
    assert (poor.old.audit.made, poor.new.audit.made) == ([], [])
    with pytest.raises(NotEnoughTokens, match="for the stake"):
        alone.prepare()
    for pair in (poor, alone):
        pair.close()


def test_it_is_done_once_the_tasks_of_both_are_over(rich: Pair) -> None:
    old, new = rich.nodes
    assert (old._settings.tasks, new._settings.tasks) == ((), (7,)), "ids are counted by each market"
    new.context.database.finish(7)
    new._alive, old._alive = 0, 1
    assert new._outcome(once=True) is None
    old._alive = 0
    assert new._outcome(once=True) is ExitCode.FINE
    old._outcomes.add("solver_false")
    assert new._outcome(once=True) is ExitCode.FRAUD
