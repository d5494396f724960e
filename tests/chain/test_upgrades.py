"""A task in flight survives an upgrade of its node: between starts, the node's files are put back to an
earlier format.

The databases hold current rows in tables of an earlier release (`tests/vectors/databases`). Formats of
releases for other contracts are not tested, because a current node could not end the tasks of such a release.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from protocol.chain.views import NOBODY, TaskStatus, TaskView
from protocol.dispute.view import Verdict
from protocol.errors import ExitCode
from protocol.node.migrations import copy_of
from tests.chain.solver_stage import Solver, Stage, over, submitted
from tests.chain.test_solver_killed import DAWDLE, configured, started
from tests.chain.test_verifier_killed import Process, answering_after, events
from tests.chain.test_verifier_watch import until_registered, wait
from tests.unit.node.dumps import dumps, put_back
from verifier.database import Database

pytestmark = pytest.mark.chain

DUMPS = {dump.name: dump for kind in ("solver", "verifier", "journal") for dump in dumps(kind)}


def earlier(home: Path, party: str, name: str) -> Path:
    """Put the files of a killed party back to earlier formats; returns the path of its database."""
    (database,) = home.rglob(f"{party}.sqlite")
    renamed = {"accusations": "challenges"}
    put_back(database, DUMPS[name], renamed)
    for journal in home.glob("journals/*/*.sqlite"):
        put_back(journal, DUMPS["journal-1"])
    return database


def version(database: Path) -> int:
    """The format version of a database."""
    with closing(sqlite3.connect(database)) as opened:
        ((found,),) = opened.execute("PRAGMA user_version")
        return int(found)


class Upgraded(Process):
    """`verifier watch`. Each time it is started again, its files have been put back to the format `name`."""

    name = "verifier-6-accusations"

    def kill(self) -> None:
        """Kill the verifier, put its files back to the earlier format, and start the current release, which
        migrates them.
        """
        self._process.kill()
        self._process.wait()
        self.database = earlier(self._log.parent / "verifier", "verifier", self.name)
        self._process = self._start()
        wait(lambda: version(self.database) == Database.VERSION, 90)


@pytest.fixture
def alone(scene: Stage) -> Stage:
    """A stage on which the verifier under test is the only one in the draw."""
    scene.submitter.audit.resign()
    return scene


def test_a_solvers_task_is_settled_over_upgrades(scene: Stage) -> None:
    configured(scene)
    task = scene.post(segments=6, bidding_period=600)
    points: list[Callable[[TaskView], bool]] = [lambda view: view.size > 1, submitted]
    with started(scene):
        scene.until(task, lambda view: view.bidder != NOBODY, 90)
    scene.end_bidding(task)
    for reached in points:
        earlier(scene.home.root, "solver", "solver-1")
        with started(scene, DAWDLE):
            scene.until(task, reached, 90)
    earlier(scene.home.root, "solver", "solver-1")
    with started(scene):
        scene.until_drawn(task)
    scene.attest(task)
    scene.end_challenges(task)
    earlier(scene.home.root, "solver", "solver-1")
    with started(scene) as last:
        assert last.end() == 0, last.log
    view = scene.submitter.market.task(task)
    assert (view.status, view.size) == (TaskStatus.SETTLED, 7)


@pytest.mark.parametrize("name", ["verifier-4", "verifier-6-accusations"])
def test_a_verifiers_task_is_settled_over_upgrades(alone: Stage, tmp_path: Path, name: str) -> None:
    scene = alone
    verifier = Upgraded(scene, tmp_path / "verifier", tmp_path / "verifier.log", 2, "--stake", "30")
    verifier.name = name
    solver = None
    try:
        until_registered(scene)
        verifier.kill()
        solver = Solver(scene)
        task = scene.sold()
        scene.until_drawn(task)
        verifier.kill()
        wait(lambda: all(seat.attested for seat in scene.submitter.audit.seats(task)), 90)
        verifier.kill()
        scene.end_challenges(task)
        assert verifier.join(90) == ExitCode.FINE
        assert solver.join(90) is ExitCode.FINE
        (seat,) = scene.submitter.audit.seats(task)
    finally:
        print((tmp_path / "verifier.log").read_text())
        verifier.close()
        if solver is not None:
            solver.close()
    assert scene.submitter.market.task(task).status is TaskStatus.SETTLED
    assert (seat.attested, seat.released) == (True, True)
    assert version(verifier.database) == Database.VERSION
    before = int(name.split("-")[1])
    assert version(copy_of(verifier.database, before)) == before


def test_a_challenge_is_won_over_upgrades(alone: Stage, tmp_path: Path) -> None:
    """The challenge and its salt survive in the database, so the bond does not burn."""
    scene = alone
    verifier = Upgraded(scene, tmp_path / "verifier", tmp_path / "verifier.log")
    solver = None
    try:
        until_registered(scene)
        killed = Event()
        solver = Solver(scene, answering_after(killed))
        task = scene.sold()
        for name in ("Committed", "StepSelected"):
            wait(lambda name=name: events(scene)[name] > 0, 90)  # type: ignore[misc]
            verifier.kill()
        killed.set()
        assert scene.until(task, over, 120).status is TaskStatus.SLASHED
        assert verifier.join() == ExitCode.FRAUD
        happened = events(scene)
        game = scene.submitter.game.game(1)
    finally:
        print((tmp_path / "verifier.log").read_text())
        verifier.close()
        if solver is not None:
            solver.close()
    assert game.verdict is Verdict.SOLVER_FALSE
    assert (happened["Committed"], happened["Challenged"], happened["StepSelected"]) == (1, 1, 1)
