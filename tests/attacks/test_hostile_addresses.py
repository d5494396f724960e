"""Addresses on which Python's libraries fail with errors of their own: an endpoint, and the place of a bundle.

`https://xn--a/` has a host that is no name in IDNA's eyes. What opened it raised a UnicodeError:

* a cheat announced it as its endpoint, every replay of an honest verifier crashed, and the cheat was settled and paid;
* a stranger posted a task whose bundle was there, and `solver run` ended, again after every restart.

An address is parsed where it comes in; one that cannot be opened means "not served", for that task alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.chain.views import TaskStatus
from protocol.dispute.view import Verdict
from protocol.errors import ExitCode
from solver.strategy import Strategy
from tests.chain.solver_stage import Solver, Stage, over, stage
from tests.chain.test_verifier_watch import Watcher, cheats, until_registered, wait

pytestmark = pytest.mark.chain

UNOPENABLE = ["https://xn--a/", "http://[v1.a]:8701", "https://a..b/" + "%zz", "http://127.0.0.1:1/\x1b[2J"]
"""An A-label of nothing, an IP address of the future, an empty label and a broken escape, a terminal's escape."""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Stage]:
    with stage(tmp_path) as made:
        yield made


def test_a_cheat_with_an_endpoint_that_cannot_be_opened_is_slashed(scene: Stage) -> None:
    scene.submitter.audit.resign()
    watcher = Watcher(scene, whistleblow=True)
    until_registered(scene)
    solver = Solver(scene, Strategy(executor=cheats))
    try:
        solver.client.market.announce(UNOPENABLE[0])
        task = scene.sold()
        wait(lambda: scene.submitter.game.games() > 0)
        scene.devnet.connection.request(
            "evm_setAutomine", True
        )  # from here on every move has a block of its own
        view = scene.until(task, over)
        game = scene.submitter.game.game(1)
        assert watcher.join() is ExitCode.FRAUD
    finally:
        watcher.close()
        solver.close()
    assert view.status is TaskStatus.SLASHED
    assert (game.verdict, game.segment, game.step) == (Verdict.SOLVER_FALSE, 2, 2)
    assert game.challenger == watcher.client.address


def test_bundles_that_cannot_be_opened_do_not_end_the_solver(scene: Stage) -> None:
    for address in UNOPENABLE:
        scene.post(bundle=address)
    good = scene.post()
    solver = Solver(scene)
    try:
        wait(
            lambda: (
                scene.submitter.market.task(good).bidder == solver.client.address or solver.ended is not None
            )
        )
        assert solver.ended is None
    finally:
        solver.close()
    assert scene.submitter.market.task(good).bidder == solver.client.address
