"""A solver takes as many tasks at once as time, memory and stake allow. Tasks that do not fit now are
considered again later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from protocol.chain.views import TaskStatus, TaskView
from protocol.commitments.mapping import MAPS_EACH
from protocol.tasks.bundles import NoRoomYet, TensorsTooLarge
from protocol.tasks.bundles.bundle import Held
from protocol.tasks.bundles.limits import WORKSPACE
from protocol.tasks.keeping import checkpoint_bytes
from protocol.tasks.owed import Traces
from solver import trainings
from solver.database import CheckpointRow, Stage
from tests.unit.solver.auctions import ME, RIVAL, Stand

PERIOD = 200
"""Seconds allowed for a training."""
HALF = 0.6
"""Share of the period that a training takes: two such trainings do not fit on one device."""


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    made = Stand(tmp_path, monkeypatch)
    yield made
    made.database.close()


@pytest.fixture
def busy(stand: Stand) -> Stand:
    """Each task takes more than half of its training period. Task 1 is trained on the first device."""
    offer = stand.market.offer
    operations = int(HALF * 2e9 * PERIOD / offer.steps)
    stand.market.offer = replace(offer, step_operations=operations, training_period=PERIOD)
    post(stand, 1)
    won(stand, 1)
    return stand


def post(stand: Stand, task: int) -> None:
    stand.market.post(task)
    stand.tick(2)


def won(stand: Stand, task: int) -> None:
    period = stand.market.offer.training_period
    stand.market.change(task, status=TaskStatus.TRAINING, bidder=ME, train_until=stand.now + period)
    stand.tick()


def over(stand: Stand, task: int) -> None:
    stand.market.change(task, status=TaskStatus.SETTLED)
    stand.database.put(task, Stage.OVER, "settled")
    stand.places.forget(task)
    stand.tick(2)


def stages(stand: Stand, *tasks: int) -> list[Stage | None]:
    rows = [stand.database.task(task) for task in tasks]
    return [None if row is None else row.stage for row in rows]


def test_small_tasks_are_bid_on_while_others_are_trained_and_bid_on(stand: Stand) -> None:
    for task in (1, 2, 3):
        post(stand, task)
    won(stand, 1)
    post(stand, 4)
    assert stages(stand, 1, 2, 3, 4) == [Stage.TRAINING, Stage.BID, Stage.BID, Stage.BID]
    assert sorted(stand.places.of(task) for task in (1, 2)) == ["a", "b"]


def test_each_device_takes_one_and_the_next_waits_until_one_is_over(busy: Stand) -> None:
    post(busy, 2)
    post(busy, 3)
    assert stages(busy, 1, 2, 3) == [Stage.TRAINING, Stage.BID, None]
    assert busy.places.of(2) != busy.places.of(1)
    free = busy.places.of(1)
    busy.tick(3)
    assert stages(busy, 3) == [None]
    over(busy, 1)
    assert stages(busy, 2, 3) == [Stage.BID, Stage.BID]
    assert busy.places.of(3) == free


def test_what_is_trained_already_takes_no_more_time(busy: Stand) -> None:
    post(busy, 2)
    post(busy, 3)
    assert stages(busy, 3) == [None]
    segments = busy.market.offer.segments
    for number in range(segments):  # all but the last one
        busy.database.add_checkpoint(1, CheckpointRow(number, "manifest", bytes(32)))
    post(busy, 4)
    assert stages(busy, 4) == [Stage.BID]
    assert busy.places.of(4) == busy.places.of(1)


def test_what_waits_is_left_alone_until_something_has_changed(
    busy: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    post(busy, 2)
    post(busy, 3)
    looked: list[int] = []
    task = busy.market.task

    def noted(number: int) -> TaskView:
        looked.append(number)
        return task(number)

    monkeypatch.setattr(busy.market, "task", noted)
    busy.tick(5)
    assert 3 not in looked
    busy.now = 101  # its bidding is over
    busy.tick()
    assert 3 in looked
    assert stages(busy, 3) == [None]
    looked.clear()
    busy.tick()
    assert 3 not in looked


def test_a_task_waits_until_the_program_of_a_task_beside_it_is_known(stand: Stand) -> None:
    """After a restart, the program of a taken task is not known until the task's bundle is read. Until then,
    the work of the task's games is assumed to be the most that its terms allow.

    In this test, the assumed work takes more than five hours. It would take 36 minutes if the traces of the
    program took nothing.
    """
    program = b"\7" * 32
    other = replace(stand.market.offer, program_id=program, step_operations=5 * 10**9, clock=3_600)
    stand.elsewhere = {"task 3 of market 0x1": other}
    post(stand, 1)
    assert stages(stand, 1) == [None]
    cast(Any, stand.context).traces[program] = Traces()
    stand.tick(3)
    assert stages(stand, 1) == [Stage.BID]


def test_a_task_that_would_not_fit_alone_is_refused(stand: Stand) -> None:
    offer = stand.market.offer
    operations = int(2e9 * PERIOD / offer.steps)
    stand.market.offer = replace(offer, step_operations=operations, training_period=PERIOD)
    post(stand, 1)
    assert stages(stand, 1) == [Stage.REFUSED]


def test_tasks_that_fill_the_memory_of_each_device_let_the_next_one_wait(stand: Stand) -> None:
    program = stand.market.offer.program_id
    stand.places.expect(program, 60)
    stand.memory = 100 * WORKSPACE
    for task in (1, 2, 3):
        post(stand, task)
    assert stages(stand, 1, 2, 3) == [Stage.BID, Stage.BID, None]
    over(stand, 2)
    assert stages(stand, 3) == [Stage.BID]


def submitted(stand: Stand, task: int) -> None:
    """Add a task that the solver has submitted, on device "a". Its program is that of the other tasks, its
    bundle is a different one.
    """
    stand.market.bundles[task] = bytes([task]) * 32
    stand.market.post(task)
    stand.market.change(task, status=TaskStatus.SUBMITTED, bidder=ME)
    stand.database.put(task, Stage.SUBMITTED)
    stand.places.put(task, "a")


def test_what_submitted_tasks_keep_in_memory_is_not_free_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = Stand(tmp_path, monkeypatch)
    monkeypatch.setattr(stand.places, "devices", ("a",))
    stand.places.expect(stand.market.offer.program_id, 60)
    stand.memory = 80 * WORKSPACE
    held = stand.context.held
    for task in (1, 2):
        submitted(stand, task)
    held[stand.market.bundles[1]] = Held(maps=0, read=10 * WORKSPACE)
    post(stand, 3)
    assert stages(stand, 3) == [None], "what task 2 keeps is not known"
    held[stand.market.bundles[2]] = Held(maps=0, read=11 * WORKSPACE)
    stand.tick(2)
    assert stages(stand, 3) == [None]
    over(stand, 2)
    assert stages(stand, 3) == [Stage.BID]
    stand.database.close()


def test_a_bundle_for_which_the_others_leave_no_memory_maps_waits(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task waits if the bundles of the other tasks leave too few memory maps for its bundle. If such a task
    were won, it could not be loaded until another task is over, and the penalty would be lost.
    """
    monkeypatch.setattr(trainings, "MAPS_FOR_TASKS", 25)
    stand.places.expect(stand.market.offer.program_id, 1)
    tasks = 1, 2, 3, 4
    for task in tasks:
        stand.market.bundles[task] = bytes([task]) * 32
        stand.context.held[stand.market.bundles[task]] = Held(maps=10)
    stand.market.bundles[4] = stand.market.bundles[1]
    for task in tasks:
        post(stand, task)
    assert stages(stand, *tasks) == [Stage.BID, Stage.BID, None, Stage.BID], "1 and 4 share their maps"
    won(stand, 1)
    stand.database.put(1, Stage.SUBMITTED)
    stand.tick(2)
    assert stages(stand, 3) == [None], "a submitted task keeps them"
    over(stand, 2)
    assert stages(stand, 3) == [Stage.BID]


