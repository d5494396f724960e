"""A submitter that posts a task and then disappears together with its bundle (attacks 37, 49).

No server is at the bundle's address in the arena's terms, and the submitter signs nothing after the posting.
"""

from __future__ import annotations

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.tasks.task import ESCROW_DRAWS
from tests.attacks.purses import DRAW_FEE, SLASHED, Purses
from tests.attacks.ring import audited, fights, honest, one_ulp_off, refused, subject
from tests.chain.arena import Arena, terms
from tests.chain.rounds import draw_first

pytestmark = pytest.mark.chain


def test_solver_and_verifier_are_paid_without_the_submitter(ring: Arena) -> None:
    before = Purses.of(ring)
    (task,) = ring.submitted(subject(), [honest()])
    seats = audited(ring, task)
    ring.devnet.skip(80_001)
    ring.solver.market.settle(task)
    fees = seats * TOKEN + DRAW_FEE
    assert Purses.of(ring) - before == Purses(-10 * TOKEN - fees, 10 * TOKEN, fees)


def test_a_cheat_is_slashed_without_the_submitter(ring: Arena) -> None:
    _, status, paid = fights(ring, one_ulp_off())
    assert (status, paid) == (TaskStatus.SLASHED, SLASHED)


def test_a_task_without_a_bid_gives_its_escrow_back(ring: Arena) -> None:
    ring.ready()
    before = Purses.of(ring)
    task, _ = ring.submitter.market.post(terms(subject(), 1))
    ring.devnet.skip(30)
    ring.challenger.market.assign(task)
    assert ring.submitter.market.task(task).status is TaskStatus.REFUNDED
    assert Purses.of(ring) == before


def test_a_silent_verifier_pays_the_next_draw_and_seats_that_stay_empty_end_the_task(ring: Arena) -> None:
    """The only verifier is silent. The solver loses nothing for a run that nobody has audited."""
    before = Purses.of(ring)
    (task,) = ring.submitted(subject(), [honest()])
    solver, draws = ring.solver, 0
    while solver.audit.audit(task).pending:
        draw_first(solver, ring.devnet)
        draws += 1
        ring.devnet.skip(70_001)
        if solver.audit.audit(task).escrow_draws < ESCROW_DRAWS:
            solver.audit.redraw(task)
    assert refused(lambda: solver.audit.redraw(task)) == "NoDrawsLeft"
    ring.devnet.skip(10_000)
    assert refused(lambda: solver.market.settle(task)) == "NotAudited"
    solver.market.void(task)
    ring.challenger.audit.resume()
    assert draws == ESCROW_DRAWS + 1
    assert Purses.of(ring) - before == Purses(
        submitter=-ESCROW_DRAWS * DRAW_FEE,
        solver=draws * DRAW_FEE,
        challenger=-TOKEN - DRAW_FEE,
        burned=TOKEN,
    )
