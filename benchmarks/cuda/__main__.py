"""`python3 -m benchmarks.cuda --all`: runs all parts, in under nine minutes together, and writes one JSON
file.

It needs torch, triton, numpy and pytest; nothing is installed or downloaded. Every part is a separate
process. A part that fails, crashes or hangs costs only its own time and leaves its error in the file, which
is rewritten after each part. Correctness checks come first and run in parallel. Measurements run one at a
time. Tests come last.

Without a CUDA device this is a dry run: Triton interprets the kernels, sizes are small, and the measured
times mean nothing.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks.cuda.cells import FILE, is_well, read
from protocol.numerics.cuda import launch

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "cuda.json"
BUDGET = 520.0
"""Seconds for all parts: nine minutes minus start-up and shutdown."""
DRY_FACTOR = 4
"""Factor by which a part's time limit is multiplied in a dry run. Triton's interpreter is slow, and machines
without a device often have few cores.
"""
LEAST = 5.0
"""Remaining seconds below which no further part is started."""
TAIL = 30
"""Number of lines kept from the end of a failed part's output."""
TESTS = (
    "-c",
    "tests/gpu/without_plugins.ini",
    "--rootdir=.",
    "--confcutdir=tests/gpu",
    "-p",
    "benchmarks.cuda.outcomes",
)


@dataclass(frozen=True)
class Part:
    """A part: its name, its time limit in seconds, and pytest's arguments if the part runs tests."""

    name: str
    seconds: float
    tests: tuple[str, ...] = ()
    dry: tuple[str, ...] = ()
    """Additional arguments of pytest in a dry run."""


FIRST = (Part("native", 120), Part("machine", 60))
RIGHT = (
    Part("self_tests:int8-triton", 120),
    Part("self_tests:functions", 120),
    Part("self_tests:roots", 60),
    Part("self_tests:int8-mm", 90),
    Part("self_tests:float64", 90),
    Part("bits:linear", 90),
    Part("bits:mlp", 90),
    Part("bits:gpt", 90),
    Part("bits:resnet", 90),
    Part("bits:gpt-0.9M", 120),
    Part("bits:gpt-11M", 150),
)
MEASURED = (
    Part("times:steps", 90),
    Part("times:steps-86M", 180),
    Part("times:profile", 60),
    Part("times:profile-86M", 90),
    Part("times:products", 90),
    Part("times:tiles", 60),
    Part("times:lanes", 60),
)
CAPTURED = "tests/gpu/test_captured.py::test_"
TESTED = (
    Part("tests:cuda", 400, ("tests/gpu/test_cuda.py", "tests/same_bits/test_cuda.py", "-m", "gpu")),
    Part("tests:expansions", 400, (f"{CAPTURED}expansions", "-m", "gpu")),
    Part("tests:rules", 400, (f"{CAPTURED}operations_with_rules", "-m", "gpu")),
    Part(
        "tests:captured",
        400,
        (f"{CAPTURED}optimisers", f"{CAPTURED}draws", f"{CAPTURED}compositions", "-m", "gpu"),
    ),
    Part(
        "tests:triton",
        400,
        ("tests/gpu/test_compiled.py", "tests/gpu/test_interpreted.py", "-m", "gpu"),
        ("-k", "tensor_cores or rows_longer"),
    ),
)
ROUNDS: tuple[tuple[Sequence[Part], bool], ...] = (
    (FIRST, False),
    (RIGHT, True),
    (MEASURED, False),
    (TESTED, True),
)
"""The groups of parts in order, and whether their parts may run in parallel."""


