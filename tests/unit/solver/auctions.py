"""A simulated auction: its chain is a few fields, and each bundle is one file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event
from time import sleep
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.errors import Reverted
from protocol.chain.parameters import DEVNET, TOKEN
from protocol.chain.views import NOBODY, TaskStatus, TaskView
from protocol.node.home import Home
from protocol.node.logs import get
from protocol.node.party.eligible import Eligible
from protocol.tasks.admission import Clocks, Rates
from protocol.tasks.bundles import Fetches
from protocol.tasks.bundles.bundle import Held
from protocol.tasks.bundles.write import MANIFEST
from protocol.tasks.owed import Traces
from protocol.tasks.task import Terms
from solver import auction, fetching
from solver.auction import Auction
from solver.context import Context
from solver.database import Database, Stage
from solver.failures import Failures
from solver.metrics import Metrics
from solver.places import Places
from solver.settings import SolverSettings
from tests.chain.trees import terms
from tests.unit.solver import tiny

ME, RIVAL = "0x" + "01" * 20, "0x" + "02" * 20
REORG_DEPTH = 64


class Market:
    """A market whose tasks share one set of terms, and in which every bid becomes the best one."""

    def __init__(self) -> None:
        self.views: dict[int, TaskView] = {}
        self.offer = replace(
            terms(), budget=100 * TOKEN, bidding_period=10, training_period=10**6, clock=10**6
        )
        self.bids: list[int] = []
        self.bundles: dict[int, bytes] = {}
        self.removed: set[int] = set()
        """Tasks whose posts a re-organisation has removed."""

    def post(self, task: int) -> None:
        """Post a task that takes bids from second 90 until second 100."""
        fields: dict[str, Any] = {
            "bids_until": 100,
            "train_until": 0,
            "challenge_until": 0,
            "owes_draw": False,
        }
        self.views[task] = TaskView(
            task,
            RIVAL,
            1,
            2,
            NOBODY,
            TaskStatus.BIDDING,
            0,
            0,
            price=0,
            overtime=0,
            root=b"",
            result=b"",
            **fields,
        )

    def change(self, task: int, **fields: Any) -> None:
        """Change fields of a task's view."""
        self.views[task] = replace(self.views[task], **fields)

    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.views)

    def task(self, task: int) -> TaskView:
        """A task's view. Raises Reverted if it was removed."""
        if task in self.removed:
            raise Reverted("TaskMarket.taskOf", "UnknownTask", {"task": task})
        return self.views[task]

    def task_if_posted(self, task: int) -> TaskView | None:
        """A task's view; None if it was removed."""
        return None if task in self.removed else self.task(task)

    def statuses(self, tasks: list[int]) -> list[TaskStatus]:
        """The statuses of tasks."""
        return [self.views[task].status for task in tasks]

    def terms(self, task: int) -> Terms:
        """The shared terms, with the task's own bundle if it has one. Raises Reverted like `task`."""
        self.task(task)
        return replace(self.offer, bundle_hash=self.bundles.get(task, self.offer.bundle_hash))

    def bid(self, task: int, price: int) -> None:
        """Record a bid of this solver, which becomes the best one."""
        self.bids.append(price)
        self.change(task, bidder=ME, price=price)


