"""`assay plan`: finds the schedule with which a task's training ends first over given links. A schedule is a
number of machines, a number of steps per round and a message density. Computing times are measured on this
machine; the rest is calculated (`protocol.lanes.schedule`). Needs no chain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from assay import source as sources
from assay.commands import Context
from assay.description import read
from protocol.capture import CapturedStep
from protocol.exchange.announcements import Announcement
from protocol.exchange.messages import require_message, tensor_of
from protocol.exchange.shelf import Shelf
from protocol.lanes import Lanes, lanes
from protocol.lanes.schedule import (
    LEAST_TURNS,
    MOST_INNER,
    Schedule,
    Times,
    links_of,
    recommended,
    schedules,
    speeds_of,
    widths_of,
)
from protocol.node.process import keep_memory
from protocol.node.words import duration
from protocol.numerics.types import canonical_buffer
from protocol.program.step import State
from protocol.tasks import usual_solver
from protocol.tasks.floor import least_price
from protocol.tasks.task import TOKEN

TIMED: Final = 3
"""Timed repetitions of each measurement, after one that warms up the kernels."""
SHOWN: Final = 12
"""Number of schedules in the table; `--json` has all of them."""
COLUMNS: Final = (
    "lanes",
    "steps a round",
    "density",
    "s a round",
    "communication",
    "ends after",
    "lane-hours",
    "tokens",
    "received by a lane",
)


@dataclass(frozen=True)
class Choices:
    """The command's options. Lists are still text, not yet parsed."""

    lanes: str
    links: str
    speeds: str
    bucket: bool
    trip: float
    """A network round trip, in milliseconds."""
    share: float
    everything: bool


def plan(context: Context, file: Path, choices: Choices) -> None:
    """Measure the step of a task file, and print which schedules end first. Raises DescriptionError,
    SourceError, StartError, CaptureError, LanesError.

    Options are parsed before anything is captured or measured.
    """
    keep_memory()
    widths = widths_of(choices.lanes)
    links, speeds = links_of(choices.links, widths[-1]), speeds_of(choices.speeds, widths[-1])
    description = read(file)
    captured = sources.captured(description)
    with TemporaryDirectory(dir=context.home.folder("plans")) as folder:
        times = measured(captured.step, captured.seed, widths, tuple(MOST_INNER), Path(folder))
    steps = description.steps
    found = schedules(
        steps,
        times,
        links,
        speeds,
        bucket=choices.bucket,
        trip=choices.trip / 1000,
        everything=choices.everything,
    )
    within = recommended(found, choices.share)
    best = within or found[0]
    output, alone = context.output, steps * times.step / max(speeds)
    for line in _words(file, choices, times, steps, alone, found, best):
        output.say(line)
    output.result(
        {
            "steps": steps,
            "step_seconds": times.step,
            "alone_seconds": alone,
            "share": choices.share,
            "within_share": within is not None,
            "recommended": _report(best, times),
            "schedules": [_report(one, times) for one in found],
        }
    )


def cost(schedule: Schedule) -> int:
    """The cost, in token units, of a schedule's lane-hours: the hours that each lane is occupied, summed over
    all lanes. The cost consists of machines, power, the risk of delay, and a margin, at the figures of a
    solver with default settings. Gas and stake are not included, because lanes use no contracts.
    """
    costs = usual_solver.costs(Fraction(0))
    hours = schedule.lane_hours * 3600
    return least_price(hours, costs, stake=0, delay_penalty=0, bidding=0, audit=0).price


# measurements


def measured(
    captured: CapturedStep, seed: int, widths: Sequence[int], blocks: Sequence[int], folder: Path
) -> Times:
    """Measure what lanes need on this machine:

    - the seconds of an inner step;
    - the seconds of a lane's other work in a round: absorbing, emitting, keeping its state in `folder`, and
      checking and keeping the others' messages;
    - by block size, the bytes of a message together with its announcement.
    """
    state: State = captured.initial_state(seed)

    def step() -> None:
        nonlocal state
        state = captured.step(state)

    each = _seconds(step)
    beside: dict[tuple[int, int], float] = {}
    fetched: dict[int, int] = {}
    for block in blocks:
        for width in widths:
            job = lanes(captured, width=width, density=Fraction(1, block), inner_steps=1)
            absorbing, emitted = _absorbing(job, seed)
            if width == widths[0]:
                emitting = _emitting(job, emitted)
                keeping, receiving = _keeping(job, emitted, folder)
                fetched[block] = Announcement.bytes_of(job)
            beside[width, block] = absorbing + emitting + keeping + (width - 1) * receiving
    return Times(each, beside, fetched)


