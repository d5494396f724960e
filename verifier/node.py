"""The running verifier: one loop that plays its games first, then attests, advances tasks, and replays.

It serves all deployments of its chain in which the account has data. Each has a node, with its own database
and contracts. The verifier registers in the newest deployment. The nodes of earlier deployments lock no
further stake, and finish what was begun.

This module chooses no moves and computes no numbers. `Strategy` chooses the moves, `seats` says what a seat
owes, and the task's program determines the numbers. The loop never waits for a receipt, a replay or a
stranger. Only jobs (`Jobs`) wait, so that games and seats advance side by side. An error about a task counts
against that task: the error is logged with the task's number and counted, and the work is tried again after a
pause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

from fastapi import FastAPI

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.blocks import Block
from protocol.chain.client import Client
from protocol.chain.deployment import Deployment
from protocol.chain.parameters import TOKEN
from protocol.chain.views import TaskStatus, TaskView
from protocol.errors import ExitCode
from protocol.node.home import Home
from protocol.node.http import require_public
from protocol.node.party.balances import Balance, Bound
from protocol.node.party.data import data_folder
from protocol.node.party.exits import Observation
from protocol.node.party.funds import COIN, NotEnoughTokens, withdraw_credit
from protocol.node.party.node import Node
from protocol.node.serving import Serving, addresses, by_market
from protocol.node.stopping import Stop
from verifier import (
    auditing,
    compensation,
    item_claims,
    juror,
    keeper,
    looking,
    reporting,
    retention,
)
from verifier.challenge_commitment import NEEDLESS
from verifier.context import Context
from verifier.database import Database
from verifier.engagements import Engagements
from verifier.games import Games
from verifier.jobs import Job
from verifier.observer import Observer
from verifier.offered_salts import OfferedSalts
from verifier.offers import Offer, offers
from verifier.open_tasks import OpenTasks
from verifier.outcomes import Outcomes
from verifier.registration import ensure_registered, speed_of
from verifier.seats import releasable
from verifier.seeing import see_events
from verifier.server import application
from verifier.settings import VerifierSettings
from verifier.strategy import HONEST, Strategy
from verifier.workers import Workers

WON = ("solver_false", "solver_silent")
LOST = "challenger_silent"


class VerifierNode(Node):
    """A verifier on one chain. `client` and the `further` accounts take seats; `client` also sends the calls
    that any account may make. `run` returns the process's exit code.
    """

    def __init__(
        self,
        client: Client,
        settings: VerifierSettings,
        home: Home,
        strategy: Strategy = HONEST,
        *,
        further: Sequence[Client] = (),
        stop: Stop | None = None,
        earlier: Sequence[Deployment] = (),
        leading: VerifierNode | None = None,
    ) -> None:
        """Also makes the nodes of the `earlier` deployments, which only finish their work; this node is their
        `leading` node.
        """
        first, stop = None if leading is None else leading.context, stop or Stop()
        alone = leading is None and not earlier
        self.context: Context = Context.at(home, client, settings, strategy, further, first, alone)
        self._leading = leading
        others = None if leading is None else leading._engagements
        self._engagements: Engagements = Engagements(self.context, others)
        old = settings.model_copy(update={"tasks": ()})
        self._earlier = [
            VerifierNode(
                client.for_deployment(one),
                old,
                home,
                strategy,
                further=[account.for_deployment(one) for account in further],
                stop=stop,
                leading=self,
            )
            for one in earlier
        ]
        super().__init__(settings, self.context.log, stop, client, self._earlier)
        self._folder = data_folder(Database, home, client)
        self._workers = Workers(settings, self.context.turns.due)
        self._games = Games(self.context, self._workers.fetches, self._engagements)
        self._challenged = Outcomes(self.context)
        self._offered = OfferedSalts(
            client, self.context.clients, self.context.database, self.context.metrics
        )
        self._tasks = OpenTasks(client, self.context.database, settings.tasks, self.context.clients)
        self._observer = Observer(
            self.context, self._tasks, self._stop, self._look, self._offers, self._games.begin
        )
        self._withdraw = True
        self._urls: tuple[str, ...] = ()
        """Addresses where results are served and salts accepted; the first one is announced. Empty without
        a stake.
        """
        self._alive = 1
        """What `turn` returned at the last look: the number of tasks and challenges that are not over, and of
        jobs in progress. It is 1 until the first look has ended, and after a look that failed.
        """
        self._finished = 0
        self._reports = reporting.Reports(self.context)
        self._outcomes: set[str | None] = set()

    def run(self, once: bool = False) -> ExitCode:
        """Run until stopped. With `once`, end when nothing is open: no task, no challenge, and no job that
        `turn` counts. All chosen tasks must also be over; if none are chosen, at least one task must be.

        With `once`, returns FRAUD if one of our challenges was won or lost. Raises ChainError,
        NotEnoughTokens, SettingsError, NotPublic, PortTaken, PortRefused, NoSuchHost, NotStarted.
        """
        settings, nodes = self.context.settings, (*self._earlier, self)
        try:
            with ExitStack() as serving:
                registry = self.context.metrics.registry
                serving.enter_context(self._monitored("verifier", self._folder, registry))
                if settings.stake:
                    apps = [(node.context.client.market.address, node._app()) for node in nodes]
                    served = Serving(by_market(apps), settings.host, settings.port, settings.proxies)
                    held = serving.enter_context(served)
                    for node, (market, _) in zip(nodes, apps, strict=True):
                        node._urls = addresses(settings.url or held.url, market, node is nodes[0])
                return self._loop(once)
        finally:
            for node in nodes:
                node._close()

    def _app(self) -> FastAPI:
        return application(self.context.results, self.context.items, self._offered.offer)

    def _close(self) -> None:
        """Stop all jobs and close the database."""
        self._games.close()
        self._workers.close()
        self.context.database.close()

    def _prepare(self) -> None:
        context, url = self.context, next(iter(self._urls), "")
        if url and context.client.connection.chain_id != DEVELOPMENT_CHAIN:
            require_public(url)
        registers = self._leading is None
        speeds = {
            account: speed_of(client, context.settings, len(context.clients))
            for account, client in (context.clients.items() if registers else ())
        }
        with ThreadPoolExecutor(len(context.clients)) as pool:
            list(pool.map(partial(self._take_part, speeds), context.clients.values()))
        context.log.info("ready", accounts=list(context.clients), url=url, registers=registers)

    def _take_part(self, speeds: Mapping[str, float], client: Client) -> None:
        if self._leading is None:
            try:
                ensure_registered(client, self.context.settings, speeds, self.context.disk.is_over_limit)
            except NotEnoughTokens as error:
                if not self._earlier:
                    raise
                # The tokens are under earlier contracts, whose tasks must not wait for this registration.
                self.context.log.error("not registered", account=client.address, reason=str(error))
        if self._urls and client.market.endpoint_of(client.address) not in self._urls:
            client.market.announce(self._urls[0])

    def _tick(self) -> None:
        self._alive = 1  # until this look says otherwise
        for client in self.context.clients.values():
            client.tend()
        with self.context.client.connection.view() as block:
            self._alive = self.turn(block)

    def _outcome(self, once: bool) -> ExitCode | None:
        if self._stop.asked:  # in this case `_alive` does not count open tasks
            return None
        over = not any(node._alive for node in (*self._earlier, self))
        return self._verdict() if once and over and self._seen_enough() else None

    def _at_stake(self) -> dict[str, object]:
        return {"open_challenges": len(self.context.database.open_challenges())}

    def _may_stop(self) -> bool:
        return not self._games.moves_due

    def _is_idle(self) -> bool:
        return not (self._alive or self._workers.computing or self._withdraw)

    def turn(self, block: Block) -> int:
        """Look at everything as of this block, and offer the work that is due. Returns the number of
        challenges that are not over, of tasks that are not over, and of jobs in progress, added up. Tasks do
        not count after a request to stop. A job counts only if it sends transactions, informs on seats whose
        salts were offered, or works for looks and jurors. Raises ChainError.
        """
        self._collect()
        context, workers = self.context, self._workers
        challenges = self._games.play()
        self._tasks.find()
        observed = self._observer.look_at_all(block)
        if not self._stop.asked:
            for job in self._offered.jobs():
                workers.informs.offer(job)
        auditing.offer(context, observed, workers.fetches, workers.replays)
        for seen in sorted(observed, key=lambda seen: workers.keeps.rests.lost(seen.view.task)):
            for job in juror.keeping(context, seen):
                workers.keeps.offer(job)
        retention.release(context, block.time)
        if not (self._stop.asked or self._observer.ended_early):  # then the block's state is gone
            self._finished += self._tasks.finish_past()
        self._take_earnings()
        self.known.deadlines.put(context.client.market.address, "duties", self._reports.due(observed))
        context.metrics.challenges.set(challenges)
        context.metrics.tasks.set(len(self._tasks))
        return (0 if self._stop.asked else len(self._tasks)) + challenges + workers.busy

    def _look(self, task: int, block: Block) -> Observation | None:
        """Read a task's present state, note what follows from it, and return the state. Returns None if the
        task is over for good.
        """
        view = self.context.client.market.task(task)
        seen = keeper.observe(self.context, view, block.time)
        self._challenged.see(seen)
        self._reports.see(seen, self.alerts)
        see_events(self.context, seen, (self._workers.fetches, self._workers.keeps))
        bound = (
            releasable(seen, self.context.clients)
            or juror.releasable(self.context, seen)
            or item_claims.bound(self.context, seen)
            or compensation.pending(self.context, seen)
            or looking.moot(self.context, seen)
        )
        if view.status.is_over and not bound and self.context.client.is_over_for_good(task):
            self._over(view, block.time)
            return None
        self._engagements.see(seen)
        self._reports.say_what_is_late(seen, self.alerts)
        return seen

    def _bound(self) -> Mapping[str, Bound]:
        return reporting.bound(self.context)

    def _lacks(self, balances: Mapping[str, Balance], _block: Block) -> str:
        return reporting.lacking(self.context, balances)

    def _try_writing(self) -> None:
        self.context.database.try_writing()

    def _seen_enough(self) -> bool:
        """Whether all chosen tasks are over. If no tasks are chosen: whether at least one task is over."""
        chosen = self.context.settings.tasks
        finished = sum(node._finished for node in (*self._earlier, self))
        return all(map(self.context.database.is_finished, chosen)) if chosen else finished > 0

    def _offers(self, seen: Observation) -> Iterator[Offer]:
        """The jobs that are due in a task, except fetches and replays. Raises ChainError."""
        self._offered.see(seen)
        return offers(self.context, seen, self._games, self._workers)

    def _over(self, view: TaskView, now: int) -> None:
        """Finish a task, unless work on one of its challenges is in progress, or a challenge still has a bond
        at stake.
        """
        task, database = view.task, self.context.database
        challenges = database.all_challenges(task)
        at_stake = any(row.opening_until is not None and row.outcome is None for row in challenges)
        if at_stake or self._games.is_busy(task):
            return
        for row in challenges:
            if row.outcome is None:  # another challenger was first, and nothing of ours is at stake
                database.update_challenge(row.key, outcome=NEEDLESS)
            self._outcomes.add(row.outcome)
        if database.is_held(task):
            settled = view.status is TaskStatus.SETTLED
            database.hold(task, now + settled * self.context.settings.hold_seconds)
        database.finish(task)
        self._tasks.close(task)
        self._observer.forget(task)
        self.context.forget(task)
        self._games.forget(task)
        self._challenged.forget(task)
        self._engagements.forget(task)
        self._offered.forget(task)
        self._reports.forget(task, self.alerts)
        self._workers.forget(task)
        self._withdraw = True
        self._finished += 1
        self.context.log.info("over", task=task, status=view.status.name.lower())

    def _take_earnings(self) -> None:
        """After the start, and after a task is over, withdraw the returned coin, and the free tokens in the
        vault except those kept for a bond. This waits until no challenge is open.
        """
        if self._withdraw and not self._games and not self._stop.asked:
            self._workers.sends.offer(Job(None, "withdraw", self._withdraw_now))

    def _withdraw_now(self) -> None:
        self._withdraw = False
        try:
            for client in self.context.clients.values():
                amount = self._games.bonds.withdraw(client.address)
                if amount:
                    self.context.metrics.withdrawn.inc(amount / TOKEN)
                    self.context.log.info("withdrawn", tokens=amount / TOKEN, account=client.address)
                wei, _ = withdraw_credit(client)
                if wei:
                    self.context.log.info("withdrawn", coin=wei / COIN, account=client.address)
        except Exception:
            self._withdraw = True
            raise

    def _collect(self) -> None:
        """Report the errors of jobs. What failed is offered again later."""
        for failure in (*self._games.collect(), *self._workers.collect()):
            self.context.failed(failure.task, failure.what, failure.error)

    def _verdict(self) -> ExitCode:
        outcomes = {outcome for node in (*self._earlier, self) for outcome in node._outcomes}
        return ExitCode.FRAUD if outcomes & {*WON, LOST} else ExitCode.FINE
