"""Measures the simulation engine: task-rounds per second on two processes, and speed relative to plain Python
and Mesa.

The baseline market has 20 solvers, which bid, and 200 verifiers, 3 of which are drawn. 140 of the verifiers
replay honestly, and solvers invent a tenth of the segments. Fees and slashes are booked in whole units. For
the comparison, the engine and its two rivals run in turn, each in one process. The rivals have a separate
environment under build/, which is made on first use. They receive their parameters over a pipe.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks.measure import Action, Row, quartiles, side_by_side
from protocol.node.process import keep_memory
from sim.agents.population import population
from sim.agents.solvers import Lazy
from sim.agents.verifiers import Trusting, Verifier
from sim.engine.simulate import Case, simulate
from sim.parameters import MarketParameters

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / "build" / "rivals"
PINNED = (
    "Mesa==3.3.1",
    "numpy==2.4.6",
    "pandas==3.1.1",
    "python-dateutil==4.0.0",
    "scipy==1.17.1",
    "tqdm==4.70.1",
    "tzdata==2026.6",
)
PROCESSES = 2
RUNS, ROUNDS = 8_192, 50
"""Runs and rounds in one timed call of the engine: about 400,000 task-rounds, which take half a second."""
RIVALS = {"plain Python": ("simulation_plain.py", 4_000), "Mesa 3.3.1": ("simulation_mesa.py", 2_000)}
"""The rivals' scripts, and the task-rounds in one timed call of each."""
TURNS = 9
HONEST, FALSE_SHARE = 140, 0.1


def case() -> Case:
    """The baseline market."""
    parameters = MarketParameters()
    people = population(
        [(Lazy(FALSE_SHARE), parameters.solver_count)],
        [(Verifier(), HONEST), (Trusting(), parameters.verifier_count - HONEST)],
    )
    return Case(parameters, people)


def terms() -> dict[str, float]:
    """The baseline market (`case`), as parameters of the plain model (`simulation_plain.Terms`)."""
    parameters = case().parameters
    return {**asdict(parameters), "honest_verifiers": HONEST, "false": Lazy(FALSE_SHARE).false(parameters)}


def rows() -> list[Row]:
    """Rows with task-rounds per second, and the speed relative to each rival."""
    return [*_speeds(), *_beside()]


def _play(seed: int) -> float:
    """Play RUNS x ROUNDS task-rounds, and return the processor time in seconds."""
    start = time.process_time()
    simulate(case(), runs=RUNS, rounds=ROUNDS, seed=np.random.SeedSequence(seed))
    return time.process_time() - start


def _speeds() -> Iterator[Row]:
    """Speeds by wall time and speeds by processor time. Wall time depends on other work of the machine."""
    clock, processor = [], []
    with ProcessPoolExecutor(PROCESSES, initializer=keep_memory) as pool:
        list(pool.map(_play, range(PROCESSES)))
        for turn in range(TURNS):
            start = time.perf_counter()
            took = list(pool.map(_play, range(turn, turn + PROCESSES)))
            clock.append(PROCESSES * RUNS * ROUNDS / (time.perf_counter() - start))
            processor.append(PROCESSES * RUNS * ROUNDS / (sum(took) / PROCESSES))
    what = f"simulation, baseline market, {PROCESSES} processes"
    yield _speed(f"{what}, by the clock", clock)
    yield _speed(f"{what}, by processor time", processor)


def _speed(what: str, speeds: Sequence[float]) -> Row:
    found = quartiles(speeds)
    spread = f"{found.low:,.0f}–{found.high:,.0f}"
    return Row(what, f"{found.median:,.0f} task-rounds/s", "1,000,000", spread)


def _beside() -> Iterator[Row]:
    python = _environment()
    with _rival(python, "plain Python") as plain, _rival(python, "Mesa 3.3.1") as mesa:
        found = side_by_side(lambda: _play(1), {"plain Python": plain, "Mesa 3.3.1": mesa}, TURNS)
    for name, times in found.items():
        faster = quartiles([RUNS * ROUNDS / RIVALS[name][1] / ratio for ratio in times])
        what = f"simulation, task-rounds a second, one process: engine / {name}"
        yield Row(what, f"{faster.median:.0f}x", "", f"{faster.low:.0f}–{faster.high:.0f}", faster)


@contextmanager
def _rival(python: Path, name: str) -> Iterator[Action]:
    """Run a rival's process. Yield an action that plays a market in that process."""
    script, rounds = RIVALS[name]
    command = [str(python), str(HERE / script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout

        def play() -> None:
            print(json.dumps([terms(), rounds, 1]), file=process.stdin, flush=True)
            if process.stdout is None or process.stdout.readline().strip() != "played":
                raise RuntimeError(f"expected {name} to play, got nothing; see its output")

        yield play
        process.stdin.close()


def _environment() -> Path:
    """Make the rivals' environment, with only the pinned packages, unless it already exists with the same
    pinned packages. Return its interpreter.
    """
    python, made = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "pinned.json"
    if not made.exists() or json.loads(made.read_text()) != list(PINNED):
        print("benchmarks: making the environment of Mesa", file=sys.stderr)
        venv.create(ENVIRONMENT, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", "--no-deps", *PINNED], check=True)
        made.write_text(json.dumps(PINNED))
    return python
