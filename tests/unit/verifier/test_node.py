"""The verifier's loop beside the threads of its games, and when it lets go of a task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.client import Client
from protocol.chain.views import TaskStatus, TaskView
from protocol.node.home import Home
from verifier.context import Context
from verifier.database import COMMITTING, Accusation
from verifier.node import VerifierNode
from verifier.settings import VerifierSettings


class Idle:
    """A challenge in which nothing is due."""

    own_turn = False

    def __init__(self, *_collaborators: object) -> None:
        pass

    def advance(self) -> None:
        pass


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VerifierNode]:
    monkeypatch.setattr("verifier.node.Challenge", Idle)
    monkeypatch.setattr(Context, "material", lambda _context, _view: None)
    address = "0x" + "11" * 20
    client = SimpleNamespace(
        connection=SimpleNamespace(genesis="0x" + "22" * 32, chain_id=31337),
        market=SimpleNamespace(address=address, task=lambda number: number),
        address=address,
    )
    made = VerifierNode(cast(Client, client), VerifierSettings(), Home(tmp_path / "home"))
    yield made
    made._games.close()
    made.context.database.close()


def test_a_game_begins_while_the_loop_looks_at_the_others(
    node: VerifierNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Thread] = []

    class Compared(int):
        """A task at whose first comparison, by the loop, a thread begins another game."""

        __hash__ = int.__hash__

        def __eq__(self, other: object) -> bool:
            if not begun:
                begun.append(Thread(target=node._advance, args=(2,)))
                begun[0].start()
                begun[0].join(0.5)  # it may have to wait for the loop
            return int(self) == other

    node._advance(1)
    accusations: list[Any] = [SimpleNamespace(task=Compared(1)), SimpleNamespace(task=3)]
    monkeypatch.setattr(node.context.database, "open_accusations", lambda: accusations)
    assert node._play() == 2
    begun[0].join()
    node._games.wait()
    assert sorted(node._challenges) == [1, 2, 3]


@pytest.mark.parametrize(
    ("reclaimable", "outcome", "finished"),
    [(None, "needless", {1}), (COMMITTING, None, set()), (10_000, None, set())],
)
def test_a_task_that_is_over_is_let_go_when_no_bond_is_at_stake(
    node: VerifierNode, reclaimable: int | None, outcome: str | None, finished: set[int]
) -> None:
    database = node.context.database
    database.accuse(Accusation(1, 2, bytes(32), b""))
    database.update_accusation(1, reclaimable=reclaimable)
    node._over(cast(TaskView, SimpleNamespace(task=1, status=TaskStatus.VOID)))
    kept = database.accusation(1)
    assert kept is not None
    assert (kept.outcome, database.finished()) == (outcome, finished)


def test_a_verifier_that_is_asked_to_stop_has_no_outcome(node: VerifierNode) -> None:
    """Once asked to stop it looks at no open task, so it cannot tell whether all are over."""
    node._finished, node._alive = 1, 0
    assert node._outcome(once=True) is not None
    node._stop.ask()
    assert node._outcome(once=True) is None
