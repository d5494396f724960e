"""A node whose database is gone resumes its own tasks and loses nothing."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import NOBODY, TaskStatus
from protocol.dispute.view import Verdict
from solver.strategy import Strategy as SolverStrategy
from tests.adversaries.tiny import moves_a_weight_far
from tests.chain.solver_stage import Solver, Stage, over, submitted
from tests.chain.test_verifier_informing import wealth
from tests.chain.test_verifier_killed import events
from tests.chain.test_verifier_watch import Watcher, pass_false_accuser, until_registered, wait
from tests.unit.solver import tiny
from verifier.strategy import Strategy

pytestmark = pytest.mark.chain


def lose(scene: Stage, party: str) -> None:
    """Delete the database of a party that is not running."""
    (file,) = scene.home.root.rglob(f"{party}.sqlite")
    for path in (file, *file.parent.glob(f"{file.name}-*")):
        path.unlink()


def test_a_solver_trains_again_what_it_has_submitted_and_defends_it(scene: Stage) -> None:
    """The accuser challenges after the submission, while the solver is stopped and its database is gone."""
    solver = Solver(scene, once=False)
    try:
        task = scene.sold()
        scene.until(task, submitted)
    finally:
        solver.close()
    lose(scene, "solver")
    with ExitStack() as stack:
        accuser = Watcher(scene, Strategy(executor=moves_a_weight_far), whistleblow=True, stake=0)
        stack.callback(accuser.close)
        wait(lambda: scene.submitter.game.games() > 0, 90)
        solver = Solver(scene)
        stack.callback(solver.close)
        wait(lambda: len(solver.node.context.database.checkpoints(task)) == tiny.SEGMENTS + 1)
        scene.until_drawn(task)
        scene.attest(task)
        pass_false_accuser(scene, accuser)
        assert scene.submitter.game.game(1).verdict is Verdict.CHALLENGER_SILENT
        scene.end_challenges(task)
        assert scene.until(task, over).status is TaskStatus.SETTLED
        assert scene.submitter.market.task(task).solver == solver.client.address


def test_a_solver_follows_a_bid_that_its_database_has_lost(scene: Stage) -> None:
    solver = Solver(scene, once=False)
    try:
        task = scene.post()
        scene.until(task, lambda view: view.bidder != NOBODY)
    finally:
        solver.close()
    lose(scene, "solver")
    solver = Solver(scene, once=False)
    try:
        scene.end_bidding(task)
        scene.until(task, submitted)
    finally:
        solver.close()


def test_a_verifier_opens_the_commitment_that_its_database_has_lost(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The salt is derived from the account's key, so the bond is not lost with the database. The first watcher
    opens no commitment, and stops although it has one to open.
    """

    def fails(*_arguments: object) -> None:
        raise RuntimeError("the watcher is stopped before it opens its commitment")

    scene.submitter.audit.resign()
    watcher = Watcher(scene, once=False)
    for opening in ("challenge", "challenge_blind"):
        monkeypatch.setattr(watcher.client.game, opening, fails)
    monkeypatch.setattr(watcher.node, "_may_stop", lambda: True)
    until_registered(scene)
    before = wealth(scene, watcher.client.address)
    solver = Solver(scene, SolverStrategy(executor=moves_a_weight_far))
    with ExitStack() as stack:
        stack.callback(solver.close)
        try:
            task = scene.sold(segments_per_verifier=tiny.SEGMENTS, seat_lock=8 * TOKEN)
            scene.until_drawn(task)
            wait(lambda: events(scene)["Committed"] > 0, 90)
        finally:
            watcher.close()
        assert not scene.submitter.game.games()
        lose(scene, "verifier")
        watcher = Watcher(scene, once=False)
        stack.callback(watcher.close)
        assert scene.until(task, over, 120).status is TaskStatus.SLASHED
        happened = events(scene)
        assert (happened["Committed"], happened["Forfeited"]) == (1, 0)
        wait(lambda: wealth(scene, watcher.client.address) >= before + 50 * TOKEN)