@dataclass
class Report:
    """The output file and its contents so far."""

    path: Path
    document: dict[str, Any]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def put(self, name: str, found: dict[str, Any]) -> None:
        """Add a part and rewrite the file."""
        with self._lock:
            self.document["parts"][name] = found
            self.document["seconds"] = round(time.monotonic() - _START, 1)
            self.write()
        print(f"{self.document['seconds']:7.1f} s  {name}: {found['summary']}", flush=True)

    def write(self) -> None:
        """Write the file atomically."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(self.path.name + ".new")
        new.write_text(json.dumps(self.document, indent=1))
        new.replace(self.path)


_START = time.monotonic()


def main() -> None:
    """Run the chosen parts and write the file. Exits with 1 if any result is wrong, an error occurred, a test
    failed, or time ran out; otherwise with 0.
    """
    every = [part.name for group, _ in ROUNDS for part in group]
    parser = argparse.ArgumentParser(prog="benchmarks.cuda", description=__doc__)
    parser.add_argument("--all", action="store_true", help="all parts")
    parser.add_argument("--tests", action="store_true", help="the tests of tests/gpu and tests/same_bits")
    parser.add_argument("--parts", nargs="+", choices=every, default=[])
    parser.add_argument("--dry", action="store_true", help="on the CPU, also where there is a CUDA device")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds for all of it")
    given = parser.parse_args()
    wanted = {*given.parts, *([part.name for part in TESTED] if given.tests else [])}
    if given.all or not wanted:
        wanted = set(every)
    dry = given.dry or not torch.cuda.is_available()
    document: dict[str, Any] = {
        "device": "none: no CUDA device that torch can use"
        if not torch.cuda.is_available()
        else _device_name(),
        "dry": dry,
        "triton": launch.present(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": 0.0,
        "parts": {},
    }
    report = Report(given.output, document)
    report.write()
    print(f"device: {document['device']}{'; a dry run, whose times mean nothing' if dry else ''}", flush=True)
    for group, together in ROUNDS:
        chosen = [part for part in group if part.name in wanted]
        count = _beside() if together else 1

        def put(part: Part, count: int = count) -> None:
            report.put(part.name, run(part, dry, given.budget, count))

        with ThreadPoolExecutor(count) as threads:
            list(threads.map(put, chosen))
    bad = [name for name, found in report.document["parts"].items() if not found["ok"]]
    print(f"{given.output}: {len(report.document['parts']) - len(bad)} parts well, not well: {bad or 'none'}")
    sys.exit(1 if bad else 0)


def _device_name() -> str:
    try:
        return torch.cuda.get_device_name()
    except Exception as error:
        return f"unknown: {error}"


def _beside() -> int:
    """Number of parts that run in parallel: half the number of cores, but at least one and at most four. Four
    are enough to fill the device, and each part also needs the CPU for captures and comparisons.
    """
    return max(1, min(4, (os.cpu_count() or 1) // 2))


def run(part: Part, dry: bool, budget: float, beside: int = 1) -> dict[str, Any]:
    """Run a part within the remaining time. If `beside` parts run in parallel, the part gets an equal share
    of the cores.
    """
    left = budget - (time.monotonic() - _START)
    if left < LEAST:
        return {"ok": False, "summary": "left out: no time left", "cells": {}}
    limit = min(part.seconds * (DRY_FACTOR if dry else 1), left)
    return observe(_command(part, limit, dry), _variables(part, dry, beside), limit)


def _command(part: Part, limit: float, dry: bool) -> list[str]:
    if part.name == "native":
        return [sys.executable, "-m", "benchmarks.cuda.native"]
    if part.tests:
        return [sys.executable, "-m", "pytest", *TESTS, *part.tests, *(part.dry if dry else ())]
    command = [sys.executable, "-m", "benchmarks.cuda.child", part.name, str(0.8 * limit)]
    return [*command, "--dry"] if dry else command


def _variables(part: Part, dry: bool, beside: int) -> dict[str, str]:
    found = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // beside))}
    if part.tests:
        found["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # ignore installed plugins
    if dry and part.name.startswith("self_tests:") and launch.present():
        found[launch.INTERPRETED] = "1"
    return found


def observe(command: list[str], variables: dict[str, str], limit: float) -> dict[str, Any]:
    """Run a command for at most `limit` seconds; return the cells that it wrote and how it ended.

    The environment variable named by `cells.FILE` tells the command the file for its cells.
    """
    start = time.monotonic()
    kept = {name: value for name, value in os.environ.items() if name != launch.INTERPRETED}
    with tempfile.TemporaryDirectory() as folder:
        file, output = Path(folder, "cells"), Path(folder, "output")
        code = _process(command, {**kept, **variables, FILE: str(file)}, output, limit)
        cells = {line.pop("cell"): line for line in read(file)}
        said = output.read_text(errors="replace").splitlines()[-TAIL:]
    wrong = [name for name, line in cells.items() if not is_well(line)]
    # pytest exits with 1 if a test failed, which the cells already report.
    failed = code is None or (code != 0 and not (code == 1 and wrong))
    summary = f"{len(cells) - len(wrong)} of {len(cells)} well"
    skipped = sum(line.get("outcome") == "skipped" for line in cells.values())
    summary += f", {skipped} of them skipped" if skipped else ""
    if failed:
        summary += f"; stopped after {limit:.0f} s" if code is None else f"; exit code {code}"
    found = {"ok": not (failed or wrong), "summary": summary, "wrong": wrong, "exit": code}
    found |= {"seconds": round(time.monotonic() - start, 1), "cells": cells}
    return found if found["ok"] else {**found, "output": said}


def _process(command: list[str], environment: dict[str, str], output: Path, limit: float) -> int | None:
    """Run a command and return its exit code, or None if it exceeded `limit` seconds, after which it and its
    children were killed.
    """
    with output.open("w") as out:
        child = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return child.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return None


if __name__ == "__main__":
    main()
