"""Compares the memory of an exact training step with that of eager float32 torch, each in its own process.

The measure is the growth of a process's resident memory: its peak during three steps minus its use with only
the libraries loaded. So weights, optimiser state, data, activations and packed operands count on both sides,
and torch itself counts on neither. The exact side runs a bundle, as a solver does. The temporary memory of
loading the bundle (files read, hashed and decoded) is released before the steps, and the peak is counted only
after that.
"""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Row, in_use

STEPS = 3
MEBIBYTE = 1 << 20


def rows() -> list[Row]:
    """One row for each size of the model, with the ratio of the two peak growths, exact / plain."""
    from benchmarks.gpt import SHAPES, TOKENS
    from benchmarks.starting import write

    found = []
    for name, shape in SHAPES.items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), name)
            ours = in_a_process(__name__, "exact", folder)
            plain = in_a_process(__name__, "plain", name)
        where = f"{TOKENS // shape.context} x {shape.context} tokens"
        what = f"peak memory of a step, exact / plain, GPT of {name}, {where}"
        sizes = f"{ours / MEBIBYTE:,.0f} / {plain / MEBIBYTE:,.0f} MiB"
        found.append(Row(f"{what} ({sizes})", f"{ours / plain:.2f}x", "1.3x"))
    return found


def in_a_process(module: str, side: str, what: str) -> int:
    """Run a measuring module with two arguments in a separate process. The module prints a number of bytes;
    return this number.
    """
    run = subprocess.run(
        [sys.executable, "-m", module, side, what], capture_output=True, text=True, check=True
    )
    found: int = json.loads(run.stdout)
    return found


def exact(folder: str) -> int:
    """Bytes that the steps of the bundle in `folder` need, not counting the libraries."""
    from protocol.execution.replay import Work, honest_executor
    from protocol.node.process import keep_memory
    from protocol.numerics.self_check import self_check
    from protocol.tasks.bundles import load_bundle

    keep_memory()
    self_check()
    before = in_use("VmRSS")
    bundle = load_bundle(Path(folder))
    executor, state = honest_executor(Work.of(1, bundle)), bundle.initial_state()
    del bundle
    forget_largest()
    for number in range(1, STEPS + 1):
        state = dict(executor.step(state, number))
    return in_use("VmHWM") - before


def plain(name: str) -> int:
    """Bytes that the steps of the model `name` need in eager float32 torch, not counting the libraries."""
    from benchmarks.gpt import plain_step

    return growth(lambda: plain_step(name))


def growth(make: Callable[[], Callable[[], None]]) -> int:
    """The peak memory while a step is run `STEPS` times, minus the memory in use before the step is made, in
    bytes. Temporary memory of making the step does not count.
    """
    before = in_use("VmRSS")
    step = make()
    forget_largest()
    for _ in range(STEPS):
        step()
    return in_use("VmHWM") - before


def forget_largest() -> None:
    """Return free memory to the system and reset the peak, VmHWM (Linux: proc(5), clear_refs)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    print(json.dumps({"exact": exact, "plain": plain}[sys.argv[1]](sys.argv[2])))