def test_a_bundle_that_was_not_read_since_the_start_counts_with_as_many_maps_as_any_takes(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainings, "MAPS_FOR_TASKS", MAPS_EACH + 9)
    submitted(stand, 1)
    stand.market.bundles[2] = bytes([2]) * 32
    stand.context.held[stand.market.bundles[2]] = Held(maps=10)
    post(stand, 2)
    assert stages(stand, 2) == [None]
    stand.context.held[stand.market.bundles[1]] = Held(maps=10)
    stand.tick(2)
    assert stages(stand, 2) == [Stage.BID]


def test_a_task_for_which_no_device_has_the_memory_is_refused(stand: Stand) -> None:
    stand.places.expect(stand.market.offer.program_id, 60)
    stand.memory = 59 * WORKSPACE
    post(stand, 1)
    assert stages(stand, 1) == [Stage.REFUSED]


def test_a_stake_that_another_task_holds_is_waited_for(stand: Stand) -> None:
    stand.free = stand.market.offer.stake
    post(stand, 1)
    post(stand, 2)
    assert stages(stand, 1, 2) == [Stage.BID, None]
    over(stand, 1)
    assert stages(stand, 2) == [Stage.BID]


def test_a_stake_that_a_submitted_task_has_locked_is_waited_for(stand: Stand) -> None:
    stand.market.post(1)
    stand.market.change(1, status=TaskStatus.SUBMITTED, bidder=ME)
    stand.database.put(1, Stage.SUBMITTED)
    stand.free = stand.market.offer.stake - 1
    post(stand, 2)
    assert stages(stand, 2) == [None]
    stand.free += 1
    over(stand, 1)
    assert stages(stand, 2) == [Stage.BID]


