"""A submitter who posts and is never seen again, its bundle with it (attacks 37, 49).

The address in the arena's terms is one where nobody listens, and nothing after the posting is signed by the submitter.
"""

from __future__ import annotations

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from tests.attacks.purses import SLASHED, Purses
from tests.attacks.ring import audited, fights, honest, one_ulp_off, refused, subject
from tests.chain.arena import Arena, terms

pytestmark = pytest.mark.chain


def test_solver_and_verifier_are_paid_without_the_submitter(ring: Arena) -> None:
    before = Purses.of(ring)
    (task,) = ring.submitted(subject(), [honest()])
    duties = audited(ring, task)
    ring.devnet.skip(80_001)
    ring.solver.market.settle(task)
    fees = duties * TOKEN + TOKEN // 10  # and the drawer's
    assert Purses.of(ring) - before == Purses(-10 * TOKEN - fees, 10 * TOKEN, fees)


def test_a_cheat_is_slashed_without_the_submitter(ring: Arena) -> None:
    _, status, paid = fights(ring, one_ulp_off())
    assert (status, paid) == (TaskStatus.SLASHED, SLASHED)


def test_a_task_without_a_bid_gives_its_escrow_back(ring: Arena) -> None:
    before = Purses.of(ring)
    task, _ = ring.submitter.market.post(terms(subject(), 1))
    ring.devnet.skip(30)
    ring.challenger.market.assign(task)
    assert ring.submitter.market.task(task).status is TaskStatus.REFUNDED
    assert Purses.of(ring) == before


def test_verifiers_that_do_not_attest_leave_everyone_as_they_were(ring: Arena) -> None:
    """Nobody is slashed for what could not be audited; only the drawer's fee is gone."""
    before = Purses.of(ring)
    (task,) = ring.submitted(subject(), [honest()])
    block = ring.solver.market.task(task).draw_block
    ring.devnet.mine(3)
    ring.solver.audit.draw(task, block)
    ring.devnet.skip(80_001)
    assert refused(lambda: ring.solver.market.settle(task)) == "NotSatisfied"
    ring.solver.market.void(task)
    fee = TOKEN // 10
    assert Purses.of(ring) - before == Purses(submitter=-fee, solver=fee)
