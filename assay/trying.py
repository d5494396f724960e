"""`assay try`: trains the first steps of a task on this machine, side by side in exact arithmetic and in
plain float32 torch. Needs no chain.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from assay import source as sources
from assay import submitting
from assay.commands import Context
from assay.deriving import Derived
from assay.description import Description, read
from assay.places import place_of
from assay.source import Captured, told
from assay.submitting import Prepared
from protocol.capture.preflight.following import Following, apart, following
from protocol.node.memory import forget_peak, peak_memory
from protocol.node.process import keep_memory
from protocol.node.progress_bar import progress_bar
from protocol.tasks.usual_solver import SPEED

if TYPE_CHECKING:
    from protocol.program.step import State

SHOWN_APART = 0.01
"""A note is printed if the losses differ by more than this fraction."""
LAST_LINES = 20
"""Number of steps whose losses are printed; `--json` has them all."""
TIMED = 5
"""Maximum number of extra torch steps that are run only for timing. They are needed if the compared steps use
the program's random numbers, because drawing those takes longer than drawing torch's own.
"""
MEBIBYTE = 1 << 20


@dataclass
class Side:
    """Measurements of one of the two ways to train: the seconds of each step, and the peak of memory in use
    during a step, in bytes. `peak` is None if the system does not report it.
    """

    seconds: list[float] = field(default_factory=list)
    peak: int | None = None

    @contextmanager
    def measured(self, timed: bool = True) -> Iterator[None]:
        """Measure the peak of memory during one step and, if `timed`, the step's seconds."""
        forget_peak()
        began = time.perf_counter()
        yield
        if timed:
            self.seconds.append(time.perf_counter() - began)
        now = peak_memory()
        self.peak = now if self.peak is None or now is None else max(self.peak, now)

    @property
    def each(self) -> float | None:
        """The median seconds of a step. The first step, which prepares kernels, counts only if it is the only
        one.
        """
        return median(self.seconds[1:] or self.seconds) if self.seconds else None

    def words(self) -> str:
        """The times in words."""
        each = "not timed" if self.each is None else f"{self.each:.3g} s a step"
        first = f" (the first {self.seconds[0]:.3g} s)" if len(self.seconds) > 1 else ""
        return each + first


@dataclass(frozen=True)
class Step:
    """The losses of one step, by the names of their metrics, in exact arithmetic and in torch. `torch` is
    empty if torch is not compared.
    """

    step: int
    losses: dict[str, float]
    torch: dict[str, float]

    def line(self) -> str:
        """The losses in words."""
        ours = ", ".join(f"{_short(name)} {loss:.6g}" for name, loss in self.losses.items())
        theirs = ", ".join(f"{loss:.6g}" for loss in self.torch.values())
        beside = f"   torch {theirs}   apart {100 * apart(self.losses, self.torch):.2g} %" if theirs else ""
        return f"step {self.step}: {ours}{beside}"


def attempt(context: Context, file: Path, count: int) -> None:
    """Train the first `count` steps of the task in a file, and print the outcome and what to do next. Raises
    DescriptionError, SourceError, StartError, CaptureError, NoRecommendation.
    """
    keep_memory()
    output, description = context.output, read(file)
    place = place_of(context.settings, None)
    captured = sources.captured(description)
    prepared = submitting.drafted(captured, place.arithmetic)
    for note in prepared.notes:
        output.say(f"note: {note}")
    theirs = following(captured.step)
    if theirs is None:
        output.say("note: it goes on from another task's state, so torch does not train beside it")
    exact, plain = Side(), Side()
    steps = _trained(description, captured, theirs, exact, plain, min(count, description.steps))
    for step in steps[-LAST_LINES:]:
        output.say(step.line())
    derived = prepared.derived(place)
    for line in _summary(prepared, exact, plain, steps):
        output.say(line)
    output.say("what it may cost, by the recommended parameters and assumed prices:")
    for line in derived.lines():
        output.say(f"  {line}")
    output.say(
        f"next: `assay price {file}` for the price on your chain, then `assay submit {file} --dry-run`. All parties "
        "read data and weights"
    )
    output.result(_told(prepared, derived, exact, plain, steps))


def _trained(
    description: Description,
    captured: Captured,
    theirs: Following | None,
    exact: Side,
    plain: Side,
    count: int,
) -> list[Step]:
    """Train the steps, and measure their costs."""
    state: State = captured.step.initial_state(captured.seed)
    steps: list[Step] = []
    bar: Any = nullcontext()
    if sys.stderr.isatty():
        bar = progress_bar("{task.description}", "steps  {task.fields[loss]}")
    with bar as shown:
        row = None if shown is None else shown.add_task("training", total=count, loss="")
        for number in range(1, count + 1):
            beside: dict[str, float] = {}
            if theirs is not None:
                with plain.measured(timed=False), told(description.source):
                    beside = theirs.step(state)
            with exact.measured():
                state = captured.step.step(state)
            names = [name for name in state if name == "metric.loss" or name.endswith(".loss")]
            steps.append(Step(number, {name: float(state[name]) for name in names}, beside))
            if shown is not None:
                shown.update(row, advance=1, loss=steps[-1].line())
    if theirs is not None:
        if theirs.draws:
            for _ in range(min(count, TIMED)):
                with told(description.source):
                    theirs.timed(state)
        plain.seconds = theirs.seconds
    return steps


def _summary(prepared: Prepared, exact: Side, plain: Side, steps: list[Step]) -> Iterator[str]:
    load = prepared.load
    followed = [apart(step.losses, step.torch) for step in steps if step.torch]
    if followed:
        furthest = math.nan if any(map(math.isnan, followed)) else max(followed)
        yield f"losses of {len(followed)} steps are at most {100 * furthest:.2g} % apart from torch's float32"
        if not furthest <= SHOWN_APART:  # also if it is NaN
            yield (
                "note: training is chaotic, and small differences grow; what exact arithmetic does to a training is in "
                "docs/numerics.md"
            )
    beside = "" if plain.each is None else f"; plain float32 torch {plain.words()}"
    yield f"exact {exact.words()}{beside}"
    peaks = [
        f"{which} {side.peak / MEBIBYTE:,.0f} MiB"
        for which, side in (("exact", exact), ("torch", plain))
        if side.peak
    ]
    if peaks:
        yield f"most memory of this process during a step, libraries included: {', '.join(peaks)}"
    yield (
        f"bundle {_size(load.bundle_bytes)}, state {_size(load.state_bytes)}, {load.step_operations:,} operations a "
        f"step, {load.operations:.4g} in {prepared.description.steps} steps"
    )
    if exact.each:
        yield (
            f"this machine does {load.step_operations / exact.each:.3g} operations a second; terms reckon with solvers "
            f"of {SPEED:.3g}"
        )


def _told(
    prepared: Prepared, derived: Derived, exact: Side, plain: Side, steps: list[Step]
) -> dict[str, Any]:
    load = prepared.load
    return {
        "steps": [{"step": one.step, "losses": one.losses, "torch": one.torch} for one in steps],
        "seconds": {"exact": exact.each, "torch": plain.each},
        "peak_bytes": {"exact": exact.peak, "torch": plain.peak},
        "bundle_bytes": load.bundle_bytes,
        "state_bytes": load.state_bytes,
        "step_operations": load.step_operations,
        "operations": load.operations,
        "budget": derived.budget,
        "trust": derived.report(),
    }


def _short(name: str) -> str:
    return name.removeprefix("metric.")


def _size(count: int) -> str:
    """A number of bytes, in words."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