def checkpoints(stand: Stand) -> int:
    """Bytes of all checkpoints of one task."""
    return (stand.market.offer.segments + 1) * checkpoint_bytes(stand.market.offer)


def test_the_disk_for_checkpoints_that_are_not_written_yet_is_kept_free(stand: Stand) -> None:
    stand.disk = 2 * checkpoints(stand) - 1
    post(stand, 1)
    post(stand, 2)
    assert stages(stand, 1, 2) == [Stage.BID, None]
    stand.market.change(1, bidder=RIVAL, price=stand.market.views[1].price - 1)
    stand.tick()
    assert stages(stand, 1) == [Stage.BID], "its own checkpoints keep it from nothing"
    won(stand, 1)
    stand.tick()
    assert stages(stand, 1, 2) == [Stage.TRAINING, None]
    stand.disk = 2 * checkpoints(stand)
    over(stand, 1)
    assert stages(stand, 2) == [Stage.BID]


def test_a_bundle_that_does_not_fit_beside_other_tasks_waits(stand: Stand) -> None:
    post(stand, 1)
    stand.failure = TensorsTooLarge("tensors", expected="at most 1", got=2, remedy="refuse this bundle")
    post(stand, 2)
    assert stages(stand, 1, 2) == [Stage.BID, None]
    stand.failure = None
    won(stand, 1)
    over(stand, 1)
    assert stages(stand, 2) == [Stage.BID]
    stand.failure = TensorsTooLarge("tensors", expected="at most 1", got=2, remedy="refuse this bundle")
    over(stand, 2)
    post(stand, 3)
    assert stages(stand, 3) == [Stage.REFUSED], "it would not fit alone"


def test_checkpoints_that_are_written_take_no_more_of_the_free_disk(stand: Stand) -> None:
    post(stand, 1)
    won(stand, 1)
    one = checkpoint_bytes(stand.market.offer)
    assert stand.context.unwritten() == checkpoints(stand)
    stand.database.add_checkpoint(1, CheckpointRow(0, "manifest", bytes(32)))
    assert stand.context.unwritten() == checkpoints(stand) - one
    assert stand.context.unwritten(1) == 0
    stand.database.put(1, Stage.SUBMITTED)
    assert stand.context.unwritten() == 0


def test_a_task_waits_for_the_disk_that_a_fetch_may_take_and_a_standing_bid_does_not(stand: Stand) -> None:
    post(stand, 1)
    stand.disk = 2 * checkpoints(stand)
    with stand.fetches.fetch(lambda: stand.disk) as reserve:
        reserve(1)
        post(stand, 2)
        stand.market.change(1, bidder=RIVAL, price=stand.market.views[1].price - 1)
        stand.tick()
        assert stages(stand, 1, 2) == [Stage.BID, None]
        assert stand.market.views[1].bidder == ME
    stand.tick(2)
    assert stages(stand, 1, 2) == [Stage.BID, Stage.BID]


def test_a_bundle_for_which_there_is_no_room_yet_is_fetched_later(stand: Stand) -> None:
    stand.failure = NoRoomYet("disk", expected="room", got="none", remedy="none needed")
    post(stand, 1)
    assert stages(stand, 1) == [None]
    stand.failure = None
    stand.rest(1)
    stand.tick(2)
    assert stages(stand, 1) == [Stage.BID]


def test_no_bundle_is_kept_for_a_task_that_waits(stand: Stand) -> None:
    """While a task waits, the solver keeps no bundle for it. The submitter chooses both the size of a bundle
    and the number of waiting tasks, so bundles that were kept could take any amount of disk.
    """
    stand.memory = 0
    stand.places.expect(stand.market.offer.program_id, 0)
    post(stand, 1)
    stand.places.expect(stand.market.offer.program_id, 1)
    for task in (2, 3):
        stand.market.bundles[task] = bytes([task]) * 32
        post(stand, task)
    assert stages(stand, 1, 2, 3) == [Stage.BID, None, None]
    assert stand.candidates == [stand.market.offer.bundle_hash.hex()]


def test_memory_is_not_asked_for_before_the_bundle_was_read(stand: Stand) -> None:
    """Reading the free memory needs torch, which a waiting solver has not loaded."""
    stand.go.clear()
    asked: list[str] = []
    stand.places._memory = lambda device: asked.append(device)
    stand.market.post(1)
    stand.auction.tick(take=True)
    assert asked == []
    stand.places.expect(stand.market.offer.program_id, 1)  # as the fetch does
    stand.go.set()
    stand.tick(2)
    assert asked
    assert stages(stand, 1) == [Stage.BID]
