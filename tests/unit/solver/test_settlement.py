"""What a task that is over has cost its solver. What it does before is in tests/chain/test_solver_exits.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus, TaskView
from protocol.tasks.task import Terms
from solver.context import Context
from solver.settlement import lost

PRICE = 90 * TOKEN
TERMS = cast(Terms, SimpleNamespace(delay_penalty=5 * TOKEN, stake=500 * TOKEN))


@pytest.mark.parametrize(
    ("status", "drawn_at", "cost"),
    [
        (TaskStatus.SETTLED, 1, {}),
        (TaskStatus.REFUNDED, 0, {"penalty_tokens": 5, "price_tokens": 90}),
        (TaskStatus.SLASHED, 1, {"stake_tokens": 500, "price_tokens": 90}),
        (TaskStatus.VOID, 1, {"price_tokens": 90}),
        (TaskStatus.VOID, 0, {"price_tokens": 45}),
    ],
)
def test_a_loss_is_what_was_taken_and_what_was_not_paid(
    status: TaskStatus, drawn_at: int, cost: dict[str, float]
) -> None:
    audit = SimpleNamespace(audit=lambda _task: SimpleNamespace(drawn_at=drawn_at))
    context = cast(Context, SimpleNamespace(client=SimpleNamespace(audit=audit)))
    view = cast(TaskView, SimpleNamespace(task=7, price=PRICE, status=status))
    assert lost(context, view, TERMS) == cost
