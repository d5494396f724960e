"""Which device trains a task, and how much memory is left there."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from pydantic import ValidationError

from protocol.execution.device import device_of
from protocol.execution.errors import DeviceError
from protocol.execution.measured import Measured, slowest
from protocol.execution.memory import memory_for
from protocol.execution.replay import Executor, ExecutorFactory, Work
from protocol.tasks.bundles.bundle import Held
from protocol.tasks.bundles.limits import WORKSPACE
from solver.places import Places, placed
from solver.settings import SolverSettings

ONE, TWO = b"\1" * 32, b"\2" * 32


def test_a_task_stays_where_it_was_placed_and_others_go_where_fewest_are() -> None:
    places = Places(("cuda:0", "cuda:1"))
    places.put(1, "cuda:0")
    assert [places.of(task) for task in (1, 2, 3, 2)] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    places.forget(1)
    places.forget(3)
    assert places.of(4) == "cuda:0"


def test_room_is_what_trainings_leave_and_none_beside_one_that_was_not_read() -> None:
    places = Places(("cpu",), lambda _device: 100 * WORKSPACE)
    assert places.needs(ONE) is None
    places.expect(ONE, 30)
    places.expect(TWO, 90)
    assert places.needs(ONE) == 30 * WORKSPACE
    assert places.room("cpu", []) == 100 * WORKSPACE
    assert places.room("cpu", [ONE, ONE]) == 40 * WORKSPACE
    assert places.room("cpu", [ONE, TWO]) == 0
    assert places.room("cpu", [ONE, b"\3" * 32]) == 0
    assert Places(("cpu",)).room("cpu", [b"\3" * 32]) == math.inf


def test_what_submitted_tasks_keep_is_no_room() -> None:
    """The memory that a submitted task keeps is not free for other tasks. On a CPU, this is the data that was
    read into memory; mapped data does not count. On a GPU, it is what a game about the task takes there.
    """
    places = Places(("cpu", "cuda:0"), lambda _device: 100 * WORKSPACE, lambda device: device != "cpu")
    assert places.keeps("cpu", ONE, Held(maps=9, read=7)) is None
    places.expect(ONE, 30)
    assert places.keeps("cpu", ONE, None) is None
    assert places.keeps("cpu", ONE, Held(maps=9, read=7)) == 7
    assert places.keeps("cuda:0", ONE, Held(maps=9, read=7)) == 30
    assert places.room("cpu", [ONE], [7, 8]) == 70 * WORKSPACE - 15
    assert places.room("cpu", [], [7, None]) == 0


def test_each_task_is_run_by_the_executor_of_its_device() -> None:
    places = Places(("cuda:0", "cuda:1"))
    executors = {name: cast(Executor, object()) for name in places.devices}

    def factory(name: str) -> ExecutorFactory:
        return lambda _work: executors[name]

    made = placed({name: factory(name) for name in places.devices}, places)
    places.put(5, "cuda:1")
    assert made(cast(Work, SimpleNamespace(task=5))) is executors["cuda:1"]


def test_memory_of_this_machine_counts_what_the_process_has(monkeypatch: pytest.MonkeyPatch) -> None:
    known = memory_for(torch.device("cpu"))
    assert known is not None
    assert known > 0
    monkeypatch.setattr("protocol.execution.memory.available", lambda: 5)
    monkeypatch.setattr("protocol.execution.memory.own_memory", lambda: 7)
    assert memory_for(torch.device("cpu")) == 12
    monkeypatch.setattr("protocol.execution.memory.own_memory", lambda: None)
    assert memory_for(torch.device("cpu")) is None


def test_devices_are_numbers_of_cuda_devices_each_once() -> None:
    assert SolverSettings().training_devices == ("auto",)
    assert SolverSettings(device="cpu").training_devices == ("cpu",)
    assert SolverSettings.model_validate({"devices": "0,1"}).training_devices == ("cuda:0", "cuda:1")
    for wrong in (
        {"devices": "0,0"},
        {"devices": "0,x"},
        {"devices": "-1"},
        {"devices": "0", "device": "cpu"},
    ):
        with pytest.raises(ValidationError):
            SolverSettings.model_validate(wrong)


def test_a_device_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match="found none"):
        device_of("cuda:1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert device_of("cuda:0") == torch.device("cuda:0")
    with pytest.raises(DeviceError, match="expected numbers below 1, got 1"):
        device_of("cuda:1")


def test_of_several_devices_the_slowest_counts_and_none_where_one_was_not_measured() -> None:
    fast, slow = (cast(Measured, SimpleNamespace(slowest=rate)) for rate in (2.0, 1.0))
    assert slowest([fast, slow]) is slow
    assert slowest([fast, None]) is None
    assert slowest([]) is None
