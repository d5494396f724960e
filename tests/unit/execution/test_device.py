"""The choice of a device, and recorded steps: operands, results, and steps that cannot be recorded."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from protocol.errors import ExitCode
from protocol.execution.device import EXECUTORS, DeviceExecutor, device_of, executor_on
from protocol.execution.errors import DeviceError
from protocol.execution.replay import Executor, HonestExecutor, Work
from protocol.tasks.arithmetics import ARBITERS, ARITHMETIC, UnknownArithmetic
from tests.unit.solver import tiny

CPU = torch.device("cpu")
STEPS = 6


class Rerun:
    """Imitates a CUDA graph: a replay runs the step again and writes into the recorded results."""

    def __init__(self) -> None:
        self.recorded = 0
        self.replayed = 0

    def record(self, step: Callable[[], Any]) -> Callable[[], None]:
        self.recorded += 1
        first = dict(step())

        def replay() -> None:
            self.replayed += 1
            for name, x in step().items():
                first[name].copy_(x)

        return replay


class Refusing:
    """A device that fails to record. Like torch, it raises an error that does not give the cause."""

    def record(self, _step: Callable[[], Any]) -> Callable[[], None]:
        try:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")
        finally:
            raise RuntimeError("operation failed due to a previous error during capture")


def work() -> Work:
    return Work(tiny.TASK, tiny.step_program(), tiny.fixed(), {})


def run(executor: Executor) -> list[dict[str, torch.Tensor]]:
    states = [dict(tiny.initial())]
    for number in range(1, STEPS + 1):
        states.append(dict(executor.step(states[-1], number)))
    return [{name: x.cpu() for name, x in state.items()} for state in states]


def same(found: list[dict[str, torch.Tensor]]) -> bool:
    right = run(executor_on(CPU)(work()))
    return all(torch.equal(a[name], b[name]) for a, b in zip(found, right, strict=True) for name in b)


def test_auto_takes_what_is_there() -> None:
    assert device_of("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert device_of("cpu") == CPU


@pytest.mark.parametrize("number", ["2", "x", "-1"])
def test_a_number_that_no_device_has_is_refused(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert device_of("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(DeviceError, match=f"expected numbers below 2, got {number}"):
        device_of(f"cuda:{number}")


def test_a_device_that_is_not_there_is_an_operators_error() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(DeviceError, match="set device = auto"):
        device_of("cuda")


def test_the_cpu_runs_as_ever() -> None:
    assert isinstance(executor_on(CPU)(work()), HonestExecutor)


def test_a_recorded_step_goes_on_from_any_state_and_keeps_none() -> None:
    recorder = Rerun()
    executor = DeviceExecutor(work(), CPU, recorder=recorder)
    assert same(run(executor))
    assert (recorder.recorded, recorder.replayed) == (1, STEPS - 2)
    assert same(run(executor))
    assert recorder.recorded == 1


def test_a_step_that_cannot_be_recorded_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "assay.numerics"):
        assert same(run(DeviceExecutor(work(), CPU, recorder=Refusing())))
    assert [record.getMessage() for record in caplog.records] == [
        "the step is not recorded as a CUDA graph, its kernels start one by one: "
        "operation not permitted when stream is capturing"
    ]


@pytest.mark.parametrize(("command", "options"), [("solver", ["run"]), ("verifier", ["watch"])])
def test_the_commands_refuse_a_device_that_is_not_there(
    command: str, options: list[str], tmp_path: Path
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    program = Path(sys.executable).parent / command
    call = [str(program), *options, "--device", "cuda", "--dev-account", "1", "--home", str(tmp_path)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.HOPELESS
    assert "expected a CUDA device that torch can use, found none" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_arithmetic_that_is_computed_has_an_executor_and_an_arbiter() -> None:
    assert set(EXECUTORS) == set(ARBITERS)
    assert max(ARBITERS) == ARITHMETIC


def test_steps_run_in_the_arithmetic_of_their_task(monkeypatch: pytest.MonkeyPatch) -> None:
    made, second = executor_on(CPU), executor_on(CPU)(work())
    with pytest.raises(UnknownArithmetic, match=r"arithmetic of task 7: expected a version .*: 1, got 2"):
        made(replace(work(), arithmetic=2))
    monkeypatch.setitem(ARBITERS, 2, "Arbiter")
    monkeypatch.setitem(EXECUTORS, 2, lambda _work, _device: second)
    assert made(replace(work(), arithmetic=2)) is second
    assert made(work()) is not second
