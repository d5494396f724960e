"""`verifier watch --only-watch`: follows tasks without an account, logs their state, and raises alerts.

It sends nothing, replays nothing and serves only its monitoring, so it needs neither key nor tokens.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from protocol.chain.client import Client
from protocol.chain.parameters import TOKEN
from protocol.chain.views import NOBODY, TaskStatus, TaskView
from protocol.errors import ExitCode
from protocol.node import logs
from protocol.node.home import Home
from protocol.node.party.data import data_folder
from protocol.node.party.followed import follow, training_due
from protocol.node.party.node import Node
from protocol.node.stopping import Stop
from protocol.tasks.task import Terms
from verifier.database import Database
from verifier.settings import VerifierSettings


class OnlyWatch(Node):
    """Follows the tasks named in the settings, or all tasks. `client` has no account. `run` returns the
    exit code.
    """

    def __init__(
        self, client: Client, settings: VerifierSettings, home: Home, stop: Stop | None = None
    ) -> None:
        self._log = logs.get("verifier")
        super().__init__(settings, self._log, stop, client)
        self._chain = client
        self._market = client.market.address
        self._folder = data_folder(Database, home, client)
        self._registry = CollectorRegistry()
        self._count = Gauge(
            "assay_verifier_open_tasks", "Tasks that are not over", ["market"], registry=self._registry
        ).labels(self._market)
        self._chosen = settings.tasks
        self._newest = 0
        self._open: set[int] = set()
        self._terms: dict[int, Terms] = {}
        self._said: dict[int, tuple[TaskStatus, int, int]] = {}
        self._finished: dict[int, TaskStatus] = {}

    def run(self, once: bool = False) -> ExitCode:
        """Run until stopped. With `once`, end when at least one task is over, no followed task is still open,
        and all tasks named in the settings are over. Returns FRAUD if a solver was found false. Raises
        ChainError, PortTaken, PortRefused, NoSuchHost, NotStarted.
        """
        with self._monitored("verifier", self._folder, self._registry):
            return self._loop(once)

    def _prepare(self) -> None:
        self._log.info("ready", only_watch=True, market=self._market)

    def _tick(self) -> None:
        """Look at all followed tasks, as of one block."""
        market = self._chain.market
        with self._chain.connection.view() as block:
            self._find()
            followed = sorted(self._open)
            market.ask_ahead("taskOf", *([task] for task in followed))
            views = [market.task(task) for task in followed]
            for view in views:
                self._see(view, block.time)
            known = [(view, self._terms[view.task]) for view in views if view.task in self._terms]
            due = [due for view, terms in known for due in training_due(self._market, view, terms)]
            self.known.deadlines.put(self._market, "tasks", due)
            self._let_go([view.task for view in views if view.status.is_over])
        self._count.set(len(self._open))

    def _outcome(self, once: bool) -> ExitCode | None:
        if not once or self._open or not self._finished or not set(self._chosen) <= self._finished.keys():
            return None
        slashed = TaskStatus.SLASHED in self._finished.values()
        return ExitCode.FRAUD if slashed else ExitCode.FINE

    def _at_stake(self) -> dict[str, object]:
        return {"open_tasks": len(self._open)}

    def _is_idle(self) -> bool:
        return True  # one look per block is enough

    def _find(self) -> None:
        """Follow newly posted tasks. Tasks that were already over are left out, unless they are named or
        an earlier process followed them.
        """
        market = self._chain.market
        newest = market.tasks()
        if newest < self._newest:  # a re-organisation removed the last tasks
            for task in [task for task in self._open if task > newest]:
                self._forget(task)
        posted = [
            task for task in range(self._newest + 1, newest + 1) if not self._chosen or task in self._chosen
        ]
        for task, status in zip(posted, market.statuses(posted), strict=True):
            known = self.alerts is not None and self.alerts.last(self._market, task) is not None
            if not status.is_over or known or task in self._chosen:
                self._open.add(task)
        self._newest = newest

    def _see(self, view: TaskView, now: int) -> None:
        task = view.task
        if view.status is TaskStatus.BIDDING:  # a re-organisation may give the number to another task
            self._terms.pop(task, None)
        terms = self._terms.get(task) or self._chain.market.terms(task)
        if view.status is not TaskStatus.BIDDING:
            self._terms[task] = terms
        follow(self.alerts, self._settings, self._market, view, terms, now)
        stands = view.status, view.size, view.open_games
        if self._said.get(task) == stands:
            return
        self._said[task] = stands
        self._log.info(
            "task",
            task=task,
            status=view.status.name.lower(),
            checkpoints=max(0, view.size - 1),
            of=terms.segments,
            open_games=view.open_games,
            solver=None if view.solver == NOBODY else view.solver,
            price_tokens=None if view.bidder == NOBODY else view.price / TOKEN,
        )

    def _forget(self, task: int) -> None:
        self._open.discard(task)
        self._terms.pop(task, None)
        self._said.pop(task, None)

    def _let_go(self, over: list[int]) -> None:
        """Stop following tasks that are over for good."""
        if not over:
            return
        final = self._chain.market.statuses(over, self._chain.connection.final_block())
        for task, status in zip(over, final, strict=True):
            if status.is_over:
                self._finished[task] = status
                self._forget(task)
                if self.alerts is not None:
                    self.alerts.forget(self._market, task)
