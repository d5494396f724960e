"""The running solver: one loop that defends first, then works on what it has won, looks for work, and trains.

Nothing here decides a move, a price or a number: that is `Strategy`, `bidding` and the program. The main thread sends
and trains; the HTTP service has threads of its own.
"""

from __future__ import annotations

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus
from protocol.commitments import BlobStore
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.http import require_public
from protocol.node.party.data import data_folder, open_database
from protocol.node.party.node import AWAY, Node
from protocol.node.stopping import Stop
from protocol.tasks.bundles import BundleError
from solver import gpu, settlement
from solver.assignment import Assignment
from solver.auction import Auction
from solver.catalog import KEPT_RESULTS, Catalog
from solver.context import Context
from solver.database import Database, Stage
from solver.defence import Defence
from solver.errors import SolverError, StakeSlashed
from solver.metrics import Metrics
from solver.progress import Progress
from solver.serving import Serving
from solver.settings import SolverSettings
from solver.strategy import HONEST, Strategy


class SolverNode(Node):
    """A solver on one chain from one account. `run` returns the process's exit code."""

    WAITS_FOR = (*AWAY, Reverted)
    """A node a block behind the last one does not have what that one showed: a block, or a task (it reverts)."""

    def __init__(
        self,
        client: Client,
        settings: SolverSettings,
        home: Home,
        strategy: Strategy = HONEST,
        *,
        stop: Stop | None = None,
        progress: Progress | None = None,
    ) -> None:
        folder = data_folder(home, "solver", client)
        metrics = Metrics()
        self.context = Context(
            client,
            settings,
            strategy,
            home,
            open_database(Database, home, client),
            BlobStore(folder / "blobs"),
            Catalog(home.bundles, metrics),
            metrics,
            home.folder("solver", folder.name, "candidates"),
        )
        super().__init__(settings, self.context.log, stop)
        self._progress = progress or Progress(bar=False)
        self._auction = Auction(self.context)
        self._defence = Defence(self.context)
        self._assignments: dict[int, Assignment] = {}  # tasks that this solver can still do something for
        self._refused: dict[int, SolverError] = {}
        self._finished: dict[int, TaskStatus] = {}

    def run(self, once: bool = False) -> ExitCode:
        """Until stopped; with `once` until one task that was taken is over.

        Raises StakeSlashed when a stake of this solver was slashed, and SolverError, ChainError.
        """
        context, settings = self.context, self.context.settings
        app = context.strategy.app(context.catalog)
        serving = Serving(app, settings.host, settings.port, settings.proxies)
        with serving, self._progress:
            try:
                self._prepare(settings.url or serving.url)
                return self._loop(once)
            finally:
                context.catalog.ready = False
                for assignment in self._assignments.values():
                    assignment.close()
                context.database.close()

    def _prepare(self, url: str) -> None:
        """Take up what an earlier process left, bring the stake into the vault, say where the service is."""
        context = self.context
        if context.client.connection.chain_id != DEVELOPMENT_CHAIN:
            require_public(url)
        context.log.info(gpu.describe(gpu.read_gpus()))
        rows = context.database.tasks()
        over = [row.task for row in rows if row.stage is Stage.OVER][-KEPT_RESULTS:]
        for row in rows:
            if row.stage in (Stage.TRAINING, Stage.SUBMITTED):
                self._take_up(row.task)
            elif row.task in over:
                self._serve_result(row.task)
        self._fund()
        if context.client.market.endpoint_of(context.client.address) != url:
            context.count("announce", context.client.market.announce(url), url=url)
        context.catalog.ready = True
        context.log.info("ready", account=context.client.address, url=url)

    def _at_stake(self) -> dict[str, object]:
        return {"tasks_at_stake": sorted(self._assignments)}

    def _tick(self) -> bool:
        """One round; True if there is more to do at once. Once asked to stop, only what cannot wait is done."""
        context = self.context
        worked = self._defence.tick()
        for task in list(self._assignments):
            worked = self._work_on(task) or worked
        if not self._stop.asked:
            training = any(self._stage(task) is Stage.TRAINING for task in self._assignments)
            self._auction.tick(take=not training and self._is_sound())
        rows = context.database.tasks()
        context.metrics.count_tasks([row.stage for row in rows])
        for row in rows:
            if row.stage is Stage.TRAINING and row.task not in {*self._assignments, *self._refused}:
                self._take_up(row.task)
                worked = True
        return worked

    def _work_on(self, task: int) -> bool:
        """The next piece of work on a task that was won; True if there was one."""
        assignment = self._assignments[task]
        view = self.context.client.market.task(task)
        if view.status.is_over:
            self._over(task, view.status)
            return False
        if self._stop.asked and not assignment.unsubmitted:
            return False
        worked = assignment.tick(view)
        if assignment.refused is not None:
            self._refused[task] = assignment.refused
            self._assignments.pop(task).close(wait=False)
        return worked

    def _is_sound(self) -> bool:
        """Whether no run of this process was refused or found false: otherwise it takes no more work."""
        return not self._refused and TaskStatus.SLASHED not in self._finished.values()

    def _stage(self, task: int) -> Stage | None:
        row = self.context.database.task(task)
        return None if row is None else row.stage

    def _take_up(self, task: int) -> None:
        try:
            self._assignments[task] = Assignment(self.context, task, self._progress)
        except BundleError as error:
            raise SolverError(f"task {task}: its bundle is lost: {error}") from error

    def _serve_result(self, task: int) -> None:
        """Serve the result of a task that was over when this process began."""
        try:
            Assignment(self.context, task, self._progress).retire()
        except BundleError as error:
            self.context.log.warning("result no longer served", task=task, error=str(error))

    def _over(self, task: int, status: TaskStatus) -> None:
        """A task ended: note how, and take what was earned out of the vault."""
        context = self.context
        context.database.put(task, Stage.OVER, status.name.lower())
        self._finished[task] = status
        context.log.info("task over", task=task, outcome=status.name.lower())
        self._assignments.pop(task).retire()
        if status is TaskStatus.SETTLED:
            settlement.withdraw(context, max(0, context.settings.stake_units - self._locked()))

    def _outcome(self, once: bool) -> ExitCode | None:
        """Whether to end now: with `once` after the first task, or after a slash or refusal; never with work left."""
        if self._assignments or not (self._finished or self._refused):
            return None
        if TaskStatus.SLASHED in self._finished.values():
            slashed = [task for task, status in self._finished.items() if status is TaskStatus.SLASHED]
            raise StakeSlashed(
                f"task {slashed[0]}",
                expected="to be paid",
                got="its stake slashed",
                remedy="check this machine with `make test` before it bids again",
            )
        if self._refused:
            raise next(iter(self._refused.values()))
        return ExitCode.FINE if once else None

    def _fund(self) -> None:
        """Bring the stake into the vault, as far as it is not there or locked already.

        Where tokens are missing there is no more work to take, but what was taken is still to be trained and defended.
        """
        client, locked = self.context.client, self._locked()
        due = self.context.settings.stake_units - locked
        missing = due - client.vault.free(client.address)
        held = client.token.balance_of(client.address)
        if missing > held:
            error = SolverError(
                "stake",
                expected=f"{missing / TOKEN:g} tokens on account {client.address}",
                got=f"{held / TOKEN:g}",
                remedy="send tokens to it or lower --stake",
            )
            if not (locked or self._assignments):
                raise error
            self.context.log.warning(
                "less stake than asked for", reason=str(error), tasks=sorted(self._assignments)
            )
            return
        for receipt in client.fund(due):
            self.context.count(receipt.label.split(".")[-1], receipt)

    def _locked(self) -> int:
        """Token units of this solver's stake in its unfinished tasks."""
        client = self.context.client
        locks = [client.market.task(task).stake for task in self._assignments]
        bids = [row.task for row in self.context.database.tasks() if row.stage in (Stage.BID, Stage.OUTBID)]
        views = [client.market.task(task) for task in bids]
        locks += [view.stake for view in views if view.bidder == client.address and not view.status.is_over]
        return sum(client.vault.lock_of(lock).remaining for lock in locks)
