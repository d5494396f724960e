"""Measures rounds of lanes over shaped links, and compares them with the planner's predictions.

The lanes are `solver lane` processes on this machine, each behind its own links. Link rates change from phase
to phase, and a phase with unlimited links precedes every case. A case's prediction uses the computing times
that were measured in that preceding phase, because the lanes share this machine's cores. So only the exchange
is really predicted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.environment import ROOT, where
from benchmarks.lanes.processes import Processes, four_times_slower, members_file
from benchmarks.lanes.shaping import Link as Shaped
from benchmarks.lanes.shaping import Network
from benchmarks.lanes.shaping import Path as Route
from benchmarks.lanes.subjects import subject
from protocol.exchange.announcements import Announcement
from protocol.exchange.jobs import LaneJob, load_job, write_job
from protocol.lanes.schedule import MEGABIT, Link, round_seconds

MEASURED = ROOT / "docs" / "lanes-shaped.json"
SIZE, WIDTH, INNER = "0.1M", 3, 5
DENSITY = Fraction(1)
ROUNDS = 6
"""Rounds per phase. The first round does not count: while its messages pass, rates may change or processes
may start.
"""
BEYOND = 10_000.0
"""The rate of an unlimited link in the predictions, in Mbit/s."""


@dataclass(frozen=True)
class Case:
    """The lanes' link rates `down` and `up` in Mbit/s, None for unlimited. Lane `slow`, if any, computes at a
    quarter of the others' speed.
    """

    name: str
    down: Sequence[float] | None = None
    up: Sequence[float] | None = None
    slow: int | None = None
    delay: float = 0.0


def _same(name: str, mbit: float, **more: Any) -> Case:
    return Case(name, (mbit,) * WIDTH, (mbit,) * WIDTH, **more)


UNSHAPED = Case("")
CASES = (
    Case("not shaped"),
    _same("20 Mbit/s", 20),
    _same("20 Mbit/s, 20 ms each way", 20, delay=0.02),
    _same("5 Mbit/s", 5),
    _same("1 Mbit/s", 1),
    Case("20 Mbit/s down, 2 up", (20,) * WIDTH, (2,) * WIDTH),
    Case("5 Mbit/s, one lane 1", (5, 5, 1), (5, 5, 1)),
    Case("not shaped, one lane at a quarter of the speed", slow=2),
    _same("5 Mbit/s, one lane at a quarter of the speed", 5, slow=2),
)


@dataclass(frozen=True)
class Measured:
    """Mean seconds of the counted rounds, and each lane's computing time in seconds, by round and lane."""

    round: float
    computed: list[list[float]]


@dataclass(frozen=True)
class Row:
    """Predicted and measured seconds per round of one case."""

    name: str
    predicted: float
    """Seconds per round, predicted from the computing times in the unshaped phase that precedes the case."""
    predicted_of_run: float
    """Seconds per round, predicted from the computing times in the case's own phase."""
    measured: float
    exchange: float
    """The part of `predicted` that remains after all lanes have computed, in seconds."""


