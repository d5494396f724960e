"""A solver's status for its operator: from a running node, or from the files of a stopped node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from protocol.chain.parameters import TOKEN
from protocol.node.database import DatabaseError
from protocol.node.home import Home
from solver.database import LIVE, Database
from solver.ledger import Sums, total, written

COIN: Final = 10**18

Steps = Callable[[int], tuple[int, int, float | None] | None]


@dataclass(frozen=True)
class TaskRow:
    """A task that is not over. While it is trained, `of` is the total number of its steps, `steps` says how
    many of them are done, and `seconds_needed` how long the remaining ones take.
    """

    task: int
    stage: str
    note: str
    checkpoints: int
    steps: int | None = None
    of: int | None = None
    seconds_needed: float | None = None

    def line(self) -> str:
        """The task in words."""
        trained = "" if self.steps is None else f", step {self.steps} of {self.of}"
        left = "" if self.seconds_needed is None else f", {self.seconds_needed:.0f} s left"
        return f"task {self.task}: {self.stage}{trained}{left}{f' ({self.note})' if self.note else ''}"


@dataclass(frozen=True)
class Account:
    """The status of one account in one deployment. Amounts are in token units and wei, as of `booked_block`;
    `booked_time` is the block's time in UTC.
    """

    chain: str
    market: str
    account: str
    tasks: tuple[TaskRow, ...]
    counts: Mapping[str, int]
    sums: Sums = field(default_factory=Sums)
    booked_block: int | None = None
    booked_time: str | None = None

    def lines(self) -> Iterator[str]:
        """The account in words, with amounts in tokens and coin."""
        counts = ", ".join(f"{count} {stage}" for stage, count in self.counts.items()) or "none yet"
        yield f"{self.account} on the market {self.market}: tasks {counts}"
        yield from (f"  {task.line()}" for task in self.tasks)
        if self.booked_block is None:
            yield "  income: nothing is booked yet"
            return
        sums = self.sums
        tokens = {"earned": sums.earned, "lost": sums.lost, "burned": sums.burned, "locked": sums.locked}
        amounts = ", ".join(f"{name} {units / TOKEN:.6g}" for name, units in tokens.items())
        yield f"  tokens {amounts}; gas {sums.fee / COIN:.6g} coin; as of {self.booked_time}"


def account_of(database: Database, steps: Steps = lambda _task: None) -> Account:
    """The status according to a database; `steps` returns the progress of a task's training, if known."""
    identity, booked = database.identity, database.booked()
    tasks = []
    for number in database.live(*LIVE):
        row = database.task(number)
        if row is not None:
            done, of, left = steps(number) or (None, None, None)
            kept = database.kept(number)
            tasks.append(TaskRow(number, row.stage.value, row.note, kept, done, of, left))
    return Account(
        identity.chain,
        identity.market,
        identity.account,
        tuple(tasks),
        {stage.value: count for stage, count in sorted(database.counts().items())},
        total([*database.flows(), *database.spent()]),
        None if booked is None else booked.block,
        None if booked is None else written(booked.time),
    )


def files(home: Home) -> list[Path]:
    """The paths of a home folder's database files, some of which may not exist. Raises HomeError."""
    return [folder / "solver.sqlite" for folder in sorted(home.folder("solver").iterdir()) if folder.is_dir()]


def left_in(home: Home) -> tuple[list[Account], list[str]]:
    """The status that the nodes of a home folder left in their databases, and the errors of databases that
    could not be read. Raises HomeError.
    """
    found, refused = [], []
    for file in files(home):
        try:
            if Database.market_of(file) is None:
                continue
            database = Database(file, None)
        except DatabaseError as error:
            refused.append(str(error))
            continue
        try:
            found.append(account_of(database))
        finally:
            database.close()
    return found, refused


def as_data(account: Account) -> dict[str, Any]:
    """The account as data for JSON; amounts are text because they may exceed 2^53."""
    data = asdict(account)
    return {**data, "sums": {name: str(value) for name, value in data["sums"].items()}}


def from_data(data: Mapping[str, Any]) -> Account:
    """The inverse of `as_data`."""
    tasks = tuple(TaskRow(**task) for task in data["tasks"])
    sums = Sums(**{name: int(value) for name, value in data["sums"].items()})
    return Account(**{**data, "tasks": tasks, "sums": sums})
