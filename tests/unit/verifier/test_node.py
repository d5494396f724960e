"""When the verifier lets go of a task, and what it leaves to others. The database is the real one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.chain.client import Client
from protocol.chain.views import Duty, TaskStatus, TaskView
from protocol.node.home import Home
from tests.unit.verifier.test_duties import DRAWN, LONG_OVER, ME, OTHER, OVER, observation
from verifier import keeper
from verifier.database import COMMITTING, Accusation
from verifier.duties import Action, Observation
from verifier.node import VerifierNode
from verifier.settings import VerifierSettings


@pytest.fixture
def node(tmp_path: Path) -> Iterator[VerifierNode]:
    client = SimpleNamespace(
        connection=SimpleNamespace(genesis="0x" + "22" * 32, chain_id=31337),
        market=SimpleNamespace(address=ME),
        address=ME,
    )
    made = VerifierNode(cast(Client, client), VerifierSettings(), Home(tmp_path / "home"))
    yield made
    made._games.close()
    made.context.database.close()


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


SATISFIED = observation(**DRAWN, **OVER, satisfied=True)
UNSATISFIED = observation(**DRAWN, **LONG_OVER)
UNDRAWN = observation()


@pytest.mark.parametrize("seen", [SATISFIED, UNSATISFIED, UNDRAWN])
def test_a_verifier_makes_no_call_for_a_solver_that_it_accuses(node: VerifierNode, seen: Observation) -> None:
    assert keeper.due(node.context, seen) is not None
    node.context.database.accuse(Accusation(1, 2, bytes(32), b""))
    assert keeper.due(node.context, seen) is None


@pytest.mark.parametrize("outcome", ["clock_too_short", "challenger_silent", "needless"])
def test_a_solver_that_was_accused_in_vain_is_not_paid_by_the_accuser(
    node: VerifierNode, outcome: str
) -> None:
    node.context.database.accuse(Accusation(1, 2, bytes(32), b""))
    node.context.database.update_accusation(1, outcome=outcome)
    assert keeper.due(node.context, SATISFIED) is None
    assert keeper.due(node.context, UNSATISFIED) is Action.VOID


def test_a_task_that_was_drawn_and_not_looked_at_is_not_settled(node: VerifierNode) -> None:
    duties = (Duty(0, OTHER, 2, True), Duty(1, ME, 3, False), Duty(2, ME, 4, True))
    seen = replace(SATISFIED, duties=duties)
    assert keeper.due(node.context, seen) is None
    assert keeper.due(node.context, replace(UNSATISFIED, duties=duties)) is Action.VOID
    node.context.database.put_steps(1, 3, bytes(31) + b"\x01", bytes(32))
    assert keeper.due(node.context, seen) is None, "another commitment was looked at"
    node.context.database.put_steps(1, 3, seen.view.root, bytes(32))
    assert keeper.due(node.context, seen) is Action.SETTLE


def test_a_verifier_that_is_asked_to_stop_has_no_outcome(node: VerifierNode) -> None:
    """Once asked to stop it looks at no open task, so it cannot tell whether all are over."""
    node._finished, node._alive = 1, 0
    assert node._outcome(once=True) is not None
    node._stop.ask()
    assert node._outcome(once=True) is None
