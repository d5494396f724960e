"""A step shared by processes: its units, their distribution, and results with the same bits as a single
process.

If a process errs or leaves, the processes that stay raise an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from examples import digits
from protocol.execution.workers.pool import LOOPBACK
from protocol.numerics.types import DType
from protocol.program import Builder, Op, Program, TensorType
from protocol.program.parallel.plan import plan
from protocol.program.parallel.units import units
from tests.same_bits.runs import ROOT
from tests.unit.parallel import tasks

X = TensorType(DType.F32, (300, 300))


def heavy() -> Program:
    """A program that is expensive enough to share."""
    b = Builder("heavy")
    x = b.input(X)
    for _ in range(4):
        x = b.div(x, b.f32(0x40400000))
    b.output(x)
    return b.build()


def calling(count: int, *, chained: bool = False, spare: int = 0) -> Program:
    """A program that calls `heavy` `count` times, and divides `spare` times."""
    b = Builder("top")
    x = y = b.input(X)
    results = []
    for k in range(count):
        y = b.call(heavy(), y if chained else b.add(x, b.f32(k)))[0]
        results.append(y)
    total = results[0]
    for result in results[1:]:
        total = b.add(total, result)
    for _ in range(spare):
        total = b.div(total, x)
    b.output(total)
    return b.build()


def test_units_are_the_independent_calls_that_make_up_the_work() -> None:
    program = calling(3)
    assert [program.instructions[n].op for n in units(program)] == [Op.CALL] * 3
    assert units(calling(1)) == ()
    assert units(calling(3, chained=True)) == ()
    assert units(calling(2, spare=40)) == ()
    assert units(digits.build(10).step_program.program) == ()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_every_process_runs_its_units_and_what_it_needs_and_nothing_of_others(size: int) -> None:
    program = calling(5)
    shared = units(program)
    plans = [plan(program, rank, size) for rank in range(size)]
    for rank, made in enumerate(plans):
        own = [n for n in made.order if n in shared]
        assert own == [n for place, n in enumerate(shared) if place % size == rank]
        assert len(set(made.order)) == len(made.order)
        ran = set(made.order) | (set(shared) if size > 1 else set())
        for number in made.order:
            assert {program.producer(x.leaf) for x in program.instructions[number].operands} <= ran
        prepared = [n for n in made.order if program.instructions[n].op is Op.ADD]
        assert len(prepared) == len(own) + 4  # one operand for each own unit, and the four sums
    exchanged = [
        [pair for place in sorted(made.exchanges) for pair in made.exchanges[place]] for made in plans
    ]
    assert all(pairs == exchanged[0] for pairs in exchanged)
    expected = [(n, place % size) for place, n in enumerate(shared)] if size > 1 else []
    assert exchanged[0] == expected


def ranks(folder: Path, place: Path, size: int, steps: int, fault: str = "none") -> list[dict[str, Any]]:
    """Run the processes of a group, and return what they print. Processes that leave print nothing."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": LOOPBACK}
    command = [sys.executable, "-m", "tests.unit.parallel.rank", str(folder), str(place / fault)]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(size), str(steps), fault],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        said = [process.communicate(timeout=120)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [json.loads(line) for line in said if line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of a step with four units."""
    place = tmp_path_factory.mktemp("bundle")
    tasks.written(tasks.mlp(), place)
    return place


@pytest.mark.heavy
def test_three_processes_have_the_root_of_one(folder: Path, tmp_path: Path) -> None:
    step = tasks.mlp()
    expected = step.step_program.state_root(tasks.alone(step, 3)).hex()
    assert ranks(folder, tmp_path, 3, 3) == [{"root": expected}] * 3


def test_a_device_that_errs_by_one_ulp_is_noticed_by_all(folder: Path, tmp_path: Path) -> None:
    said = ranks(folder, tmp_path, 2, 2, "update")
    assert [found["error"] for found in said] == ["RanksDisagree"] * 2
    assert "one state root in all processes" in said[0]["message"]


def test_a_process_that_leaves_is_noticed_by_the_others(folder: Path, tmp_path: Path) -> None:
    (found,) = ranks(folder, tmp_path, 2, 2, "leave")
    assert found["error"] == "PartnerLost"
    assert "from all 2 processes at process 0" in found["message"]


@pytest.mark.heavy
def test_more_processes_than_units_are_refused_by_all(folder: Path, tmp_path: Path) -> None:
    said = ranks(folder, tmp_path, 5, 1)
    assert [found["error"] for found in said] == ["TooManyProcesses"] * 5
    assert "start at most 4, or capture the step with more micro_batches" in said[0]["message"]
