"""Solvers that try to keep their stake: they rewrite progress or repeat it, vanish, withdraw early, use one
stake for two tasks, or submit junk (attacks 12, 15 to 17, 51, 52).
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from protocol.chain.views import TaskStatus
from protocol.commitments import ProgressTree
from protocol.dispute import defender
from protocol.dispute.in_process import Silent
from protocol.dispute.moves import Move
from protocol.dispute.provider import Run
from protocol.dispute.view import GameView, Verdict
from tests.attacks.purses import DRAW_FEE, SLASHED, Purses
from tests.attacks.ring import (
    assigned,
    claiming,
    emptied,
    fights,
    first_false,
    honest,
    one_ulp_off,
    progressed,
    refused,
    roots_of,
    subject,
    submitted,
)
from tests.chain.arena import Arena, terms

pytestmark = pytest.mark.chain

JUNK = sha256(b"junk").digest()
TRAINING = terms(subject(), 0).training_period
PENALTY = terms(subject(), 0).delay_penalty
STAKE = terms(subject(), 0).stake
LATE = Purses(submitter=PENALTY // 2, solver=-PENALTY, burned=PENALTY // 2)


def expired(ring: Arena, task: int) -> None:
    """Let the training period pass and call `expire`, as anybody may."""
    ring.devnet.skip(TRAINING)
    ring.challenger.market.expire(task)
    assert ring.solver.market.task(task).status is TaskStatus.REFUNDED


def test_vanishing_mid_task_costs_the_penalty_and_the_escrow_returns(ring: Arena) -> None:
    before = Purses.of(ring)
    task = assigned(ring, 1)
    progressed(ring, task, roots_of(honest())[:2])
    expired(ring, task)
    assert Purses.of(ring) - before == LATE


def test_checkpoints_once_committed_cannot_be_rewritten(ring: Arena) -> None:
    """A solver has committed to a false checkpoint, and then tries to submit an honest run. The submission is
    refused, because the honest run does not continue from the false checkpoint. So the solver is late.
    """
    before = Purses.of(ring)
    task = assigned(ring, 2)
    false, true = roots_of(one_ulp_off()), roots_of(honest())
    at = first_false(one_ulp_off())
    tree = progressed(ring, task, false[: at + 1])
    whole = ProgressTree(true).at(len(true))
    proof = ProgressTree(true).consistency_proof(at + 1)
    last = len(true) - 1
    name = refused(
        lambda: ring.solver.market.submit(task, whole.root, [], proof, true[last], whole.inclusion_path(last))
    )
    assert name == "InconsistentRoot"
    assert ring.solver.market.task(task).root == tree.at(at + 1).root
    expired(ring, task)
    assert Purses.of(ring) - before == LATE


def test_unchanged_progress_is_none(ring: Arena) -> None:
    task = assigned(ring, 3)
    tree = progressed(ring, task, roots_of(honest())[:2]).at(2)
    assert refused(lambda: ring.solver.market.progress(task, tree.root, 2, [], [])) == "TreeSize"


def test_junk_as_progress_is_slashed_once_it_is_handed_in(ring: Arena) -> None:
    """Before the submission no stake is locked and nothing can be challenged. Afterwards the solver cannot
    open a checkpoint that is junk, and loses.
    """
    before = Purses.of(ring)
    task = assigned(ring, 4)
    run = claiming([*roots_of(honest())[:1], JUNK, *roots_of(honest())[2:]])
    progressed(ring, task, roots_of(run)[:2])
    assert refused(lambda: ring.opened(task, run, 1, ring.challenger)) == "WrongStatus"
    submitted(ring, task, run)
    ended = ring.play(task, subject(), run, honest(), Silent(), 1, lambda _view, _run: None)
    assert ended.verdict is Verdict.SOLVER_SILENT
    ring.ready()
    assert Purses.of(ring) - before == SLASHED


def test_all_that_is_free_withdrawn_as_soon_as_there_is_a_challenge(ring: Arena) -> None:
    """The solver withdraws all its free tokens. The locked stake stays in the vault until it is slashed."""
    solver = ring.solver
    had: list[int] = []

    def withdraws(view: GameView, run: Run) -> Move | None:
        if not had:
            had.append(emptied(solver, keep=0))
            stake = solver.market.task(view.task).stake
            assert refused(lambda: solver.vault.withdraw(1)) == "NotEnoughFree"
            assert solver.vault.lock_of(stake).remaining == STAKE
        return defender.next_move(view, run)

    ended, status, paid = fights(ring, one_ulp_off(), defence=withdraws)
    assert (ended.verdict, status) == (Verdict.SOLVER_FALSE, TaskStatus.SLASHED)
    assert paid == replace(SLASHED, solver=SLASHED.solver - had[0])
    solver.fund(had[0])


def test_one_stake_does_not_carry_two_tasks(ring: Arena) -> None:
    """A solver wins more tasks than its tokens suffice for. It cannot submit the surplus tasks, and is late
    with them.
    """
    first, second = assigned(ring, 6), assigned(ring, 7)
    before = Purses.of(ring)
    had = emptied(ring.solver, keep=2 * (STAKE - PENALTY) - 1)
    submitted(ring, first, honest())
    assert refused(lambda: submitted(ring, second, honest())) == "NotEnoughFree"
    ring.solver.fund(had)
    expired(ring, second)
    back = terms(subject(), 7).escrow(DRAW_FEE) + PENALTY // 2
    assert Purses.of(ring) - before == Purses(submitter=back, burned=PENALTY // 2), "both were locked before"
