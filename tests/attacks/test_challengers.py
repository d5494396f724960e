"""Challengers that accuse an honest solver or themselves (attacks 18, 23, 50)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from protocol.chain.client import Client, connect
from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.chain.transactions import Sending
from protocol.chain.views import TaskStatus
from protocol.dispute.errors import NothingToChallenge
from protocol.dispute.in_process import Serving
from protocol.dispute.view import Verdict
from tests.attacks.purses import ACCUSED, DRAW_FEE, SLASHED, Purses
from tests.attacks.ring import audited, fights, first_false, honest, one_ulp_off, subject
from tests.chain.arena import Arena

pytestmark = pytest.mark.chain


@pytest.fixture
def second(ring: Arena) -> Iterator[Client]:
    """A second challenger, with 100 tokens, more than enough for a bond."""
    deployment = ring.submitter.deployment
    with connect(ring.devnet.url, deployment, "dev:3", sending=Sending(poll=0.01)) as client:
        client.token.mint(client.address, 100 * TOKEN)
        client.fund(100 * TOKEN)
        yield client


def late_loses(ring: Arena, game: int) -> Verdict:
    """Let the clock of the side to move run out and call the timeout; returns the verdict."""
    ring.devnet.skip(1_000)
    ring.submitter.game.time_out(game)
    return ring.submitter.game.game(game).verdict


def test_a_false_challenge_loses_its_bond_and_the_solver_is_paid(ring: Arena) -> None:
    """The accuser has a false run. It has no winning move left and its clock runs out; the task settles."""
    start = Purses.of(ring)
    (task,) = ring.submitted(subject(), [honest()])
    before = Purses.of(ring)
    with pytest.raises((Reverted, NothingToChallenge)):
        ring.play(task, subject(), honest(), one_ulp_off(), Serving(honest()), first_false(one_ulp_off()))
    assert late_loses(ring, ring.challenger.game.games()) is Verdict.CHALLENGER_SILENT
    assert Purses.of(ring) - before == ACCUSED

    seats = audited(ring, task)
    ring.devnet.skip(80_001)
    ring.challenger.market.settle(task)
    assert ring.solver.market.task(task).status is TaskStatus.SETTLED
    fees = seats * TOKEN + DRAW_FEE
    assert Purses.of(ring) - start == Purses(
        submitter=-10 * TOKEN - fees,
        solver=10 * TOKEN + ACCUSED.solver,
        challenger=fees + ACCUSED.challenger,
        burned=ACCUSED.burned,
    )


def test_accusing_oneself_saves_no_more_than_the_reward(ring: Arena) -> None:
    """A cheat challenges itself, because it would be caught anyway. It still loses the burned part of its
    stake and the restitution. It saves only the reward, which is at most an eighth of the stake.
    """
    challenger, ring.challenger = ring.challenger, ring.solver
    try:
        _, status, paid = fights(ring, one_ulp_off())
    finally:
        ring.challenger = challenger
    assert status is TaskStatus.SLASHED
    assert paid.solver == SLASHED.solver + SLASHED.challenger
    assert (paid.submitter, paid.burned) == (SLASHED.submitter, SLASHED.burned)


def test_conceding_to_an_accomplice_first(ring: Arena, second: Client) -> None:
    """Two games run, one by an honest challenger, who committed first, and one by the solver's accomplice.
    The solver is silent, and the accomplice's game ends first. The stake is lost as usual, and the honest
    challenger gets its bond back and the reward.
    """
    run = one_ulp_off()
    before, theirs = Purses.of(ring), second.vault.free(second.address)
    (task,) = ring.submitted(subject(), [run])
    honest_game, _ = ring.opened(task, run, first_false(run), ring.challenger)
    accomplice_game, _ = ring.opened(task, run, first_false(run), second)
    assert late_loses(ring, accomplice_game) is Verdict.SOLVER_SILENT
    ring.challenger.game.close_moot(honest_game)
    assert ring.challenger.game.game(honest_game).verdict is Verdict.MOOT
    assert ring.solver.market.task(task).status is TaskStatus.SLASHED
    assert second.vault.free(second.address) == theirs
    ring.ready()
    assert Purses.of(ring) - before == SLASHED
