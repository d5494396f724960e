"""Cheats that keep a verifier from seeing, or from accusing, what it was drawn for. The verifier is the real node.

A bundle server that sends one byte a second held both replay workers, so that another task of random roots settled; an
endpoint that is no host's name ended every replay of its task; four tasks sacrificed to the verifier's four games kept
the fifth from being accused, and the verifier itself sent `settle`. In each the cheat was paid.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.execution.replay import Executor, Work, honest_executor
from tests.attacks.blinding import Scene, Watcher, registered_alone, trickling
from tests.attacks.blinding import scene as staged
from tests.chain.test_verifier_watch import wait
from verifier.strategy import Strategy

pytestmark = pytest.mark.chain

LONG_CLOCK = 2_000
"""Seconds that a sacrificed task's game lasts at least: longer than the window of the others."""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with staged(tmp_path) as made:
        yield made


def test_a_bundle_that_trickles_holds_no_other_task(scene: Scene) -> None:
    with trickling() as address:
        watcher = registered_alone(scene)
        try:
            scene.cheat.market.announce(address)
            # The shorter a task, the earlier its turn: these come first again and again.
            baits = [
                scene.post(
                    bundle=address, bundle_hash=bytes([k]) * 32, attest_period=k, challenge_period=k + 4
                )
                for k in (180, 190, 200)
            ]
            task = scene.post(challenger_clock=5)
            scene.cheated([*baits, task])
            wait(lambda: task in scene.games_on())
            assert all(scene.view(bait).status is TaskStatus.SUBMITTED for bait in baits)
            wait(lambda: scene.submitter.game.game(1).demand_open > 0)
            scene.devnet.skip(500)
            wait(lambda: scene.view(task).status is TaskStatus.SLASHED)
        finally:
            watcher.close()


def test_an_endpoint_that_no_library_takes_serves_nothing(scene: Scene) -> None:
    watcher = registered_alone(scene)
    try:
        scene.cheat.market.announce("https://xn--a/")
        task = scene.post()
        scene.cheated([task])
        wait(lambda: task in scene.games_on())
    finally:
        watcher.close()


def fails_on_the_first(work: Work) -> Executor:
    """An executor that the first task of the chain crashes."""
    if work.task == 1:
        raise MemoryError("task 1")
    return honest_executor(work)


def test_work_that_crashes_is_its_tasks_failure_alone(scene: Scene) -> None:
    watcher = Watcher(
        scene, Strategy(executor=fails_on_the_first), whistleblow=True, stake_slots=0, replays=1
    )
    try:
        tasks = [
            scene.post(),
            scene.post(bundle="https://xn--a/", bundle_hash=bytes(31) + b"\x01"),
            scene.post(),
        ]
        scene.cheated(tasks)
        wait(lambda: tasks[2] in scene.games_on())
        failed = watcher.node.context.metrics.registry.get_sample_value
        wait(lambda: all(failed("verifier_failures_total", {"kind": kind}) for kind in ("load", "fetch")))
        assert watcher.ended is None
    finally:
        watcher.close()


def test_sacrificed_tasks_keep_no_other_from_being_accused(scene: Scene) -> None:
    watcher = Watcher(scene, whistleblow=True, stake_slots=0)
    try:
        tasks = [scene.post(segments=1, solver_clock=LONG_CLOCK) for _ in range(4)]
        tasks.append(scene.post(segments=1, stake=600 * TOKEN))
        scene.cheated(tasks)
        for task in tasks:
            scene.attest(task)
        accusations = watcher.node.context.database
        wait(lambda: all(accusations.accusation(task) is not None for task in tasks))
        wait(lambda: sorted(scene.games_on()) == tasks)
        wait(lambda: all(scene.submitter.game.game(number).demand_open for number in range(1, 6)))
        scene.devnet.skip(LONG_CLOCK * 5)
        wait(lambda: all(scene.view(task).status is TaskStatus.SLASHED for task in tasks))
    finally:
        watcher.close()
