"""A won task whose training is done: what a refused transaction means for the run."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.errors import Reverted
from protocol.chain.views import TaskStatus, TaskView
from protocol.node.logs import get
from solver.assignment import Assignment
from solver.committing import Committer
from solver.context import Context
from solver.errors import StakeNotDeposited
from tests.unit.solver import tiny

STAKE, PENALTY = 9, 2
TRAINING = cast(
    TaskView, SimpleNamespace(task=tiny.TASK, status=TaskStatus.TRAINING, size=0, price=1, train_until=9)
)


class Chain:
    """A chain with one task. Its token and its market refuse what the tests tell them to."""

    def __init__(self) -> None:
        self.refused_deposits: list[Reverted] = []
        self.refused_submissions: list[Reverted] = []
        self.refused_looks: list[Reverted] = []
        self.submitted = 0
        self.client = SimpleNamespace(
            market=SimpleNamespace(task=self.task, submit=self.submit),
            connection=SimpleNamespace(view=nullcontext),
            address="me",
            tokens=lambda _account: (0, STAKE),
            fund=self.fund,
            now=lambda: 0,
        )

    def task(self, _task: int) -> TaskView:
        """The task in training, or raise the next refusal."""
        if self.refused_looks:
            raise self.refused_looks.pop()
        return TRAINING

    def fund(self, amount: int) -> None:
        """Deposit the stake less the penalty, or raise the next refusal."""
        assert amount == STAKE - PENALTY
        if self.refused_deposits:
            raise self.refused_deposits.pop()

    def submit(self, *_about: object) -> None:
        """Count a submission, or raise the next refusal."""
        if self.refused_submissions:
            raise self.refused_submissions.pop()
        self.submitted += 1


def trained(folder: Path, chain: Chain) -> Assignment:
    """An assignment whose training is done, without what only loading and training need."""
    context = cast(Context, SimpleNamespace(client=chain.client, log=get("test")))
    made: Any = Assignment.__new__(Assignment)
    made.__dict__ |= {
        "_context": context,
        "_progress": SimpleNamespace(due=lambda _task, _left: None),
        "_trainer": SimpleNamespace(ended=True, done=True, failure=None),
        "_warned": False,
        "task": tiny.TASK,
        "terms": SimpleNamespace(stake=STAKE, delay_penalty=PENALTY),
        "refused": None,
        "run_store": tiny.trained(folder),
    }
    made._committer = Committer(context, made.run_store)
    return cast(Assignment, made)


def tick(assignment: Assignment) -> None:
    """One look at the task, after the transaction that is being sent."""
    give_up = monotonic() + 20
    while assignment._committer.busy:
        assert monotonic() < give_up
        sleep(0.001)
    assignment.tick(TRAINING)


def test_a_deposit_that_the_token_refused_is_tried_again(tmp_path: Path) -> None:
    chain = Chain()
    chain.refused_deposits = [Reverted("StakeVault.deposit", "ERC20InsufficientAllowance", {})]
    assignment = trained(tmp_path, chain)
    tick(assignment)
    with pytest.raises(StakeNotDeposited, match=r"task 7: .* got ERC20InsufficientAllowance.*; none needed"):
        tick(assignment)
    assert (assignment.refused, chain.submitted) == (None, 0)
    tick(assignment)
    assignment._committer.finish()
    assert (assignment.refused, chain.submitted) == (None, 1)
    assignment._committer.close()


def test_a_run_that_the_market_refuses_is_not_submitted_again(tmp_path: Path) -> None:
    chain = Chain()
    chain.refused_submissions = [Reverted("TaskMarket.submit", "InconsistentRoot", {})]
    assignment = trained(tmp_path, chain)
    for _ in range(3):
        tick(assignment)
    assert "InconsistentRoot" in str(assignment.refused)
    assert chain.submitted == 0
    assignment._committer.close()


def test_a_submission_while_a_re_organisation_has_taken_the_task_is_tried_again(tmp_path: Path) -> None:
    """At the commitment's first look, the task's post has been taken back. Later, the assignment is taken
    back between a look and the submission.
    """
    chain = Chain()
    chain.refused_looks = [Reverted("TaskMarket.taskOf", "UnknownTask", {"task": tiny.TASK})]
    chain.refused_submissions = [Reverted("TaskMarket.submit", "NotAllowed", {})]
    assignment = trained(tmp_path, chain)
    for _ in range(5):
        tick(assignment)
    assignment._committer.finish()
    assert (assignment.refused, chain.submitted) == (None, 1)
    assignment._committer.close()