def _absorbing(job: Lanes, seed: int) -> tuple[float, State]:
    """Measure the seconds to absorb the messages of a round. Also returns a state between two rounds."""
    interpreter = job.interpreter()
    state = job.train(job.initial_state(seed, 0), [job.nothing()] * job.width, interpreter)
    inbox = [job.message(state)] * job.width
    return _seconds(lambda: job.absorbed(state, inbox, interpreter)), state


def _emitting(job: Lanes, state: State) -> float:
    interpreter = job.interpreter()
    return _seconds(lambda: job.emit.step(state, (), interpreter))


def _keeping(job: Lanes, state: State, folder: Path) -> tuple[float, float]:
    """Two measured times, in seconds: to hash and write a state, and to check and write a message."""
    step, types = job.inner, job.message_types
    message = [
        (bytes(canonical_buffer(x, type_.dtype)), type_, root)
        for x, type_, root in zip(
            job.message(state), types.values(), step.tensor_roots(state)[-len(types) :], strict=True
        )
    ]

    def keep() -> None:
        with TemporaryDirectory(dir=folder) as empty:
            Shelf(Path(empty)).put_state(step, state, ())

    def receive() -> None:
        with TemporaryDirectory(dir=folder) as empty:
            shelf = Shelf(Path(empty))
            require_message(job, [tensor_of(data, type_, root, "") for data, type_, root in message], "")
            for data, _, root in message:
                shelf.put(root, data)

    return _seconds(keep), _seconds(receive)


def _seconds(action: Callable[[], object]) -> float:
    """The median seconds of `TIMED` calls, after one warm-up call."""
    took = []
    for _ in range(1 + TIMED):
        began = time.perf_counter()
        action()
        took.append(time.perf_counter() - began)
    return median(took[1:])


# output


def _words(
    file: Path,
    choices: Choices,
    times: Times,
    steps: int,
    alone: float,
    found: Sequence[Schedule],
    best: Schedule,
) -> Iterator[str]:
    yield (
        f"{steps:,} steps of {times.step:.3g} s on this machine; the fastest machine alone ends after {_time(alone)}"
    )
    if best.share > choices.share:
        yield (
            f"in no schedule communication takes at most {100 * choices.share:.3g} % of the time; it may with faster "
            f"links, larger batches{'' if choices.everything else ', or --any, with which lanes may train worse'}"
        )
    yield (
        f"{'recommended' if best.share <= choices.share else 'what ends first'}: {best.width} lanes, "
        f"{best.inner_steps} steps a round, density {best.density}: {best.rounds:,} rounds, "
        f"{best.lane_steps:,} steps of each lane"
    )
    if best.seconds > alone:
        yield "note: one machine alone ends earlier"
    rest = [one for one in found if one is not best]
    yield from _table([best, *rest[: SHOWN - 1]])
    if len(rest) >= SHOWN:
        yield f"and {len(rest) - SHOWN + 1} more, which --json has"
    if not choices.everything:
        yield (
            f"only schedules of the kinds with which several lanes trained better than one in the study: at most "
            f"{MOST_INNER[8]} steps a round at 1/8 or denser, {MOST_INNER[64]} below, and each parameter sent "
            f"{LEAST_TURNS} times (docs/lanes.md); --any has all"
        )
    yield (
        f"note: each lane makes {best.lane_steps:,} of {steps:,} steps. Whether {best.width} lanes reach the loss of "
        "one machine that makes all of them depends on the model (docs/lanes.md)"
    )
    yield (
        f"next: `assay split {file} --lanes {best.width} --density {best.density} --inner-steps {best.inner_steps} "
        f"--steps {best.lane_steps} --output FOLDER`"
    )


def _table(found: Sequence[Schedule]) -> Iterator[str]:
    rows = [COLUMNS, *map(_cells, found)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
    for row in rows:
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))


def _cells(one: Schedule) -> tuple[str, ...]:
    return (
        str(one.width),
        str(one.inner_steps),
        str(one.density),
        f"{one.round:.3g}",
        f"{one.share:.1%}",
        _time(one.seconds),
        f"{one.lane_hours:.3g}",
        f"{cost(one) / TOKEN:.3g}",
        f"{one.received / 1e6:,.3g} MB",
    )


def _time(seconds: float) -> str:
    return duration(seconds) if seconds >= 60 else f"{seconds:.3g} s"


def _report(one: Schedule, times: Times) -> dict[str, Any]:
    return {
        "lanes": one.width,
        "inner_steps": one.inner_steps,
        "density": str(one.density),
        "rounds": one.rounds,
        "lane_steps": one.lane_steps,
        "round_seconds": one.round,
        "computing_seconds": one.computing,
        "beside_seconds": times.beside[one.width, one.block],
        "share": one.share,
        "seconds": one.seconds,
        "lane_hours": one.lane_hours,
        "cost": cost(one),
        "message_bytes": times.message_bytes[one.block],
        "received_bytes": one.received,
    }
