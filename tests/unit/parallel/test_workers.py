"""Several worker processes compute the same bits as one process. They end cleanly after every failure, and
leave nothing behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest
import torch

from protocol.execution.workers import WorkerFailed, WorkerLost
from protocol.execution.workers.pool import Workers
from protocol.execution.workers.states import read_state, write_state
from protocol.program.errors import ValueMismatch
from protocol.program.parallel import TooManyProcesses
from protocol.program.step import State, metrics
from tests.same_bits.runs import ROOT
from tests.unit.parallel import tasks
from tests.unit.parallel.tasks import BUILD, SEED, UNITS

STEPS = 20


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use one thread per process, because several tests run at once."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def gone(pids: list[int], seconds: float = 10) -> bool:
    """Whether all processes with these ids end within `seconds`."""
    deadline = monotonic() + seconds
    while any(running(pid) for pid in pids):
        if monotonic() > deadline:
            return False
        sleep(0.05)
    return True


def running(pid: int) -> bool:
    """Whether a process runs and is not a zombie."""
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def same_bits(model: str, processes: int, folder: Path) -> None:
    step = BUILD[model]()
    hash_ = tasks.written(step, folder)
    seen: list[tuple[int, dict[str, float]]] = []
    with Workers(folder, hash_, step.step_program, processes) as workers:
        pids = workers.pids
        state: State = step.initial_state(SEED)
        for first in (1, 1 + STEPS // 2):  # first from a file, then from the workers' state
            state = workers.run(state, first, STEPS // 2, lambda n, s: seen.append((n, metrics(s))))
        assert len(pids) == processes
    assert gone(pids)
    expected: list[tuple[int, dict[str, float]]] = []
    other: State = step.initial_state(SEED)
    for number in range(1, STEPS + 1):
        other = step.step(other)
        expected.append((number, metrics(other)))
    assert seen == expected
    assert step.step_program.state_root(state) == step.step_program.state_root(other)


@pytest.mark.parametrize("model", BUILD)
def test_two_processes_have_the_bits_of_one(model: str, tmp_path: Path) -> None:
    same_bits(model, 2, tmp_path)


@pytest.mark.heavy
@pytest.mark.parametrize("model", BUILD)
@pytest.mark.parametrize("processes", [1, 3, 4])
def test_any_number_of_processes_has_the_bits_of_one(model: str, processes: int, tmp_path: Path) -> None:
    same_bits(model, processes, tmp_path)


def test_a_killed_worker_ends_all_and_is_named(tmp_path: Path) -> None:
    step = tasks.mlp()
    workers = Workers(tmp_path, tasks.written(step, tmp_path), step.step_program, 2)
    pids = workers.pids

    def kill(number: int, _: State) -> None:
        if number == 3:
            os.kill(pids[1], signal.SIGKILL)

    with pytest.raises(
        WorkerLost, match=rf"worker 1 of 2 \(process {pids[1]}\): .* got signal 9; go on from"
    ):
        workers.run(step.initial_state(SEED), 1, 100_000, kill)
    assert workers.pids == []
    assert gone(pids)


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, with all it starts
from pathlib import Path
from protocol.execution.workers.pool import Workers
from tests.unit.parallel import tasks
step = tasks.mlp()
workers = Workers(Path(sys.argv[1]), bytes.fromhex(sys.argv[2]), step.step_program, 2)
def tell(number, _):
    if number == 2:
        print(*workers.pids, flush=True)
workers.run(step.initial_state(tasks.SEED), 1, 1_000_000, tell)
"""


@pytest.fixture
def parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process with two running workers, and the workers' ids."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    hash_ = tasks.written(tasks.mlp(), tmp_path)
    command = [sys.executable, "-c", PARENT, str(tmp_path), hash_.hex()]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield process, [int(word) for word in process.stdout.readline().split()]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.heavy)])
def test_workers_end_with_their_parent_and_leave_nothing(
    parent: tuple[subprocess.Popen[str], list[int]], how: signal.Signals, tmp_path: Path
) -> None:
    process, pids = parent
    assert [running(pid) for pid in pids] == [True, True]
    assert list(tmp_path.glob("assay-workers-*/state"))
    os.killpg(process.pid, how)  # like a terminal; workers have their own process groups
    assert gone(pids)
    assert process.wait(10) != 0
    assert not list(tmp_path.glob("assay-workers-*"))


def test_more_workers_than_units_are_refused_before_any_starts(tmp_path: Path) -> None:
    step = tasks.mlp()
    with pytest.raises(TooManyProcesses, match=f"at most {UNITS} processes.*got {UNITS + 1}; start at most"):
        Workers(tmp_path, bytes(32), step.step_program, UNITS + 1)


def test_another_bundle_than_was_promised_is_not_trained(tmp_path: Path) -> None:
    step = tasks.mlp()
    tasks.written(step, tmp_path)
    with pytest.raises(WorkerLost, match="bundle"):
        Workers(tmp_path, bytes(32), step.step_program, 1)


def test_a_machine_that_fails_its_self_check_commits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sitecustomize` makes every process flush subnormals to zero, as loading a library built with
    -ffast-math does.
    """
    step = tasks.mlp()
    hash_ = tasks.written(step, tmp_path)
    (tmp_path / "sitecustomize.py").write_text("import torch\ntorch.set_flush_denormal(True)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(WorkerFailed, match="worker 0: subnormals"):
        Workers(tmp_path, hash_, step.step_program, 1)


def test_a_state_that_changed_on_the_way_is_refused(tmp_path: Path) -> None:
    step = tasks.mlp()
    program, state = step.step_program, step.initial_state(SEED)
    file, root = tmp_path / "state", program.state_root(state)
    write_state(program, state, file)
    assert all(torch.equal(x, state[name]) for name, x in read_state(program, file, root).items())
    data = bytearray(file.read_bytes())
    data[5] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueMismatch, match=root.hex()):
        read_state(program, file, root)
    file.write_bytes(data[:-1])
    with pytest.raises(ValueMismatch, match="bytes"):
        read_state(program, file, root)