def measure() -> dict[str, Any]:
    """Measure all cases; return the contents of `MEASURED`."""
    groups = [(slow, [case for case in CASES if case.slow == slow]) for slow in (None, WIDTH - 1)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        job = _job(folder / "job", 2 * ROUNDS * max(len(cases) for _, cases in groups))
        rows = [row for slow, cases in groups for row in _rows(folder, job, slow, cases)]
        return {
            "model": f"GPT of {SIZE} parameters",
            "width": WIDTH,
            "inner_steps": INNER,
            "rounds": ROUNDS - 1,
            "density": str(DENSITY),
            "message_bytes": job.lanes.message_bytes,
            "announcement_bytes": Announcement.bytes_of(job.lanes) - job.lanes.message_bytes,
            "rows": [asdict(row) for row in rows],
            **where(),
        }


def write() -> None:
    """Measure and write the results."""
    MEASURED.write_text(json.dumps(measure(), indent=1) + "\n")


def _job(folder: Path, rounds: int) -> LaneJob:
    write_job(
        subject(SIZE).captured(1, rounds * INNER),
        folder,
        name="shaped",
        width=WIDTH,
        density=DENSITY,
        inner_steps=INNER,
        rounds=rounds,
        seed=1,
    )
    return load_job(folder)


def _rows(folder: Path, job: LaneJob, slow: int | None, cases: Sequence[Case]) -> Iterator[Row]:
    """Run each case after a phase with unlimited links. `slow` is the lane at a quarter of the speed, if any."""
    here = folder / f"slow-{slow}"
    here.mkdir()
    (here / "job").symlink_to(folder / "job")
    down, up = [[Shaped() for _ in range(WIDTH)] for _ in range(2)]
    with Network() as network, Processes(here, job) as lanes:
        routes: list[Route] = []
        for lane in range(WIDTH):
            of_lane = [Route((up[number], down[lane])) for number in range(WIDTH)]
            seen = [[network.address(url, route)] for url, route in zip(lanes.urls, of_lane, strict=True)]
            routes += of_lane
            lanes.start(
                lane,
                members_file(here / f"members{lane}.json", seen),
                "--log-json",
                before=[four_times_slower] if lane == slow else [],
                # All lanes share one address here; in a real network each has its own.
                environment={"ASSAY_PROXIES": "127.0.0.1"},
            )
        for number, case in enumerate(cases):
            found = []
            for phase, one in ((2 * number, UNSHAPED), (2 * number + 1, case)):
                for ways, rates in ((down, one.down), (up, one.up)):
                    for which, link in enumerate(ways):
                        link.mbit = None if rates is None else rates[which]
                for route in routes:
                    route.delay = one.delay
                found.append(_phase(lanes, phase * ROUNDS))
            row = _row(case, job, *found)
            print(_words(row), flush=True)
            yield row


def _phase(lanes: Processes, first: int) -> Measured:
    """Wait until the phase that begins with round `first` is over; return its measurements."""
    last = first + ROUNDS - 1
    lanes.until_announced(last, range(WIDTH))
    logs = [_trained(lanes.log(lane)) for lane in range(WIDTH)]
    begin, end = (max(log[number]["at"] for log in logs) for number in (first, last))
    computed = [[log[number]["computed"] for log in logs] for number in range(first + 1, last + 1)]
    return Measured((end - begin) / (ROUNDS - 1), computed)


def _trained(log: Path) -> dict[int, dict[str, float]]:
    """For each round, when it was announced (`at`, in seconds) and how long the lane computed (`computed`, in
    seconds).
    """
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return {
        line["round"]: {
            "at": datetime.fromisoformat(line["timestamp"]).timestamp(),
            "computed": line["computed"],
        }
        for line in lines
        if line["event"] == "trained"
    }


def _row(case: Case, job: LaneJob, unshaped: Measured, found: Measured) -> Row:
    ways = ((BEYOND,) * WIDTH if rates is None else rates for rates in (case.down, case.up))
    links = [Link(down * MEGABIT, up * MEGABIT) for down, up in zip(*ways, strict=True)]

    def predicted(computed: list[list[float]]) -> float:
        of = Announcement.bytes_of(job.lanes)
        return mean(round_seconds(one, links, of, trip=2 * case.delay) for one in computed)

    computing = mean(map(max, unshaped.computed))
    before = predicted(unshaped.computed)
    return Row(case.name, before, predicted(found.computed), found.round, before - computing)


def _words(row: Row) -> str:
    return (
        f"{row.name}: predicted {row.predicted:.2f} s ({row.predicted_of_run:.2f} s), of it exchange "
        f"{row.exchange:.2f} s; measured {row.measured:.2f} s: {row.predicted / row.measured:.2f} "
        f"({row.predicted_of_run / row.measured:.2f})"
    )
