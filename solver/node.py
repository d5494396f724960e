"""The running solver: one loop that defends first, then tends what is submitted, looks for work, and trains.

Nothing here decides a move, a price or a number: that is `Conduct`, `bidding` and the program. The main thread sends
and trains; the HTTP service has threads of its own.
"""

from __future__ import annotations

import time

from protocol.bundles import BundleError
from protocol.chain.client import Client
from protocol.chain.errors import NotMined, RpcUnavailable, UnstableChain
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.commitments import BlobStore
from protocol.runtime.database import Identity
from protocol.runtime.exits import ExitCode, StakeSlashed
from protocol.runtime.home import Home
from protocol.runtime.stopping import Stop
from solver import closing, gpu
from solver.auction import Auction
from solver.conduct import HONEST, Conduct
from solver.database import Database, Stage
from solver.defence import Defence
from solver.desk import Desk
from solver.engagement import Engagement
from solver.errors import SolverError
from solver.metrics import Metrics
from solver.progress import Progress
from solver.serving import Serving
from solver.settings import SolverSettings
from solver.shelf import Shelf

KEPT_RESULTS = 16
"""Finished tasks whose results are served again after a restart."""


class SolverNode:
    """A solver on one chain from one account. `run` returns the process's exit code."""

    def __init__(
        self,
        client: Client,
        settings: SolverSettings,
        home: Home,
        conduct: Conduct = HONEST,
        *,
        stop: Stop | None = None,
        progress: Progress | None = None,
    ) -> None:
        genesis, market = client.connection.genesis, client.market.address
        folder = home.folder("solver", f"{client.connection.chain_id}-{genesis[2:10]}-{client.address[2:10]}")
        metrics = Metrics()
        self.desk = Desk(
            client,
            settings,
            conduct,
            home,
            Database(folder / "solver.sqlite", Identity(genesis, market, client.address)),
            BlobStore(folder / "blobs"),
            Shelf(home.bundles, metrics),
            metrics,
        )
        self._stop = stop or Stop()
        self._progress = progress or Progress(bar=False)
        self._auction = Auction(self.desk)
        self._defence = Defence(self.desk)
        self._engagements: dict[int, Engagement] = {}
        self._finished: dict[int, TaskStatus] = {}

    def run(self, once: bool = False) -> ExitCode:
        """Until stopped; with `once` until one task that was taken is over.

        Raises StakeSlashed when a stake of this solver was slashed, and SolverError, ChainError.
        """
        desk, settings = self.desk, self.desk.settings
        serving = Serving(desk.conduct.app(desk.shelf), settings.host, settings.port)
        with serving, self._progress:
            self._prepare(settings.url or serving.url)
            try:
                return self._loop(once)
            finally:
                desk.shelf.ready = False
                for engagement in self._engagements.values():
                    engagement.close()
                desk.database.close()

    def _prepare(self, url: str) -> None:
        """Take up what an earlier process left, bring the stake into the vault, say where the service is."""
        desk = self.desk
        desk.log.info(gpu.describe(gpu.read_gpus()))
        rows = desk.database.tasks()
        over = [row.task for row in rows if row.stage is Stage.OVER][-KEPT_RESULTS:]
        for row in rows:
            if row.stage in (Stage.TRAINING, Stage.SUBMITTED) or row.task in over:
                self._engage(row.task, required=row.stage is not Stage.OVER)
        self._fund()
        if desk.client.market.endpoint_of(desk.client.address) != url:
            desk.count("announce", desk.client.market.announce(url), url=url)
        desk.shelf.ready = True
        desk.log.info("ready", account=desk.client.address, url=url)

    def _loop(self, once: bool) -> ExitCode:
        desk = self.desk
        seen = time.monotonic()
        while True:
            try:
                worked = self._tick()
                seen = time.monotonic()
            except (RpcUnavailable, NotMined, UnstableChain) as error:
                if time.monotonic() - seen > desk.settings.patience:
                    raise
                desk.log.warning("waiting for the chain", error=str(error))
                worked = False
            done = self._outcome(once)
            if done is not None:
                return done
            if self._stop.asked and not worked:
                desk.log.warning("stopped", tasks_at_stake=sorted(self._active()))
                return ExitCode.INTERRUPTED
            if not worked:
                self._stop.wait(desk.settings.poll)

    def _tick(self) -> bool:
        """One round; True if there is more to do at once. Once asked to stop, only what cannot wait is done."""
        desk, market = self.desk, self.desk.client.market
        worked = self._defence.tick()
        for task, engagement in self._active().items():
            view = market.task(task)
            if view.status.is_over:
                self._over(task, view.status)
            elif not self._stop.asked or engagement.unsubmitted:
                worked = engagement.tick(view) or worked
        if not self._stop.asked:
            training = any(self._stage(task) is Stage.TRAINING for task in self._active())
            self._auction.tick(take=not training and self._is_sound())
        rows = desk.database.tasks()
        desk.metrics.count_tasks([row.stage for row in rows])
        for row in rows:
            if row.stage is Stage.TRAINING and row.task not in self._engagements:
                self._engage(row.task, required=True)
                worked = True
        return worked

    def _active(self) -> dict[int, Engagement]:
        """Tasks that this solver can still do something for."""
        return {
            task: engagement
            for task, engagement in self._engagements.items()
            if self._stage(task) is not Stage.OVER and engagement.refused is None
        }

    def _is_sound(self) -> bool:
        """Whether no run of this process was refused or found false: otherwise it takes no more work."""
        refused = any(engagement.refused for engagement in self._engagements.values())
        return not refused and TaskStatus.SLASHED not in self._finished.values()

    def _stage(self, task: int) -> Stage | None:
        row = self.desk.database.task(task)
        return None if row is None else row.stage

    def _engage(self, task: int, required: bool) -> None:
        try:
            self._engagements[task] = Engagement(self.desk, task, self._progress)
        except BundleError as error:
            if required:
                raise SolverError(f"task {task}: its bundle is lost: {error}") from error
            self.desk.log.warning("result no longer served", task=task, error=str(error))

    def _over(self, task: int, status: TaskStatus) -> None:
        """A task ended: note how, and take what was earned out of the vault."""
        desk = self.desk
        desk.database.put(task, Stage.OVER, status.name.lower())
        self._finished[task] = status
        desk.log.info("task over", task=task, outcome=status.name.lower())
        if status is TaskStatus.SETTLED:
            closing.withdraw(desk, max(0, desk.settings.stake_units - self._locked()))

    def _outcome(self, once: bool) -> ExitCode | None:
        """Whether to end now: with `once` after the first task, or after a slash or refusal; never with work left."""
        refused = [e.refused for e in self._engagements.values() if e.refused is not None]
        if self._active() or not (self._finished or refused):
            return None
        if TaskStatus.SLASHED in self._finished.values():
            slashed = [task for task, status in self._finished.items() if status is TaskStatus.SLASHED]
            raise StakeSlashed(
                f"task {slashed[0]}: expected to be paid, got its stake slashed; check this machine with `make test` "
                "before it bids again"
            )
        if refused:
            raise refused[0]
        return ExitCode.FINE if once else None

    def _fund(self) -> None:
        """Bring the stake into the vault, as far as it is not there or locked already."""
        client, due = self.desk.client, self.desk.settings.stake_units - self._locked()
        missing = due - client.vault.free(client.address)
        held = client.token.balance_of(client.address)
        if missing > held:
            raise SolverError(
                f"stake: expected {missing / TOKEN:g} tokens on account {client.address}, got {held / TOKEN:g}; "
                "send tokens to it or lower --stake"
            )
        for receipt in client.fund(due):
            self.desk.count(receipt.label.split(".")[-1], receipt)

    def _locked(self) -> int:
        """Token units of this solver's stake in its unfinished tasks."""
        client = self.desk.client
        locks = [client.market.task(task).stake for task in self._active()]
        bids = [row.task for row in self.desk.database.tasks() if row.stage is Stage.BID]
        views = [client.market.task(task) for task in bids]
        locks += [view.stake for view in views if view.solver == client.address and not view.status.is_over]
        return sum(client.vault.lock_of(lock).remaining for lock in locks)
