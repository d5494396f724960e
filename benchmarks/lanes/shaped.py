"""Rounds of lanes over shaped links, beside what the planner's arithmetic says of them.

Every case is a job of `solver lane` processes on this machine, each behind links of its own. What a lane computes is
taken from the same case without links, for the lanes share the cores: so only the exchange is predicted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
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
from protocol.exchange.jobs import LaneJob, load_job, write_job
from protocol.lanes.schedule import MEGABIT, Link, round_seconds

MEASURED = ROOT / "docs" / "lanes-shaped.json"
SIZE, WIDTH, INNER, ROUNDS = "0.1M", 3, 5, 12
DENSITY = Fraction(1)
FIRST = 2
"""The first round that counts: before it processes start, and nothing is exchanged."""
BEYOND = 10_000.0
"""Mbit/s of a link that is not shaped, for the arithmetic."""


@dataclass(frozen=True)
class Case:
    """Mbit/s down and up of every lane, None where links are not shaped; `slow` is a lane at a quarter of the speed."""

    name: str
    down: Sequence[float] | None = None
    up: Sequence[float] | None = None
    slow: int | None = None
    delay: float = 0.0

    @property
    def unshaped(self) -> Case:
        """The same lanes without links."""
        return Case("", slow=self.slow)


def _same(name: str, mbit: float, **more: Any) -> Case:
    return Case(name, (mbit,) * WIDTH, (mbit,) * WIDTH, **more)


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
    """Of the rounds that count, the mean of their seconds, and for each what each lane computed in it."""

    round: float
    computed: list[list[float]]


@dataclass(frozen=True)
class Row:
    """A case beside the arithmetic: seconds of a round."""

    name: str
    predicted: float
    """From what lanes computed in the same case without links."""
    predicted_of_run: float
    """From what they computed in this very run."""
    measured: float
    exchange: float
    """Of `predicted`, what comes after computing."""


def measure() -> dict[str, Any]:
    """All cases, as `MEASURED` keeps them."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        job = _job(folder / "job")
        rows: list[Row] = []
        for number, case in enumerate(CASES):
            # Right before it, for other work on the machine comes and goes.
            unshaped = _measured(folder / f"{number}-unshaped", folder / "job", job, case.unshaped)
            rows.append(_row(case, job, unshaped, _measured(folder / str(number), folder / "job", job, case)))
            print(_words(rows[-1]), flush=True)
        return {
            "model": f"GPT of {SIZE} parameters",
            "width": WIDTH,
            "inner_steps": INNER,
            "rounds": ROUNDS - FIRST,
            "density": str(DENSITY),
            "message_bytes": job.lanes.message_bytes,
            "rows": [asdict(row) for row in rows],
            **where(),
        }


def write() -> None:
    """Measure, and keep what was found."""
    MEASURED.write_text(json.dumps(measure(), indent=1) + "\n")


def _job(folder: Path) -> LaneJob:
    steps = ROUNDS * INNER
    write_job(
        subject(SIZE).captured(1, steps),
        folder,
        name="shaped",
        width=WIDTH,
        density=DENSITY,
        inner_steps=INNER,
        rounds=ROUNDS,
        seed=1,
    )
    return load_job(folder)


def _measured(folder: Path, job_folder: Path, job: LaneJob, case: Case) -> Measured:
    folder.mkdir()
    (folder / "job").symlink_to(job_folder)
    with Network() as network, Processes(folder, job) as lanes:
        ways = [[None] * WIDTH if rates is None else [*rates] for rates in (case.down, case.up)]
        down, up = ([Shaped(rate) for rate in way] for way in ways)
        for lane in range(WIDTH):
            seen = [
                [network.address(url, Route((up[number], down[lane]), delay=case.delay))]
                for number, url in enumerate(lanes.urls)
            ]
            lanes.start(
                lane,
                members_file(folder / f"members{lane}.json", seen),
                "--log-json",
                before=[four_times_slower] if lane == case.slow else [],
                # All come from one address here, and strangers from as many as they are.
                environment={"ASSAY_PROXIES": "127.0.0.1"},
            )
        lanes.until_finished(range(WIDTH))
        logs = [_trained(lanes.log(lane)) for lane in range(WIDTH)]
    last = ROUNDS - 1
    return Measured(
        max((log[last]["at"] - log[FIRST - 1]["at"]) / (last - FIRST + 1) for log in logs),
        [[log[number]["computed"] for log in logs] for number in range(FIRST, ROUNDS)],
    )


def _trained(log: Path) -> list[dict[str, float]]:
    """Of each round, when it was announced (`at`, in seconds), and what it waited and computed."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [
        {
            "at": datetime.fromisoformat(line["timestamp"]).timestamp(),
            "waited": line["waited"],
            "computed": line["computed"],
        }
        for line in lines
        if line["event"] == "trained"
    ]


def _row(case: Case, job: LaneJob, unshaped: Measured, found: Measured) -> Row:
    ways = ((BEYOND,) * WIDTH if rates is None else rates for rates in (case.down, case.up))
    links = [Link(down * MEGABIT, up * MEGABIT) for down, up in zip(*ways, strict=True)]

    def predicted(computed: list[list[float]]) -> float:
        of = job.lanes.message_bytes
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
