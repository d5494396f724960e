"""Workers that do not fit in memory together are refused before any of them starts. A solver uses fewer
workers instead.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from protocol.execution.replay import HonestExecutor, Work
from protocol.execution.turns import Turns
from protocol.execution.workers import TooLittleMemory, memory
from protocol.execution.workers.pool import Workers
from protocol.program.cost import cost
from solver import processes
from solver.processes import WorkerRunner
from solver.training import LocalRunner
from tests.unit.parallel import tasks
from tests.unit.parallel.tasks import UNITS


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file used instead of /proc/meminfo."""
    path = tmp_path / "meminfo"
    monkeypatch.setattr(memory, "MEMINFO", path)
    return path


def has(free: Path, count: int) -> None:
    free.write_text(f"MemTotal: 99999999 kB\nMemAvailable: {count // 1024} kB\n")


def test_a_worker_needs_what_the_program_says_and_the_libraries() -> None:
    program = tasks.mlp().step_program
    assert memory.needed(program) == cost(program.program).peak_bytes + memory.LIBRARIES


@pytest.mark.parametrize(("room", "words"), [(1.9, "start at most 1"), (0.9, "train in one process")])
def test_workers_that_do_not_fit_are_refused_before_any_starts(
    free: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: float, words: str
) -> None:
    program = tasks.mlp().step_program
    has(free, int(room * memory.needed(program)))

    def never(*_: object) -> None:
        pytest.fail("a worker was started")

    monkeypatch.setattr(Workers, "_start", never)
    with pytest.raises(TooLittleMemory, match=rf"2 processes: expected .* MiB.*got .* MiB; {words}"):
        Workers(tmp_path, bytes(32), program, 2)


def test_as_many_as_fit_where_it_is_known_and_all_where_it_is_not(free: Path) -> None:
    program = tasks.mlp().step_program
    assert memory.fitting(program, 4) == 4  # no such file, as on another system
    has(free, 3 * memory.needed(program) + 4096)
    assert memory.fitting(program, 4) == 3
    assert memory.fitting(program, 2) == 2
    memory.require_memory(program, 3)


@pytest.mark.parametrize(("room", "due"), [(UNITS + 0.5, UNITS), (2.5, 2), (1.5, 1), (0.5, 1)])
def test_a_solver_trains_with_as_many_as_fit(free: Path, tmp_path: Path, room: float, due: int) -> None:
    program = tasks.mlp().step_program
    has(free, int(room * memory.needed(program)))
    said: list[tuple[str, dict[str, object]]] = []
    log = SimpleNamespace(info=lambda *_, **__: None, warning=lambda text, **more: said.append((text, more)))
    context = SimpleNamespace(
        settings=SimpleNamespace(processes=UNITS),
        log=log,
        bundles=tmp_path,
        turns=Turns(),
        in_turns=lambda executor, _task, _terms: executor,
    )
    work = Work(1, program, (), {})
    executor = HonestExecutor.__new__(HonestExecutor)
    found = processes.runner(context, work, SimpleNamespace(bundle_hash=bytes(32)), executor)  # type: ignore[arg-type]
    if due == 1:
        assert isinstance(found, LocalRunner)
    else:
        assert isinstance(found, WorkerRunner)
        assert found.processes == due
    assert bool(said) == (due < UNITS)
    if said:
        assert said[0][0] == "too little memory, fewer processes"
        assert said[0][1]["processes"] == due


def test_memory_that_is_gone_when_workers_start_ends_in_one_process(free: Path, tmp_path: Path) -> None:
    step = tasks.mlp()
    has(free, 0)
    ran: list[int] = []

    class Here:
        def run(self, state: object, first: int, steps: int, on_step: object) -> object:
            ran.append(first)
            return state

    work = Work(1, step.step_program, (), {})
    together = WorkerRunner(work, tmp_path, bytes(32), 2, Here())  # type: ignore[arg-type]
    state = step.initial_state(1)
    assert together.run(state, 1, 4, lambda *_: None) is state
    assert together.run(state, 5, 4, lambda *_: None) is state
    assert ran == [1, 5]
