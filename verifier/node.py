"""The running verifier: one loop that plays its games first, then attests, advances tasks, and replays.

It serves all deployments of its chain in which the account has data. Each has a node, with its own database
and contracts. The verifier registers in the newest deployment. The nodes of earlier deployments lock no
further stake, and finish what was begun.

This module decides no move or number: `Strategy`, `seats` and the program do. The loop never waits for a
receipt, a replay or a stranger; `Jobs` does, so that games and seats advance side by side. An error about a
task counts against that task: the error is logged with the task's number and counted, and the work is tried
again after a pause.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import chain
from typing import NamedTuple

from fastapi import FastAPI

from protocol.chain.accounts import DEVELOPMENT_CHAIN
from protocol.chain.blocks import Block
from protocol.chain.client import Client
from protocol.chain.connection import BATCH
from protocol.chain.deployment import Deployment
from protocol.chain.errors import RpcRefused, RpcUnavailable
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
    accusing,
    answering,
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
from verifier.deadlines import concerns, due_next, sends_due
from verifier.engagements import Engagements
from verifier.games import Games
from verifier.jobs import Job, Jobs, Rests
from verifier.offered_salts import OfferedSalts
from verifier.open_tasks import OpenTasks
from verifier.outcomes import Outcomes
from verifier.registration import ensure_registered, speed_of
from verifier.seats import releasable
from verifier.seeing import see_events
from verifier.server import application
from verifier.settings import VerifierSettings
from verifier.strategy import HONEST, Strategy

ANSWERS = 2
"""Number of jobs for looks and jurors that run side by side. They replay segments for answers and
accusations, or hash items for votes.
"""
SENDERS = 4
"""Number of short jobs that run side by side, apart from those of games: actions and attestations, each with
one transaction. Calls that advance tasks have as many workers, which they share with nothing else.
"""
WON = ("solver_false", "solver_silent")
LOST = "challenger_silent"


class _Offer(NamedTuple):
    """A job for one kind of work. Of jobs that must be done by the same time, the one whose task has the
    earliest deadline (`due`) goes first.
    """

    work: Jobs
    job: Job
    due: float

    @property
    def order(self) -> tuple[float, float]:
        """Sort key: the most urgent job goes first."""
        return self.job.until, self.due


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
        due = self.context.turns.due
        self._fetches = Jobs(settings.fetches, longest_rest=math.inf)
        self._replays = Jobs(settings.replays, longest_rest=math.inf, due=due, queued=True)
        self._sends = Jobs(SENDERS, longest_rest=8)
        self._calls = Jobs(SENDERS, longest_rest=8)
        """Separate jobs, so that strangers' tasks, however many are due at once, do not delay duties."""
        self._answers = Jobs(ANSWERS, longest_rest=8, due=due, queued=True)
        """Jobs for looks and jurors. They have less time than replays. So they are kept apart from the
        replays: they neither wait for replays to end, nor pause because a replay failed.
        """
        self._informs = Jobs(1, longest_rest=8)
        """Separate jobs, so that strangers' salts do not delay attestations."""
        self._keeps = Jobs(1, longest_rest=math.inf)
        """Separate jobs, so that fetching further states for claimants does not delay duties."""
        self._games = Games(self.context, self._fetches, self._engagements)
        self._challenged = Outcomes(self.context)
        self._offered = OfferedSalts(
            client, self.context.clients, self.context.database, self.context.metrics
        )
        self._looks = Rests(longest=30)
        self._tasks = OpenTasks(client, self.context.database, settings.tasks, self.context.clients)
        self._ours: set[int] = set()
        """Open tasks in which our accounts had something at the last look (`concerns`)."""
        self._next = 0
        """The task at which the last look ended because the node no longer had the block's state; 0 if that
        look saw all tasks.
        """
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

        With `once`, returns FRAUD if a solver was found false, or if one of our challenges was lost. Raises
        VerifierError, ChainError.
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

    @property
    def _sending(self) -> tuple[Jobs, ...]:
        """The kinds of work whose jobs only send transactions."""
        return self._sends, self._calls, self._informs

    def _app(self) -> FastAPI:
        return application(self.context.results, self.context.items, self._offered.offer)

    def _close(self) -> None:
        """Stop all jobs and close the database."""
        self._fetches.abandon()  # files already on disk are not fetched again
        self._keeps.abandon()
        self._games.close()
        self._sends.close()
        self._calls.close()
        self._informs.close()
        self._answers.close()
        self._replays.close()
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
        works = (self._fetches, self._replays, self._keeps)
        return not (self._alive or any(work.busy for work in works) or self._withdraw)

    def turn(self, block: Block) -> int:
        """Look at everything as of this block, and offer the work that is due. Returns the sum of three
        numbers: challenges that are not over; tasks that are not over, which do not count after a request to
        stop; and jobs in progress. Of the jobs, only those count that send transactions, that inform on seats
        whose salts were offered, or that work for looks and jurors. Raises ChainError.
        """
        self._collect()
        context = self.context
        challenges = self._games.play()
        self._tasks.find()
        observed = self._look_at_all(block)
        if not self._stop.asked:
            for job in self._offered.jobs():
                self._informs.offer(job)
        auditing.offer(context, observed, self._fetches, self._replays)
        for seen in sorted(observed, key=lambda seen: self._keeps.rests.lost(seen.view.task)):
            for job in juror.keeping(context, seen):
                self._keeps.offer(job)
        retention.release(context, block.time)
        if not (self._stop.asked or self._next):  # with `_next`, the block's state is gone
            self._finished += self._tasks.finish_past()
        self._take_earnings()
        self.known.deadlines.put(context.client.market.address, "duties", self._reports.due(observed))
        context.metrics.challenges.set(challenges)
        context.metrics.tasks.set(len(self._tasks))
        return (
            (0 if self._stop.asked else len(self._tasks))
            + challenges
            + self._sends.busy
            + self._calls.busy
            + self._informs.busy
            + self._answers.busy
        )

    def _look_at_all(self, block: Block) -> list[Observation]:
        """Look at all open tasks that do not rest, and offer the jobs that are due in them. Returns what was
        seen; nothing after a request to stop.

        Anyone may post tasks. So our own tasks come first, and their jobs are offered before strangers' tasks
        are looked at. The look ends early if the node no longer has the block's state. The next look then
        begins where this one ended. Raises RpcUnavailable.
        """
        awake = [task for task in self._tasks.numbers() if not self._looks.resting(task)]
        turns = sorted(awake, key=lambda task: (task < self._next, task))
        own = [task for task in turns if task in self._ours]
        observed: list[Observation] = []
        ended = self._look_at(own, block, observed)
        if ended is None:
            ended = self._look_at([task for task in turns if task not in self._ours], block, observed)
        # A task at which two looks in a row have ended lets the others go first.
        self._next = 0 if ended is None else ended + (ended == self._next)
        return observed

    def _look_at(self, tasks: Sequence[int], block: Block, observed: list[Observation]) -> int | None:
        """Look at tasks, append what is seen to `observed`, and offer the jobs that are due, the earliest
        deadline first. Returns the task at which the look ended early, or None. Raises RpcUnavailable.
        """
        offers: list[_Offer] = []
        ended = None
        for number, task in enumerate(tasks):
            if number % BATCH == 0:
                asked = tasks[number : number + BATCH]
                self.context.client.market.ask_ahead("taskOf", *([one] for one in asked))
            started = time.monotonic()
            try:
                seen = self._look(task, block)
                if seen is not None and not self._stop.asked:
                    observed.append(seen)
                    for offer in self._actions(seen):  # those before an error are kept
                        offers.append(offer)
            except RpcUnavailable:
                raise
            except Exception as error:
                if isinstance(error, RpcRefused) and self._is_gone(block):
                    ended = task
                    break
                # Strangers write a task's data: an error in it must not end the look at other tasks.
                self._looks.failed(task, time.monotonic() - started)
                self.context.failed(task, "look", error)
                continue
            self._looks.succeeded(task)
            self._games.begin()
        for offer in sorted(offers, key=lambda offer: offer.order):
            offer.work.offer(offer.job)
        return ended

    def _is_gone(self, block: Block) -> bool:
        """Whether the chain's node no longer has the state of a block. Raises RpcUnavailable."""
        client = self.context.client
        try:
            client.connection.code(client.market.address, block.hash)
        except RpcRefused:
            return True
        return False

    def _look(self, task: int, block: Block) -> Observation | None:
        """Read a task's present state, note what follows from it, and return the state. Returns None if the
        task is over for good.
        """
        view = self.context.client.market.task(task)
        seen = keeper.observe(self.context, view, block.time)
        self._challenged.see(seen)
        self._reports.see(seen, self.alerts)
        see_events(self.context, seen, (self._fetches, self._keeps))
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

    def _actions(self, seen: Observation) -> Iterator[_Offer]:
        """The jobs that are due in a task, except fetches and replays. Raises ChainError."""
        context, task = self.context, seen.view.task
        if concerns(context, seen):
            self._ours.add(task)
        else:
            self._ours.discard(task)
        self._offered.see(seen)
        due, sent = due_next(context, seen), sends_due(context, seen)
        sends = (
            self._games.make_ready(seen),
            auditing.attestations(context, seen),
            looking.jobs(context, seen),
            answering.contests(context, seen),
            juror.refusals(context, seen),
            item_claims.jobs(context, seen),
        )
        for job in chain.from_iterable(sends):  # what has a deadline may need no free worker (`finds_worker`)
            yield _Offer(self._sends, job._replace(until=sent), due)
        for job in keeper.jobs(context, seen):
            yield _Offer(self._calls, job, due)
        answers = (
            answering.answers(context, seen),
            looking.asks(context, seen),
            accusing.jobs(context, seen),
            accusing.drops(context, seen),
            juror.openings(context, seen),
            juror.votes(context, seen),
        )
        for job in chain.from_iterable(answers):
            yield _Offer(self._answers, job, due)

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
        self._ours.discard(task)
        self.context.forget(task)
        self._games.forget(task)
        self._challenged.forget(task)
        self._engagements.forget(task)
        self._offered.forget(task)
        self._reports.forget(task, self.alerts)
        computing = (self._fetches, self._replays, self._answers, self._keeps)
        for rests in (*(work.rests for work in (*computing, *self._sending)), self._looks):
            rests.forget(task)
        self._withdraw = True
        self._finished += 1
        self.context.log.info("over", task=task, status=view.status.name.lower())

    def _take_earnings(self) -> None:
        """After a task is over, withdraw the returned coin, and the free tokens in the vault except those
        kept for a bond.
        """
        if self._withdraw and not self._games and not self._stop.asked:
            self._sends.offer(Job(None, "withdraw", self._withdraw_now))

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
        failures = [*self._games.collect(), *chain.from_iterable(work.collect() for work in self._sending)]
        failures += [*self._answers.collect(), *self._keeps.collect()]
        for failure in [*failures, *self._replays.collect(), *self._fetches.collect()]:
            self.context.failed(failure.task, failure.what, failure.error)

    def _verdict(self) -> ExitCode:
        outcomes = {outcome for node in (*self._earlier, self) for outcome in node._outcomes}
        return ExitCode.FRAUD if outcomes & {*WON, LOST} else ExitCode.FINE
