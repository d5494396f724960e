"""Seats of the real verifier on a real chain: verifiers that are silent, verifiers that leave, and the result
that the accounts with seats hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from assay.errors import ResultError
from assay.results import fetch
from protocol.chain.parameters import TOKEN
from protocol.chain.views import BOUND, TaskStatus
from protocol.dispute.view import Phase
from protocol.tasks.bundles import Limits
from solver.strategy import Strategy as SolverStrategy
from tests.adversaries.solvers import says_nothing
from tests.adversaries.tiny import moves_a_weight_far
from tests.chain.solver_stage import PARAMETERS, Solver, Stage, over, stage
from tests.chain.test_verifier_watch import Watcher, until_registered, wait
from tests.unit.solver import tiny
from verifier.registration import leave

pytestmark = pytest.mark.chain

OF_SOLVER = (Phase.STEP, Phase.FRAME, Phase.SPLIT)
"""Phases in which a solver without a defence owes the next move."""


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Stage]:
    """A stage on which the verifier under test is the only one in the draw."""
    with stage(tmp_path) as made:
        made.submitter.audit.resign()
        yield made


def is_served(scene: Stage, task: int) -> bool:
    """Whether somebody serves the result that the chain names."""
    with suppress(ResultError):
        fetch(scene.submitter, scene.home, task, Limits(allowed=(scene.bundles.as_uri(),)))
        return True
    return False


def test_a_result_outlives_its_solver_and_is_let_go_after_its_time(alone: Stage) -> None:
    scene = alone
    watcher = Watcher(scene, once=False, hold_days=2)
    until_registered(scene)
    solver = Solver(scene)
    try:
        task = scene.sold()
        scene.until_drawn(task)
        wait(lambda: scene.submitter.audit.audit(task).attested == 1)
        solver.close()
        assert is_served(scene, task)
        scene.end_challenges(task)
        view = scene.until(task, over)
        assert view.status is TaskStatus.SETTLED, "by the verifier"
        wait(lambda: scene.submitter.audit.seats(task)[0].released)
        database = watcher.node.context.database
        wait(lambda: database.is_finished(task))
        assert is_served(scene, task)
        scene.devnet.skip(2 * 86_400)
        wait(lambda: not database.is_held(task))
        assert not is_served(scene, task)
    finally:
        watcher.close()
        solver.close()


def test_a_silent_verifier_is_drawn_again_once_it_was_started_again(alone: Stage) -> None:
    """The verifier stays away until its seat's time is over. It loses the fee of a seat and the fee of a draw
    from its stake. When it is started again, it tops up its stake, and it is drawn again.
    """
    scene, audit, unit = alone, alone.submitter.audit, PARAMETERS.stake_unit
    first = Watcher(scene)
    until_registered(scene)
    solver = Solver(scene)
    second = None
    try:
        task = scene.post()
        first.close()
        scene.end_bidding(task)
        scene.until_drawn(task)
        (seat,) = audit.seats(task)
        assert seat.account == first.client.address
        scene.skip_to(seat.until)
        wait(lambda: audit.audit(task).draws == 2)
        suspended = audit.registration(seat.account)
        assert suspended is not None
        assert suspended.suspended
        penalty = TOKEN + PARAMETERS.draw_fee
        assert scene.submitter.vault.lock_of(suspended.lock).remaining == unit - penalty

        second = Watcher(scene)
        wait(lambda: not audit.registration(seat.account).suspended)  # type: ignore[union-attr]
        whole = audit.registration(seat.account)
        assert whole is not None
        assert scene.submitter.vault.lock_of(whole.lock).remaining == unit
        # The draw that its silence pays for was requested earlier and finds nobody; the next draw finds it.
        scene.until_drawn(task)
        (seat,) = audit.seats(task)
        assert seat.is_empty
        scene.skip_to(seat.until)
        wait(lambda: audit.audit(task).draws == 3)
        scene.until_drawn(task)
        wait(lambda: audit.audit(task).attested == 1)
        scene.end_challenges(task)
        assert scene.until(task, over).status is TaskStatus.SETTLED
    finally:
        if second is not None:
            second.close()
        solver.close()


def test_one_process_sits_in_a_seat_for_each_of_its_accounts(alone: Stage) -> None:
    scene, audit = alone, alone.submitter.audit
    watcher = Watcher(scene, further=4)
    accounts = {client.address for client in watcher.clients}
    wait(lambda: audit.registered() == len(accounts))
    solver = Solver(scene)
    try:
        task = scene.sold(verifiers=3)
        scene.until_drawn(task)
        wait(lambda: audit.audit(task).attested == 3)
        seats = audit.seats(task)
        assert len({seat.account for seat in seats} & accounts) == 3
        bound = [audit.registration(seat.account) for seat in seats]
        assert all(one is not None and one.free_since == BOUND for one in bound)
        scene.end_challenges(task)
        assert scene.until(task, over).status is TaskStatus.SETTLED
        wait(lambda: all(seat.released for seat in audit.seats(task)))
    finally:
        watcher.close()
        solver.close()


@pytest.mark.parametrize("serving", [True, False])
def test_who_finds_fraud_in_a_seat_is_not_silent_in_it(alone: Stage, serving: bool) -> None:
    """The game may outlast the time to attest. So the verifier attests what it has computed, and keeps its stake."""
    scene, audit = alone, alone.submitter.audit
    watcher = Watcher(scene)
    until_registered(scene)
    cheat = SolverStrategy(executor=moves_a_weight_far, defence=lambda _game, _run: ())
    solver = Solver(scene, cheat if serving else replace(cheat, app=says_nothing))
    try:
        task = scene.sold(segments_per_verifier=tiny.SEGMENTS, seat_lock=4 * TOKEN)
        scene.until_drawn(task)
        wait(lambda: audit.audit(task).attested == 1)
        game = scene.submitter.game
        wait(lambda: bool(game.game(1).demand_open) or game.game(1).phase in OF_SOLVER)
        (seat,) = audit.seats(task)
        scene.skip_to(max(seat.until, game.game(1).deadline))
        assert scene.until(task, over).status is TaskStatus.SLASHED
        assert audit.audit(task).draws == 1
        wait(lambda: audit.seats(task)[0].released)
        registration = audit.registration(seat.account)
        assert registration is not None
        assert scene.submitter.vault.lock_of(registration.lock).remaining == PARAMETERS.stake_unit
    finally:
        watcher.close()
        solver.close()


def test_a_stake_is_free_once_its_unbonding_is_over(alone: Stage) -> None:
    client = alone.submitter
    assert not leave(client)
    free = client.vault.free(client.address)
    alone.skip_to(client.now() + PARAMETERS.unbonding_period)
    assert leave(client)
    assert client.vault.free(client.address) == free + PARAMETERS.stake_unit
    assert client.audit.registration(client.address) is None
    assert not leave(client)
