"""What all modules of a running verifier share: the chain client, the settings, the strategy, the tasks in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from protocol.beacon.relays import Relays
from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.errors import exit_code_of
from protocol.execution.speeds import Speeds
from protocol.execution.turns import InTurns, Turns
from protocol.node import logs
from protocol.node.addresses import Address, parsed
from protocol.node.disk import room
from protocol.node.home import Home
from protocol.node.party.data import data_folder, open_database
from protocol.node.party.relays import relays_by
from protocol.tasks.admission import Clocks, Rates, seconds_beside
from protocol.tasks.bundles import Limits
from protocol.tasks.task import Terms
from verifier.database import Database
from verifier.jury_events import JuryEvents
from verifier.look_events import LookEvents
from verifier.material import IN_MEMORY, Material, Materials
from verifier.metrics import Metrics
from verifier.results import Items, Results
from verifier.retention import Disk, tidy
from verifier.settings import VerifierSettings
from verifier.strategy import Strategy

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from protocol.execution.replay import Executor


Conviction = tuple[int, int]
"""Time of a conviction, in seconds since 1970, and the convicted segment."""


@dataclass(frozen=True)
class Context:
    """The objects that all modules of one verifier use. `client` makes the calls that anyone may make.
    `clients` has, by address, `client` itself and the clients of all other accounts that take seats and send
    challenges.
    """

    client: Client
    clients: Mapping[str, Client]
    settings: VerifierSettings
    strategy: Strategy
    database: Database
    materials: Materials
    results: Results
    items: Items
    looks: LookEvents
    juries: JuryEvents
    relays: Relays
    metrics: Metrics
    disk: Disk
    log: FilteringBoundLogger
    turns: Turns
    """Schedules computing: in all kinds of work, the earliest deadline goes first."""
    speeds: Speeds
    claimed: set[tuple[int, int, Conviction]] = field(default_factory=set)
    """Triples of a task, a seat's number and a conviction that is not final yet. The seat has nothing more to
    collect for this conviction. If another conviction replaces it, the seat's claims are examined again.
    """
    compared: set[tuple[int, int, bytes]] = field(default_factory=set)
    """Triples of a task, a game and a step tree's root. In these games, the solver's step tree was found to
    equal ours or could not be compared, and it was too late to drop the game. The trees are not compared
    again.
    """
    first_due: dict[int, tuple[str, int]] = field(default_factory=dict)
    """For each task, the call that is due (`keeper`), and the chain's time at which this was first seen, in
    seconds since 1970. Only for tasks in which our accounts have no part. The key 0 stands for the queue of
    draws.
    """
    _terms: dict[int, Terms] = field(default_factory=dict)
    _segments: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    @classmethod
    def at(
        cls,
        home: Home,
        client: Client,
        settings: VerifierSettings,
        strategy: Strategy,
        further: Sequence[Client] = (),
        leading: Context | None = None,
        alone: bool = True,
    ) -> Context:
        """The context of these accounts in this deployment, below the home folder. `leading` is the
        context of the newest deployment if this is an earlier one. `alone` says whether there is only one
        deployment. Raises DatabaseError, SettingsError.
        """
        market = client.market.address
        database = open_database(Database, home, client)
        folder = data_folder(Database, home, client)
        tidy(folder, database)
        juries = JuryEvents(client)
        local = client.connection.chain_id == DEVELOPMENT_CHAIN
        turns, speeds = (Turns(shared=True), Speeds()) if leading is None else (leading.turns, leading.speeds)

        metrics = Metrics(market) if leading is None else leading.metrics.of(market)

        def in_turns(executor: Executor, terms: Terms) -> InTurns:
            note = speeds.of(terms.program_id, terms.step_operations)
            return InTurns(executor, turns, note, metrics.steps.inc)

        materials = Materials(
            folder,
            folder / "bundles",
            database,
            strategy,
            Limits(allowed=settings.bundles, this_machine=local),
            max(IN_MEMORY, settings.replays),
            juries.sources,
            partial(room, folder, settings.spare_bytes // 10),
            lambda: home.bundle_folders,
            in_turns,
            None if leading is None else leading.materials.fetches,
        )
        materials.tidy()
        return cls(
            client,
            {one.address: one for one in (client, *further)},
            settings,
            strategy,
            database,
            materials,
            Results(folder / "results"),
            Items(folder / "items", folder / "bundles"),
            LookEvents(client),
            juries,
            relays_by(settings, client.deployment.beacon, client.beacon.is_signed_round),
            metrics,
            Disk(folder, settings.disk_limit),
            logs.get("verifier") if alone else logs.get("verifier").bind(market=market),
            turns,
            speeds,
        )

    def room(self) -> int:
        """Bytes of disk available for data kept for others. The bytes that must stay free according to the
        settings are not included. Raises OSError.
        """
        return self.disk.room(self.settings.spare_bytes)

    @property
    def rates(self) -> Rates:
        """This machine's rates."""
        return Rates(self.settings.speed, programs=self.speeds.measured())

    def clocks(self, client: Client, now: float = 0.0) -> Clocks:
        """The seconds from an account's transaction to its receipt, and the seconds between two looks at the
        chain; `now` is the chain's time. Raises ChainError.
        """
        return Clocks(client.inclusion, self.settings.pace, now)

    def work_by(self, until: float, waits: int = 1) -> float:
        """The time by which computing must be finished so that its result can be sent by `until`. The work
        waits for the machine `waits` times. Raises ChainError.
        """
        return until - seconds_beside(self.clocks(self.client), waits=waits)

    def terms(self, task: int, *, takes_bids: bool = False) -> Terms:
        """The terms of a task. They are kept in memory unless `takes_bids`, which says that the task still
        takes bids: its post is then recent, and a re-organisation may give the number to another task. Raises
        ChainError.
        """
        if task in self._terms and not takes_bids:
            return self._terms[task]
        terms = self.client.market.terms(task)
        if not takes_bids:
            self._terms[task] = terms
        return terms

    def segments(self, task: int, seat: int) -> list[int]:
        """The segments of a drawn task's seat, read once: they never change. Raises ChainError."""
        if (task, seat) not in self._segments:
            self._segments[task, seat] = self.client.audit.segments(task, seat)
        return self._segments[task, seat]

    def forget(self, task: int) -> None:
        """The task is over: drop its data in memory, its material, and the items that our jurors served."""
        self._terms.pop(task, None)
        self.first_due.pop(task, None)
        self.claimed.difference_update([claim for claim in list(self.claimed) if claim[0] == task])
        self.compared.difference_update([tree for tree in list(self.compared) if tree[0] == task])
        for key in [key for key in self._segments if key[0] == task]:
            del self._segments[key]
        self.materials.drop(task)
        self.looks.forget(task)
        self.juries.forget(task)
        self.items.drop(task)

    def endpoint(self, task: int) -> Address | None:
        """The address that the task's solver announced; None if there is no usable one. Raises ChainError."""
        market = self.client.market
        return parsed(market.endpoint_of(market.task(task).solver))

    def fetch(self, task: int, lost: float) -> None:
        """Fetch a task's bundle, after attempts that took `lost` seconds. Raises BundleError, DiskFull,
        ChainError.
        """
        self.materials.fetch(task, self.terms(task), self.endpoint(task), lost)

    def load(self, task: int) -> Material:
        """Load the material to replay a task whose bundle is here. Raises BundleError, ChainError."""
        return self.materials.load(task, self.terms(task), self.endpoint(task))

    def failed(self, task: int | None, kind: str, error: Exception) -> None:
        """Count and log failed work on a task. The log has the traceback if the error is a defect."""
        defect = error if exit_code_of(error) is None else None
        self.metrics.failures.labels(kind.split()[0]).inc()
        self.log.warning("failed", task=task, job=kind, error=str(error), exc_info=defect)
