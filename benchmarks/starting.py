"""Measures the time from the start of a new process to the end of a task's first step. As in a second run,
the bundle is already on disk and the package is already built.

The new process imports a solver's modules, loads and verifies the bundle, recognises the library functions of
the bundle's program, tests the machine and the compiled kernels, and runs one step. All times are measured
from the start of the process, so they include the interpreter's start.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.measure import Row

RUNS = 3
PARTS = ("import", "load", "recognise", "self-test", "step")


def rows() -> list[Row]:
    """Rows with the seconds from the start of a new process to the end of its first step, in total and by
    part, for two GPTs.
    """
    from benchmarks.gpt import SHAPES

    found = []
    for name in ("11M", "50M"):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), name)
            runs = [_run(folder) for _ in range(RUNS)]
        whole = median(run["whole"] for run in runs)
        parts = ", ".join(f"{part} {median(run[part] for run in runs):.1f}" for part in PARTS)
        layers = SHAPES[name].layers
        found.append(
            Row(
                f"first step of a second run, GPT of {name}, {layers} layers ({parts})",
                f"{whole:.1f} s",
                "5 s",
            )
        )
    return found


def write(folder: Path, name: str) -> None:
    """Write the bundle of the step of a GPT to `folder`. `name` says which size of GPT, for example "11M"."""
    from benchmarks.gpt import captured
    from protocol.tasks.bundles import Bundle, write_bundle

    step = captured(name)
    write_bundle(Bundle.of(name, step, step.initial_state(seed=1)), folder)


def _run(folder: str) -> dict[str, float]:
    start = time.monotonic()  # the clock is the same in all processes
    run = subprocess.run(
        [sys.executable, "-m", __name__, folder, str(start)], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(run.stdout)
    return found


def first_step(folder: Path, start: float) -> dict[str, float]:
    """Seconds from `start` to the end of the first step, as `whole`, and the seconds of each of `PARTS`."""
    from protocol.node.process import importing, keep_memory

    keep_memory()
    with importing():
        from protocol.execution.replay import Work, honest_executor
        from protocol.numerics.self_check import self_check
        from protocol.tasks.bundles import load_bundle

    times = [start, time.monotonic()]
    bundle = load_bundle(folder)
    times.append(time.monotonic())
    work = Work.of(1, bundle)
    times.append(time.monotonic())
    self_check()
    times.append(time.monotonic())
    honest_executor(work).step(bundle.initial_state(), 1)
    times.append(time.monotonic())
    parts = {part: end - begin for part, begin, end in zip(PARTS, times, times[1:])}
    return {"whole": times[-1] - start, **parts}


if __name__ == "__main__":
    print(json.dumps(first_step(Path(sys.argv[1]), float(sys.argv[2]))))
