"""How a solver's process ends."""

from __future__ import annotations

import pytest

from protocol.chain.views import TaskStatus
from protocol.errors import ExitCode
from solver.errors import SolverError, StakeSlashed
from solver.outcome import outcome

PAID = (1, TaskStatus.SETTLED)


def test_a_slash_under_other_contracts_is_not_hidden_by_a_task_of_the_same_number() -> None:
    for ended in ([(1, TaskStatus.SLASHED), PAID], [PAID, (1, TaskStatus.SLASHED)]):
        with pytest.raises(StakeSlashed, match="task 1"):
            outcome(ended, [], drained=False, once=True)


def test_a_refused_run_is_raised() -> None:
    with pytest.raises(SolverError, match="refused"):
        outcome([PAID], [SolverError("refused")], drained=True, once=True)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("drained", [False, True])
def test_it_ends_after_the_first_task_or_when_drained(once: bool, drained: bool) -> None:
    assert outcome([PAID], [], drained, once) == (ExitCode.FINE if once or drained else None)
    assert outcome([], [], drained, once) == (ExitCode.FINE if drained else None)
