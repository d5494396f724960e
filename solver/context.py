"""What all modules of a running solver share: the chain client, the settings, the disk, the catalog, the strategy."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.beacon.relays import Relays
from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.chain.errors import Reverted, RpcRefused
from protocol.chain.receipts import Receipt
from protocol.execution.speeds import Speeds
from protocol.execution.turns import InTurns, Turns
from protocol.node.home import Home
from protocol.node.logs import get
from protocol.tasks import owed
from protocol.tasks.admission import Clocks, Rates, longest_step, seconds_beside
from protocol.tasks.bundles import Fetches, Limits
from protocol.tasks.keeping import checkpoint_bytes
from protocol.tasks.task import Terms
from solver.catalog import Catalog
from solver.database import LIVE, Database, Stage
from solver.machine import ASSUMED, Machine
from solver.metrics import Metrics
from solver.places import Places
from solver.sends import Sends
from solver.settings import SolverSettings
from solver.strategy import Strategy
from solver.task_folders import TaskFolders

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from protocol.execution.replay import Executor, Work
    from protocol.tasks.bundles.bundle import Held

DISK_SHARE = 0.8
"""Share of the free disk that tasks may take. The rest is for the journal, the logs, and other data."""


@dataclass(frozen=True)
class Context:
    """The objects that all modules of one solver use. `folders` has the data of won tasks, and `candidates`
    is the folder of the bundles of tasks that may be won. All computing of steps waits for its turn (`turns`)
    on the task's device (`places`). `relays` provide the beacon signatures that draws need.
    """

    client: Client
    relays: Relays
    settings: SolverSettings
    strategy: Strategy
    home: Home
    database: Database
    folders: TaskFolders
    catalog: Catalog
    metrics: Metrics
    candidates: Path
    turns: Turns = field(default_factory=Turns)
    sends: Sends = field(default_factory=Sends)
    speeds: Speeds = field(default_factory=Speeds)
    machine: Machine = ASSUMED
    places: Places = field(default_factory=Places)
    fetches: Fetches = field(default_factory=Fetches)
    """The running fetches of candidates."""
    traces: dict[bytes, owed.Traces] = field(default_factory=dict)
    """For each program whose bundle has been read, by program id: what one game of the program takes in
    addition to replays.
    """
    held: dict[bytes, Held] = field(default_factory=dict)
    """The memory that each bundle takes, by the bundle's hash. Only bundles that have been read are included."""
    elsewhere: Callable[[], Mapping[str, Terms]] = dict
    """Returns the terms, by name, of tasks that were or may be taken under other contracts. These tasks use
    this machine too.
    """
    log: FilteringBoundLogger = field(default_factory=lambda: get("solver"))
    _terms: dict[int, Terms] = field(default_factory=dict)

    def terms(self, task: int) -> Terms:
        """The terms of a task. They are kept in memory once the task's post is final; until then they are
        read each time, because a re-organisation may give the number to another task. Raises ChainError.
        """
        if task in self._terms:
            return self._terms[task]
        market = self.client.market
        terms = market.terms(task)
        try:
            final = self.client.connection.is_final_at(market.task(task).posted_at(terms.bidding_period))
        except RpcRefused:  # this node does not know the tag of final blocks
            final = False
        if final:
            self._terms[task] = terms
        return terms

    def engaged(self, *stages: Stage) -> dict[int, Terms]:
        """The terms of this solver's tasks that are in one of `stages`. Without `stages`: of all tasks that
        the solver must train or defend, or may have to. That includes every task that it has bid on, because
        even a beaten bid may win. A task whose post a re-organisation has removed is left out. Raises
        ChainError.
        """
        found = {}
        for task in self.database.live(*(stages or LIVE)):
            try:
                found[task] = self.terms(task)
            except Reverted as error:
                if error.name != "UnknownTask":
                    raise
        return found

    @property
    def clocks(self) -> Clocks:
        """The seconds that a move takes in addition to computing: those until its transaction is included,
        and those between two looks at the chain.
        """
        return Clocks(self.client.inclusion, self.settings.pace)

    @property
    def rates(self) -> Rates:
        """This machine's rates."""
        return self.machine.rates(self.speeds.measured())

    @property
    def hopes(self) -> Rates:
        """The rates to assume for a task whose bundle is not here yet."""
        return self.machine.hopes(self.speeds.measured())

    def expect(self, work: Work, bundle_hash: bytes, held: Held) -> None:
        """Record what a bundle takes in memory. Also estimate, for the bundle's program: what it takes in
        memory, what a game of it takes and, until its steps are measured, the speed of its steps. The speed
        is not estimated if this machine was not measured by kind of operation.
        """
        from protocol.program.cost import cost

        self.held[bundle_hash] = held
        program = work.program.program
        self.places.expect(program.id, cost(program).peak_bytes)
        self.traces[program.id] = owed.Traces.of(cost(program))
        speed = self.machine.expected(work)
        if speed is not None:
            self.speeds.expect(program.id, speed)

    def in_turns(self, executor: Executor, task: int, terms: Terms) -> InTurns:
        """A task's executor whose steps wait for turns on the task's device. Steps on the CPU are timed."""
        note = self.speeds.of(terms.program_id, terms.step_operations)
        return InTurns(executor, self.turns, note, device=self.places.of(task))

    def seconds_each(self) -> float:
        """Seconds of its clock that the solver reserves for each answer in a game, in addition to computing.
        Raises ChainError.
        """
        taken = (*self.engaged().values(), *self.elsewhere().values())
        games = [owed.games("", terms, self.traces.get(terms.program_id)) for terms in taken]
        return seconds_beside(self.clocks, longest_step(games, self.rates))

    def limits(self, seconds: float) -> Limits:
        """Limits on what is accepted from submitters. A submitter may take at most `seconds` to send its data."""
        local = self.client.connection.chain_id == DEVELOPMENT_CHAIN
        return Limits(allowed=self.settings.bundles, this_machine=local, seconds=seconds)

    @property
    def bundles(self) -> Path:
        """The folder of the bundles of won tasks, by hash."""
        return self.folders.bundles

    def free_disk(self, but: int | None = None) -> int:
        """Bytes of disk that one more task may take. They are `DISK_SHARE` of the free disk, or the unused
        rest of the settings' limit if that rest is smaller. In both cases, the checkpoints that tasks other
        than `but` may still write are deducted. Running fetches are not deducted. Raises ChainError.
        """
        free = int(shutil.disk_usage(self.home.root).free * DISK_SHARE)
        limit = self.settings.disk_limit
        free = free if limit is None else min(free, limit - self.folders.used())
        return max(0, free - self.unwritten(but))

    def unwritten(self, but: int | None = None) -> int:
        """Bytes of checkpoints that are still to be written for the tasks that this solver trains or has the
        best bid on. The task `but` is not counted. Raises ChainError.
        """
        due = 0
        for task, terms in self.engaged(Stage.BID, Stage.TRAINING).items():
            if task != but:
                due += max(0, terms.segments + 1 - self.database.kept(task)) * checkpoint_bytes(terms)
        return due

    def begin(self, task: int, what: str, call: Callable[[], Receipt | None], **about: object) -> None:
        """Send a transaction of a task in the background (`sends`). A refusal by the contract is not a
        failure, and `call` may return None without sending: another party may have made the transaction
        unnecessary.
        """
        self.sends.begin(task, what, partial(self._send, what, call, task=task, **about))

    def _send(self, what: str, call: Callable[[], Receipt | None], **about: object) -> None:
        try:
            receipt = call()
            if receipt is not None:
                self.count(receipt.label.split(".")[-1], receipt, **about)
        except Reverted as error:
            self.log.info("refused by the contract", what=what, error=error.name, **about)

    def count(self, what: str, receipt: Receipt, **about: object) -> Receipt:
        """Count and log a mined transaction."""
        self.metrics.transactions.labels(what).inc()
        self.metrics.gas.labels(what).inc(receipt.gas_used)
        self.log.info("mined", what=what, gas=receipt.gas_used, block=receipt.block, **about)
        return receipt
