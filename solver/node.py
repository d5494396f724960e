"""The running solver: a loop that looks after won tasks and looks for work, while the defence and the
trainings run in other threads.

It serves all deployments of its chain in which the account has data. Each has a node, with its own database
and contracts. The node of the newest deployment takes new work; the others finish theirs. All share one
process, account, journal and HTTP server, and take turns at computing.

This module decides no move, price or number: `Strategy`, `protocol.tasks.bidding` and the program do. The
main thread never computes. The defence, every training and the HTTP service have their own threads, which
compute in turns. A failure in one task does not affect others (`failures`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.blocks import Block
from protocol.chain.client import Client
from protocol.chain.deployment import Deployment
from protocol.chain.errors import ChainError, Reverted
from protocol.chain.views import TaskStatus, TaskView
from protocol.errors import ExitCode
from protocol.execution.speeds import Speeds
from protocol.execution.turns import Turns
from protocol.node.addresses import Address
from protocol.node.home import Home
from protocol.node.http import require_public
from protocol.node.logs import get
from protocol.node.party.balances import Balance, Bound
from protocol.node.party.data import data_folder, open_database
from protocol.node.party.node import Node
from protocol.node.party.relays import relays_by
from protocol.node.serving import Serving, addresses, by_market
from protocol.node.stopping import Stop
from protocol.tasks.task import Terms
from solver import gpu, settlement, stakes
from solver.assignments import Assignments
from solver.auction import Auction
from solver.background import in_thread
from solver.bookkeeping import Bookkeeper
from solver.catalog import KEPT_RESULTS, Catalog
from solver.context import Context
from solver.control import Control
from solver.database import LIVE, TAKEN, Database, Stage
from solver.defence import Defence
from solver.errors import SolverError, StakeSlashed
from solver.failures import Failures
from solver.machine import Machine, machine_of
from solver.metrics import Metrics
from solver.operation import Operation
from solver.orders import WHY, Mode
from solver.outcome import outcome
from solver.places import Places, has_own_memory, memory_of
from solver.progress import Progress
from solver.public_place import place_of
from solver.publishing import Publisher
from solver.reporting import Reports
from solver.retention import Retention
from solver.settings import SolverSettings
from solver.strategy import HONEST, Strategy
from solver.task_folders import TaskFolders


class SolverNode(Node):
    """A solver on one chain from one account. `run` returns the process's exit code."""

    def __init__(
        self,
        client: Client,
        settings: SolverSettings,
        home: Home,
        strategy: Strategy = HONEST,
        *,
        stop: Stop | None = None,
        progress: Progress | None = None,
        earlier: Sequence[Deployment] = (),
        leading: SolverNode | None = None,
        machine: Machine | None = None,
        places: Places | None = None,
    ) -> None:
        """Also makes the nodes of the `earlier` deployments, which only finish their work; this node is their
        `leading` node. Without `machine`, this machine counts as unmeasured. By default, `places` has the
        devices of the settings.
        """
        self._folder = folder = data_folder(Database, home, client)
        market = client.market.address
        metrics, turns, speeds = (
            (Metrics(market), Turns(), Speeds())
            if leading is None
            else (leading.context.metrics.of(market), leading.context.turns, leading.context.speeds)
        )
        database = open_database(Database, home, client)
        folders = TaskFolders(folder, database)
        known = machine or machine_of(settings, None, local=client.connection.chain_id == DEVELOPMENT_CHAIN)
        log = get("solver") if leading is None and not earlier else get("solver").bind(market=market)
        self.context: Context = Context(
            client,
            relays_by(settings, client.deployment.beacon, client.beacon.is_signed_round),
            settings,
            strategy,
            home,
            database,
            folders,
            Catalog(folders.bundles, metrics, turns, None if leading is None else leading.context.catalog),
            metrics,
            home.folder("solver", folder.name, "candidates"),
            turns,
            speeds=speeds,
            machine=known,
            places=places or Places(settings.training_devices, memory_of, has_own_memory),
            traces={} if leading is None else leading.context.traces,
            held={} if leading is None else leading.context.held,
            elsewhere=self._elsewhere,
            log=log,
        )
        place = None if settings.publish is None else place_of(settings.publish, market)
        self._place, self._publisher = place, Publisher(self.context, place)
        self._retention = Retention(self.context, self._publisher)
        stop, self._progress = stop or Stop(), progress or Progress(bar=False)
        self._leading = leading
        self._operation: Operation = (
            Operation(home, stop, self._progress, self._why_not) if leading is None else leading._operation
        )
        self._earlier: list[SolverNode] = []
        self._earlier = [
            SolverNode(
                client.for_deployment(one),
                settings,
                home,
                strategy,
                stop=stop,
                progress=self._progress,
                leading=self,
                machine=known,
                places=self.context.places,
            )
            for one in earlier
        ]
        super().__init__(settings, log, stop, client, self._earlier)
        self._reports = Reports(self.context)
        self._urls: tuple[str, ...] = ()
        """Addresses of the service; the first one is announced on the chain when the node is ready."""
        self._once = False
        """Whether the process ends with the first finished task. If so, no second task is taken."""
        self._short = False
        """Whether tokens are missing because tasks under earlier contracts still lock stakes."""
        self._accounts = self._withdraw = False
        """`_accounts`: whether the ledger must be brought up to date; set when a task is over. `_withdraw`:
        whether tokens must be withdrawn; set when a task was settled or is void. Both are set again if a
        withdrawal fails, unless the contract refused it.
        """
        self._failures = Failures("task", metrics, self.context.log)
        others = [at for one in self._earlier for at in one.context.client.contracts]
        self._bookkeeper = Bookkeeper(client, self.context.database, others if leading is None else None)
        self._auction = Auction(self.context, self._failures, ends=leading is not None)
        self._defence = Defence(self.context)
        self._assignments = Assignments(self.context, self._progress)
        self._refused: dict[int, SolverError] = {}
        self._finished: dict[int, TaskStatus] = {}

    def run(self, once: bool = False) -> ExitCode:
        """Run until stopped or drained; with `once`, until one task that was taken is over.

        Raises SolverError, ChainError, HomeError, NotPublic, the errors in `WRONG_BITS`, those of `Serving`
        and `Monitor`, and StakeSlashed if a stake of this solver was slashed.
        """
        self._once = once
        settings, nodes = self.context.settings, (*self._earlier, self)
        apps = [
            (node.context.client.market.address, node.context.strategy.app(node.context.catalog))
            for node in nodes
        ]
        with (
            self._monitored("solver", self._folder, self.context.metrics.registry),
            Serving(by_market(apps), settings.host, settings.port, settings.proxies) as serving,
            self._progress,
        ):
            self._operation.parts = [(node.context, node._bookkeeper) for node in reversed(nodes)]
            self._operation.url = settings.url or serving.url
            for node, (market, _) in zip(nodes, apps, strict=True):
                # Published files are below a folder named after the market.
                first = node is nodes[0] and settings.publish is None
                node._urls = addresses(settings.url or serving.url, market, first)
            try:
                with Control(self.context.home, self._operation.answer):
                    for node in nodes:
                        node._defence.start()
                    code = self._loop(once)
                if code is ExitCode.FINE:
                    self._end_well()
                return code
            except StakeSlashed:
                self._book_all()
                raise
            finally:
                self.context.turns.close()
                for node in nodes:
                    node._close()

    def _try_writing(self) -> None:
        self.context.database.try_writing()

    def _end_well(self) -> None:
        """After all work is over: complete the ledger, and end an order to drain."""
        self._book_all()
        if self._operation.mode is Mode.DRAINING and self._is_drained():
            self._operation.drained()

    def _book_all(self) -> None:
        for node in (*self._earlier, self):
            node._book()

    def _book(self) -> None:
        """Bring the ledger up to date, if the chain answers."""
        try:
            self._bookkeeper.book()
        except (ChainError, sqlite3.Error) as error:
            self.context.log.warning("ledger is behind", error=str(error))

    def _close(self) -> None:
        """Stop all threads and release all resources."""
        context = self.context
        context.catalog.ready = False
        self._defence.close()
        context.sends.close()
        for assignment in self._assignments:
            assignment.close()
        context.database.close()

    def _prepare(self) -> None:
        """Prepare for work. Deposit the stake if this is the newest node; otherwise withdraw the tokens that
        it does not need. Then announce the service's address, and serve results that an earlier process left.
        """
        context, (url, *_) = self.context, self._urls
        if context.client.connection.chain_id != DEVELOPMENT_CHAIN:
            require_public(url)
        if self._place is not None:
            self._place.require_readable(Address.parse(url))
        context.folders.tidy()
        if self._leading is None:
            self._fund()
        else:
            settlement.withdraw(context, self._kept())
        if context.client.market.endpoint_of(context.client.address) not in self._urls:
            context.count("announce", context.client.market.announce(url), url=url)
        if self._leading is None:
            context.log.info(gpu.describe(gpu.read_gpus()))
        for row in context.database.last(Stage.OVER, KEPT_RESULTS):
            if context.folders.has(row.task):
                self._serve_result(row.task)
        context.catalog.ready = True
        if self._leading is None and (why := self._why_not()):
            context.log.warning("no bids are made", reason=why)
        context.log.info("ready", account=context.client.address, url=url, takes_work=self._leading is None)

    def _at_stake(self) -> dict[str, object]:
        return {"tasks_at_stake": sorted(self._taken())}

    def _may_stop(self) -> bool:
        """Whether no game waits for a move of this solver, no training runs, and nothing is being sent."""
        idle = all(one.idle for one in self._assignments)
        return idle and not (self._defence.owes or self.context.sends.any)

    def _is_idle(self) -> bool:
        context = self.context
        begun = self._accounts or context.sends.any or self._publisher.pending or self._retention.busy
        return not (context.database.live(*LIVE) or begun or self._auction.considers)

    def _tick(self) -> None:
        """One round of the loop, at one block. After a request to stop, no bids are made, and each training
        ends with its segment.
        """
        context = self.context
        if self._defence.failure is not None:
            raise self._defence.failure
        self._auction.paused = WHY.get(self._operation.mode, "")
        for task, what in context.sends.ended():
            with self._failures.kept(task):
                context.sends.finish(task, what)
        with context.client.connection.view() as block:
            for task in self._taken():
                if not self._failures.rests(task):
                    with self._failures.kept(task, partial(self._assignments.failed_for, task)):
                        self._work_on(task)
            if not self._stop.asked:
                self._auction.tick(take=self._may_take())
            self._begin_accounts()
        self._publisher.tick()
        self._retention.tick(block.time)
        if self._short and not any(node._taken() or node.context.sends.any for node in self._earlier):
            self._short = False
            context.sends.begin(0, "fund", self._fund)
        context.metrics.count_tasks(context.database.counts())
        due = self._reports.due(self._taken(), self._defence.clocks.values())
        self.known.deadlines.put(context.client.market.address, "tasks", due)

    def _may_take(self) -> bool:
        """Whether this node may bid on new tasks. Only the newest node may, and only while no task is
        trained or bid on under earlier contracts. It may not if the operator's order or `_why_not` forbids
        it, or if the process ends with the first task and already has a task or a standing bid.
        """
        busy = any(node.context.database.live(Stage.TRAINING, Stage.BID) for node in self._earlier)
        busy = busy or (self._once and bool(self.context.database.live(Stage.BID, *TAKEN)))
        return self._leading is None and not (busy or self._auction.paused or self._why_not())

    def _why_not(self) -> str:
        """The reason why this node makes no bids at all, other than the operator's order; "" if there is none."""
        return self.context.machine.why_not if self._is_sound() else "a run was refused, or a stake slashed"

    def _elsewhere(self) -> dict[str, Terms]:
        """The terms of this solver's tasks, and of the tasks that it may still win, under the other contracts
        of this process. The keys name the task and its market.
        """
        leading = self._leading or self
        return {
            f"task {task} of market {node.context.client.market.address}": terms
            for node in (leading, *leading._earlier)
            if node is not self
            for task, terms in node.context.engaged().items()
        }

    def _taken(self) -> list[int]:
        """Won tasks for which something can still be done."""
        return [task for task in self.context.database.live(*TAKEN) if task not in self._refused]

    def _work_on(self, task: int) -> None:
        """Start what is due now for a won task."""
        view = self.context.client.market.task_if_posted(task)
        mine = view is not None and view.bidder == self.context.client.address
        if view is None or not mine or view.status is TaskStatus.BIDDING:
            self._give_back(task, mine)
            return
        self._reports.see(view, self.alerts)
        if view.status.is_over:
            if self.context.client.is_over_for_good(task):
                self._over(view)
            return
        assignment = self._assignments.get(task)
        if assignment is None:
            return
        if self._stop.asked and not assignment.unsubmitted:
            assignment.pause()
            return
        assignment.tick(view)
        self._publisher.see(assignment.run_store)
        if assignment.refused is not None:
            self._refused[task] = assignment.refused
            self._assignments.pop(task)
            assignment.close(wait=False)

    def _give_back(self, task: int, mine: bool) -> None:
        """A re-organisation took a won task from this solver: stop the training. If this solver's bid is now
        the best (`mine`), the solver goes on bidding for the task; otherwise the auction watches the task.
        """
        self.context.log.warning("a re-organisation took a won task back", task=task, best_bid=mine)
        stage = Stage.BID if mine else Stage.OUTBID
        self.context.database.put(task, stage, "a re-organisation took it back")
        self._assignments.give_back(task)

    def _is_sound(self) -> bool:
        """Whether no run of this process was refused or found false. After such a run, the process takes no
        more work.
        """
        nodes = (*self._earlier, self)
        return not any(node._refused or TaskStatus.SLASHED in node._finished.values() for node in nodes)

    def _serve_result(self, task: int) -> None:
        """Serve the result of a finished task that was not loaded."""
        with Failures("result", self.context.metrics, self.context.log).kept(task):
            assignment = self._assignments.load(task)
            assignment.retire()
            self._publisher.see(assignment.run_store)

    def _over(self, view: TaskView) -> None:
        """A task ended: record the outcome and the loss, stop its training, and go on serving its result. The
        ledger is then brought up to date. If the task was settled or is void, free tokens are also withdrawn
        from the vault (`_begin_accounts`).
        """
        context, task, status = self.context, view.task, view.status
        lost = settlement.lost(context, view, context.client.market.terms(task))
        assignment = self._assignments.pop(task)
        if assignment is not None:
            assignment.retire()  # first: the data of a task whose row says OVER may be deleted at once
        context.database.put(task, Stage.OVER, status.name.lower())
        self._finished[task] = status
        self._reports.ended(view, lost, self.alerts)
        context.places.forget(task)
        if assignment is None and context.folders.has(task):
            in_thread(partial(self._serve_result, task))
        self._retention.soon()
        self._withdraw = self._withdraw or status in (TaskStatus.SETTLED, TaskStatus.VOID)
        self._accounts = True

    def _begin_accounts(self) -> None:
        """Start bringing the accounts up to date after a task, unless this is already running or pauses after
        a failure.
        """
        if not self._accounts or self.context.sends.busy(0, "account") or self._failures.rests(0):
            return
        with self._failures.kept(0):
            kept = self._kept() if self._withdraw else None
            self._accounts = self._withdraw = False
            self.context.sends.begin(0, "account", partial(self._bring_accounts, kept))

    def _bring_accounts(self, kept: int | None) -> None:
        """Withdraw the free tokens above `kept` units from the vault (nothing if `kept` is None), then bring
        the ledger up to date. A failed withdrawal is tried again later, unless the contract refused it.
        """
        try:
            if kept is not None:
                settlement.withdraw(self.context, kept)
        except ChainError as error:
            if not isinstance(error, Reverted):
                self._accounts = self._withdraw = True
            raise
        finally:
            self._book()

    def _kept(self) -> int:
        """Token units to keep free in the vault for the stakes of tasks begun under these contracts
        (`Auction.owed`). Under the newest contracts, at least the settings' stake less the locked tokens is
        kept, for the stakes of new tasks.
        """
        owed = self._auction.owed()
        if self._leading is not None:
            return owed
        return max(owed, self.context.settings.stake_units - stakes.locked(self.context))

    def _outcome(self, once: bool) -> ExitCode | None:
        """The exit code if the node ends now, otherwise None. The node ends after the first task (with
        `once`), after a slash or a refused run, or when drained, but never while work is left. Raises the
        errors of `outcome`.
        """
        nodes = (*self._earlier, self)
        if any(
            node._taken() or node._accounts or node.context.sends.any or node._publisher.pending
            for node in nodes
        ):
            return None
        ended = [(task, status) for node in nodes for task, status in node._finished.items()]
        refused = [error for node in nodes for error in node._refused.values()]
        drained = self._operation.mode is Mode.DRAINING and self._is_drained()
        return outcome(ended, refused, drained, once)

    def _is_drained(self) -> bool:
        """Whether this solver has no task in any deployment, and no bid that may still win one."""
        return not any(node.context.database.live(*LIVE) for node in (*self._earlier, self))

    def _fund(self) -> None:
        """Deposit the missing part of the stake. Tokens that are already in the vault, or locked, count
        towards the stake.

        If the account has too few tokens, nothing is deposited. If this solver has taken tasks or locked
        stakes, it then goes on with the tokens in the vault; otherwise the error is raised.
        """
        error = stakes.bring(self.context)
        if error is None:
            return
        if not (stakes.locked(self.context) or any(node._taken() for node in (self, *self._earlier))):
            raise error
        self.context.log.warning("less stake than asked for", reason=str(error), tasks=self._taken())
        self._short = any(node._taken() for node in self._earlier)

    def _bound(self) -> Mapping[str, Bound]:
        return {self.context.client.address: Bound(stakes.locks(self.context))}

    def _lacks(self, balances: Mapping[str, Balance], block: Block) -> str:
        return settlement.lacking(
            balances[self.context.client.address], self.context.settings.stake_units, block
        )