class Stand:
    """An auction, with stubs for most of what it uses."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.market, self.block, self.now = Market(), 1_000, 0
        self.final = 10**9
        self.free = 10**24
        self.disk, self.fetches = 10**15, Fetches()
        self.elsewhere: dict[str, Terms] = {}
        self.database = Database(folder / "solver.sqlite", tiny.IDENTITY)
        self.candidates_folder = folder / "candidates"
        self.candidates_folder.mkdir()
        self.failure: BaseException | None = None
        self.tries: list[tuple[bytes, float]] = []
        self.go = Event()
        self.go.set()
        self.places, self.memory = Places(("a", "b"), lambda _device: self.memory), 1 << 40
        client = SimpleNamespace(
            market=self.market,
            address=ME,
            now=lambda: self.now,
            vault=SimpleNamespace(free=lambda _who: self.free),
            deployment=SimpleNamespace(parameters=DEVNET),
            connection=SimpleNamespace(
                block=lambda: SimpleNamespace(number=self.block),
                chain_id=1,
                gas_price=10**9,
                chain=SimpleNamespace(reorg_depth=REORG_DEPTH),
                is_final_at=lambda time: time <= self.final,
            ),
        )
        log = SimpleNamespace(info=lambda *_a, **_b: None, warning=lambda *_a, **_b: None)
        self.context = cast(
            Context,
            SimpleNamespace(
                client=client,
                settings=SolverSettings(),
                home=Home(folder / "home"),
                database=self.database,
                candidates=self.candidates_folder,
                bundles=folder / "bundles",
                free_disk=self.free_disk,
                fetches=self.fetches,
                begin=lambda _task, _what, call, **_about: call(),
                sends=SimpleNamespace(busy=lambda _task, _what: False),
                log=log,
                places=self.places,
                clocks=Clocks(2.0, 0.5),
                rates=Rates(2e9),
                hopes=Rates(2e9),
                held={self.market.offer.bundle_hash: Held()},
                traces={self.market.offer.program_id: Traces()},
                terms=self.market.terms,
                engaged=self.engaged,
                unwritten=self.unwritten,
                elsewhere=lambda: self.elsewhere,
            ),
        )
        monkeypatch.setattr(fetching, "fetch_candidate", self.fetch)
        self.eligible = Eligible((RIVAL,) * 3, slots=4, registered=8)
        monkeypatch.setattr(auction, "eligible", lambda _client, _terms: self.eligible)
        self.failures = Failures("task", Metrics(), get("test"))
        self.auction = Auction(self.context, self.failures)

    def free_disk(self, but: int | None = None) -> int:
        """The bytes of `disk` that remain once the unwritten checkpoints of all tasks except `but` are
        subtracted; at least 0.
        """
        return max(0, self.disk - self.unwritten(but))

    def unwritten(self, but: int | None = None) -> int:
        """Call the real `Context.unwritten` on the stub context."""
        return Context.unwritten(self.context, but)

    def engaged(self, *stages: Stage) -> dict[int, Terms]:
        """Call the real `Context.engaged` on the stub context."""
        return Context.engaged(self.context, *stages)

    def fetch(self, _context: Context, asked: Terms, seconds: float) -> None:
        """Record the try. If the bundle's manifest is already in the candidate's folder, do nothing else.
        Otherwise write a file, wait for `go`, and raise `failure` if one is set.
        """
        self.tries.append((asked.bundle_hash, seconds))
        if (self.candidates_folder / asked.bundle_hash.hex() / MANIFEST).is_file():
            return
        folder = self.candidates_folder / asked.bundle_hash.hex()
        folder.mkdir(exist_ok=True)
        (folder / "half").write_bytes(b"half")
        self.go.wait(60)
        (folder / "half").touch()
        if self.failure is not None:
            raise self.failure
        self.context.held.setdefault(asked.bundle_hash, Held())

    def tick(self, times: int = 1) -> None:
        """Run rounds of the auction. Each waits for its fetches, unless `go` holds them back."""
        for _ in range(times):
            self.auction.tick(take=True)
            for future in self.auction._fetching.running:
                while self.go.is_set() and not future.done():
                    sleep(0.001)

    def rest(self, task: int) -> None:
        """Wait until a failed task may be tried again."""
        while self.failures.rests(task):
            sleep(0.001)

    def stage(self, task: int) -> tuple[Stage, str] | None:
        """The task's stage and note in the database; None if the task has no row."""
        row = self.database.task(task)
        return None if row is None else (row.stage, row.note)

    @property
    def candidates(self) -> list[str]:
        """Names of the candidates' folders."""
        return sorted(path.name for path in self.candidates_folder.iterdir())
