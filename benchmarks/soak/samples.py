"""A soak's measurements, in a file with one line for each finished task and each idle stretch.

Each line is written immediately. A session is one run of the stage. Each session has new processes, so memory
is compared only within a session.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.soak.stage import Stage
from benchmarks.soak.usage import database_bytes, folder_bytes, usage_of

QUIET: Final = 12
"""Number of blocks without a transaction that must precede an idle stretch. Re-organisations of a development
chain are less deep than this.
"""
PATIENCE: Final = 300.0


@dataclass(frozen=True)
class Party:
    """The resources of one process after a task. Sizes are in bytes; `seconds` is the process's processor
    time since its start.

    `database` is the size of the party's database, `journal` is the size of its accounts' journals, and
    `disk` is the size of the whole home folder including stored results.
    """

    resident: int
    anonymous: int
    files: int
    threads: int
    seconds: float
    database: int
    journal: int
    disk: int


@dataclass(frozen=True)
class Sample:
    """Measurements made when a task has ended. `seconds` is the time since the session's start. `finished` is
    the number of tasks that have ended so far, including this one.

    `chain` is the resident memory of the development chain's node, in bytes.
    """

    session: int
    task: int
    status: str
    finished: int
    seconds: float
    block: int
    chain: int
    parties: Mapping[str, Party]


@dataclass(frozen=True)
class Idle:
    """The number of requests of each party, by method, in `blocks` idle blocks on a chain with `past` tasks."""

    session: int
    past: int
    blocks: int
    asked: Mapping[str, Mapping[str, int]]


@dataclass
class Samples:
    """The samples and idle stretches of a file, in order."""

    path: Path
    samples: list[Sample] = field(default_factory=list)
    idle: list[Idle] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Samples:
        """Read the samples of earlier sessions; empty if there is no file."""
        found = cls(path)
        for line in path.read_text().splitlines() if path.is_file() else ():
            found._add(json.loads(line))
        return found

    @property
    def session(self) -> int:
        """The number of the newest session; 0 before the first."""
        sessions = [one.session for one in self.samples] + [one.session for one in self.idle]
        return max(sessions, default=0)

    @property
    def finished(self) -> list[int]:
        """The numbers of the finished tasks."""
        return [sample.task for sample in self.samples]

    def write(self, one: Sample | Idle) -> None:
        """Append one entry to the file."""
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(one)) + "\n")
        self._add(asdict(one))

    def _add(self, fields: dict[str, Any]) -> None:
        if "task" in fields:
            parties = {name: Party(**party) for name, party in fields.pop("parties").items()}
            self.samples.append(Sample(**fields, parties=parties))
        else:
            self.idle.append(Idle(**fields))


def sample(stage: Stage, session: int, seconds: float, task: int, status: str, finished: int) -> Sample:
    """Measure all parties and the chain's node after a task."""
    return Sample(
        session,
        task,
        status,
        finished,
        round(seconds, 1),
        stage.chain.connection.block().number,
        usage_of(stage.chain.pid).resident,
        {name: _party(stage, name) for name in stage.plan.parties},
    )


def _party(stage: Stage, name: str) -> Party:
    home = stage.home(name)
    usage = asdict(usage_of(stage.children.pid(name)))
    database = sum(database_bytes(home / party) for party in ("solver", "verifier"))
    return Party(
        **usage, database=database, journal=database_bytes(home / "journals"), disk=folder_bytes(home)
    )


def idle(stage: Stage, session: int, past: int) -> Idle:
    """Wait until no party sends transactions, then count requests over some blocks. Raises TimeoutError if
    transactions do not stop within `PATIENCE` seconds.
    """
    connection, blocks = stage.chain.connection, stage.plan.idle_blocks
    deadline = time.monotonic() + PATIENCE
    while _sent(stage, QUIET):
        if time.monotonic() > deadline:
            raise TimeoutError(f"expected {QUIET} blocks without a transaction within {PATIENCE:.0f} s")
        time.sleep(1)
    first, before = connection.block().number, stage.proxies.counts()
    while connection.block().number < first + blocks:
        time.sleep(0.1)
    passed, after = connection.block().number - first, stage.proxies.counts()
    asked = {name: dict(after[name] - before.get(name, Counter())) for name in stage.plan.parties}
    return Idle(session, past, passed, asked)


def _sent(stage: Stage, blocks: int) -> bool:
    """Whether any of the newest `blocks` blocks has a transaction."""
    newest = stage.chain.connection.block().number
    return any(
        stage.chain.connection.raw_block(number)["transactions"]
        for number in range(max(0, newest - blocks + 1), newest + 1)
    )
