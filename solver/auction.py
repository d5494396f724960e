"""Looks for work: considers every new task once, bids on it if it pays, and bids again when another solver
bids less.

Several tasks may be trained at once, if a device has time and memory for one more (`offers`, `places`). A
task that does not fit beside the tasks already taken is considered again when these change. Bundles are
fetched in the background (`fetching`). After a failure the task pauses for as long as the attempt took. Tasks
that have cost the least time come first.

A bid names a task by its number, and a re-organisation may give the number to another task. So a bid waits
until the task's post is final or, if bidding ends before that, for as long as bidding allows (`_may_change`).

A lost bid is still watched: if a re-organisation removes the bid that beat it, this solver has the best bid
again. No stake is reserved for that case; `Committer.submit` then takes the stake from the account.

The auction also takes up a task that this solver won but its database does not know, for example because an
old copy was restored.
"""

from __future__ import annotations

from functools import partial

from protocol.chain.views import NOBODY, TaskStatus, TaskView
from protocol.errors import AssayError, InternalError
from protocol.node.party.eligible import eligible, least_eligible, least_share
from protocol.node.words import amount, tokens
from protocol.tasks.admission import Rates
from protocol.tasks.bundles import BundleError, BundleUnavailable, TensorsTooLarge
from protocol.tasks.offers import Best, Offer, Refusal, Rule, decide
from protocol.tasks.task import Terms, TermsError
from solver.context import Context
from solver.database import Stage
from solver.failures import Failures
from solver.fetching import Fetching
from solver.trainings import by_device

PASSING = frozenset({Rule.BESIDE, Rule.MEMORY, Rule.MAPS, Rule.DISK, Rule.GAMES, Rule.STAKE})
"""Reasons for not bidding that may disappear when this solver's other tasks end, or when the bundles of these
tasks are read.
"""
LATEST = 2.0
"""While a task's post is not final, a bid waits until at most LATEST x t is left before bidding closes. t is
the interval between two looks at the chain plus the time until a transaction is included.
"""


class Auction:
    """Bids on tasks with one account. A task that is refused or finally lost is kept in the
    database and not looked at again.

    A failure in one task does not affect others (`failures`).
    """

    def __init__(
        self,
        context: Context,
        failures: Failures,
        ends: bool = False,
    ) -> None:
        """With `ends`, the auction makes no new bids and only follows those made before."""
        self._context = context
        self._failures = failures
        self._ends = ends
        self.paused = ""
        """Why no bids are made now, not even to answer a lower bid; empty if bids are made."""
        self._seen = 0
        self._candidates: list[int] = []
        self._fetching = Fetching(context)
        self._swept = False
        # Tasks that had no room: what `_occupied` said then, and the end of the bidding.
        self._waiting: dict[int, tuple[tuple[list[int], int], int]] = {}
        self._beaten: dict[int, int] = {}  # task: the block since which another solver is ahead

    @property
    def considers(self) -> bool:
        """Whether any task is being considered, or any bundle is being fetched."""
        return bool(self._candidates or self._fetching.running)

    def tick(self, take: bool) -> None:
        """Follow the bids that still stand, and watch the lost ones. With `take`, also consider new tasks."""
        market = self._context.client.market
        for stage, look in ((Stage.BID, self._follow), (Stage.OUTBID, self._watch)):
            for task in self._staged(stage):
                if not self._failures.rests(task):
                    with self._failures.kept(task):
                        look(task, market.task_if_posted(task))
        newest = market.tasks()
        # This solver's tasks that the database has lost are taken up even if the auction ends.
        new = self._new(range(self._seen + 1, newest + 1))
        if not self._swept:  # only now does the database know all own tasks
            self._sweep()
        self._candidates += [] if self._ends else new
        self._seen = newest
        for task in sorted(self._candidates, key=self._fetching.seconds_lost) if take else ():
            if self._failures.rests(task) or self._waits(task):
                continue
            with self._failures.kept(task, partial(self._fetching.seconds, task)):
                if not self._consider(task):
                    self._candidates.remove(task)
                    if task not in self._standing():
                        self._forget(task)

    def _standing(self) -> list[int]:
        return self._staged(Stage.BID)

    def _staged(self, stage: Stage) -> list[int]:
        return self._context.database.live(stage)

    def _sweep(self) -> None:
        """Delete the bundles of tasks that an earlier process considered and did not bid on. The bundle of a
        won task may still be among the candidates: it is moved when the task is loaded.
        """
        self._fetching.keep(self._context.engaged().items())
        self._swept = True

    def _new(self, posted: range) -> list[int]:
        """Those of the posted tasks on which a bid may be considered: the database does not know them, they
        take bids, and the settings allow them. If this solver has won a task that the database does not know,
        or has the best bid on it, the task is taken up instead, and is not in the list.
        """
        only, database = self._context.settings.tasks, self._context.database
        unknown = [task for task in posted if database.task(task) is None]
        statuses = self._context.client.market.statuses(unknown)
        new = []
        for task, status in zip(unknown, statuses, strict=True):
            own = not status.is_over and self._is_own(task)
            if status is TaskStatus.BIDDING and not own and (not only or task in only):
                new.append(task)
        return new

    def _is_own(self, task: int) -> bool:
        """Whether a task that the database does not know has this solver's bid on the chain, and is not over.
        If so, the task is taken up in its present state. The database can lack the task if it is an older
        copy, or has lost its last writes. Raises ChainError.
        """
        view = self._context.client.market.task(task)
        if view.bidder != self._context.client.address or view.status.is_over:
            return False
        if view.status is TaskStatus.BIDDING:
            stage = Stage.BID
        else:
            stage = Stage.SUBMITTED if view.status.can_be_challenged else Stage.TRAINING
        self._context.database.put(task, stage, "found on the chain")
        self._context.log.warning("own task found on the chain", task=task, status=view.status.name.lower())
        return True

    def _waits(self, task: int) -> bool:
        """Whether a task that did not fit beside the taken tasks must keep waiting: bidding on it is still
        open, the taken tasks are the same, and no further bundle of the other tasks has been read.
        """
        if task not in self._waiting:
            return False
        then, until = self._waiting[task]
        return then == self._occupied(task) and any(then) and self._context.client.now() <= until

    def _occupied(self, task: int) -> tuple[list[int], int]:
        """A pair: the taken tasks, and the number of other tasks whose bundles this process has not read.

        That number counts all tasks, except `task`, that this solver has taken or may still win, including
        those under other contracts. Until a task's bundle is read, its games are assumed to need the most
        work that its terms allow, and no memory counts as free on a device where the task may be.
        """
        traces, held = self._context.traces, self._context.held
        unknown = sum(
            terms.program_id not in traces or terms.bundle_hash not in held
            for terms in self._beside(task).values()
        )
        return self._taken(), unknown

    def _taken(self) -> list[int]:
        """Tasks that use stake, disk or time, or may come to use them."""
        return self._staged(Stage.SUBMITTED) + self._trained()

    def _has_others(self, task: int) -> bool:
        """Whether any task other than `task` uses stake, disk or time, or may come to use them."""
        return any(one != task for one in self._taken())

    def _trained(self) -> list[int]:
        """Tasks in training, and tasks with a standing bid, which may be trained once bidding is over."""
        return self._staged(Stage.TRAINING) + self._standing()

    def _consider(self, task: int) -> bool:
        """Bid on a new task, or note why no bid is made. Returns True if the task must be looked at again.
        Raises BundleUnavailable.
        """
        context = self._context
        view = context.client.market.task(task)
        left = view.bids_until - context.client.now()
        if view.status is not TaskStatus.BIDDING or left < 0:
            return False
        try:
            terms = context.client.market.terms(task)
            # Before anything is fetched, the terms alone must promise a profit.
            self._offer(terms, view, self._context.hopes)
            if not self._is_fetched(task, terms, left) or self._may_change(terms, view):
                return True
            self._require_eligible(terms)
            self._bid(task, terms, view)
        except BundleUnavailable as error:
            self._fetching.failed(task, error)
            raise
        except _NotYet:
            return True
        except _NotNow as error:
            self._waiting[task] = (self._occupied(task), view.bids_until)
            context.log.info("not now", task=task, reason=str(error))
            self._fetching.drop(task)
            return True
        except (BundleError, TermsError, _NotWorth) as error:
            self._refuse(task, str(error))
        return False

    def _is_fetched(self, task: int, terms: Terms, left: int) -> bool:
        """Whether the bundle is here and matches the terms. Starts fetching the bundle if needed. Raises
        _NotWorth if the bundle cannot be stored or read here, _NotNow if it is too large for the disk beside
        other tasks, and BundleError.
        """
        fetch = self._fetching.fetch(task, terms, left)
        if fetch is None:
            return False
        try:
            fetch.result()
        except (OSError, MemoryError) as error:
            raise _NotWorth(f"no room for its bundle here: {type(error).__name__}: {error}") from error
        except TensorsTooLarge as error:
            if self._has_others(task):
                raise _NotNow(str(error)) from error
            raise
        except AssayError:
            raise
        except Exception as error:  # a stranger's bundle triggered a defect: only this task fails
            self._context.log.warning("bundle not read", task=task, exc_info=error)
            raise _NotWorth(f"its bundle cannot be read: {type(error).__name__}") from error
        return True

    def _may_change(self, terms: Terms, view: TaskView) -> bool:
        """Whether a bid must wait: a re-organisation may still give the task's number to another task, and
        enough time is left for bidding.
        """
        client, clocks = self._context.client, self._context.clocks
        left = view.bids_until - client.now()
        if left <= LATEST * (clocks.inclusion + clocks.look):
            return False
        return not client.connection.is_final_at(view.posted_at(terms.bidding_period))

    def _beside(self, task: int) -> dict[str, Terms]:
        """The terms of all other tasks that this solver has taken or may win."""
        own = {f"task {one}": terms for one, terms in self._context.engaged().items() if one != task}
        return {**own, **self._context.elsewhere()}

    def _offer(self, terms: Terms, view: TaskView, rates: Rates | None = None) -> tuple[Offer, str]:
        """The bid to make now, and the device for the training. `rates` are by default those of this machine.
        If no bid can be made, raises one of three errors: _NotNow if the reason may disappear when the tasks
        that are already taken have ended, or when bundles have been read; _NotYet if the reason may disappear
        when the running fetches end; otherwise _NotWorth.
        """
        if self._ends:
            raise _NotWorth("new work is taken under later contracts")
        if self.paused:
            raise _NotWorth(self.paused)
        client, task = self._context.client, view.task
        # A fetch has no room that is kept for a standing bid.
        fetching = 0 if task in self._standing() else self._context.fetches.bytes
        figures = self._context.settings.figures(
            client.vault.free(client.address) - self.owed(task),
            max(0, self._context.free_disk(task) - fetching),
            self._context.clocks,
            rates or self._context.rates,
            client.deployment.parameters.draw_delay,
            client.connection.gas_price,
            self._beside(task),
            self._context.traces,
        )
        others = int(view.bidder, 16) != 0 and view.bidder != client.address
        best = Best(view.price, view.overtime // terms.extension) if others else None
        refusal: Refusal | None = None
        # A task whose post a re-organisation has removed takes up no time and no memory.
        trained = [one for one in self._context.engaged(Stage.TRAINING, Stage.BID) if one != task]
        submitted = [*self._context.engaged(Stage.SUBMITTED)]
        for device, there in by_device(self._context, terms, trained, submitted, figures):
            decision = decide(terms, there, best)
            if isinstance(decision, Offer):
                return decision, device
            refusal = refusal or decision
        assert refusal is not None
        if refusal.rule is Rule.DISK and fetching:
            raise _NotYet(refusal.reason)
        _, unknown = self._occupied(task)
        passing = refusal.rule in PASSING and (unknown > 0 or self._has_others(task))
        raise (_NotNow if passing else _NotWorth)(refusal.reason)

    def _require_eligible(self, terms: Terms) -> None:
        """Refuse a task for which this solver might not be paid. Either the task's seats might stay empty, or
        only the submitter's accounts, which may stay silent, might take them. Raises _NotWorth.
        """
        client, settings = self._context.client, self._context.settings
        chain_id = client.connection.chain_id
        least = settings.min_eligible or least_eligible(chain_id, terms.verifiers, terms.jurors)
        share = least_share(chain_id) if settings.min_share is None else settings.min_share
        refusal = eligible(client, terms).refusal(terms, least, share)
        if refusal is not None:
            raise _NotWorth(refusal)

    def owed(self, task: int | None = None) -> int:
        """Token units that must stay free for the stakes of all tasks that this solver may still submit,
        except `task`. Where this solver's bid has locked a task's delay penalty, that much less must stay
        free: the submission releases the penalty, so that it can go into the stake.
        """
        client, owed = self._context.client, 0
        for other in (*self._staged(Stage.TRAINING), *self._standing()):
            view = client.market.task_if_posted(other)
            if other == task or view is None or view.status not in (TaskStatus.BIDDING, TaskStatus.TRAINING):
                continue
            terms = client.market.terms(other)
            owed += terms.stake - terms.delay_penalty * (view.bidder == client.address)
        return owed

    def _bid(self, task: int, terms: Terms, view: TaskView) -> None:
        """Start sending a bid. The task's row is written first, so that every sent bid is followed."""
        context = self._context
        offer, device = self._offer(terms, view)
        price = offer.price
        context.places.put(task, device)
        context.database.put(task, Stage.BID, f"asked for {tokens(price)}")
        context.log.info("bidding", task=task, tokens=amount(price), floor=str(offer.floor))
        # The bid may come too late; `_follow` handles that.
        context.begin(task, "bid", partial(context.client.market.bid, task, price), tokens=amount(price))

    def _follow(self, task: int, view: TaskView | None) -> None:
        """Follow a task that this solver has bid on: answer lower bids, and have the task assigned once
        bidding is over. `view` is None if a re-organisation removed the task's post.
        """
        context = self._context
        if view is None:
            self._lose(task, "a re-organisation removed its post")
            return
        mine = view.bidder == context.client.address
        if view.status is TaskStatus.BIDDING:
            if context.client.now() > view.bids_until:
                if mine:
                    context.begin(task, "assign", partial(context.client.market.assign, task))
                else:
                    beaten = int(view.bidder, 16) != 0
                    why = "another solver asked for less" if beaten else "bidding ended without a bid"
                    self._lose(task, why)
            elif not mine and not context.sends.busy(task, "bid"):
                terms = context.client.market.terms(task)
                if self._fetching.terms(task) not in (None, terms):
                    self._lose(task, "a re-organisation gave its number to another task")
                    return
                if self._may_change(terms, view):
                    return
                try:
                    self._bid(task, terms, view)
                except _NotWorth as error:
                    self._lose(task, str(error))
        elif mine and not view.status.is_over:
            self._win(view)
        else:
            others = view.bidder != NOBODY and not mine
            self._lose(task, "assigned to another solver" if others else view.status.name.lower())

    def _watch(self, task: int, view: TaskView | None) -> None:
        """Watch a task whose bid was beaten, or whose post a re-organisation removed (`view` is None). Take
        it up again if this solver's bid is the best again, or if the task was assigned to this solver. Give
        up after `reorg_depth` blocks, because no re-organisation can then bring the task back.
        """
        context = self._context
        if view is None or view.bidder != context.client.address or view.status.is_over:
            newest = context.client.connection.block().number
            depth = context.client.connection.chain.reorg_depth
            if newest - self._beaten.setdefault(task, newest) >= depth:
                row = context.database.task(task)
                self._refuse(task, "" if row is None else row.note)
            return
        context.log.warning("the best bid again", task=task)
        self._beaten.pop(task, None)
        if view.status is TaskStatus.BIDDING:
            context.database.put(task, Stage.BID)
        else:
            self._win(view)

    def _win(self, view: TaskView) -> None:
        self._context.database.put(view.task, Stage.TRAINING)
        self._context.log.info("assigned", task=view.task, tokens=amount(view.price))

    def _lose(self, task: int, why: str) -> None:
        """Record that this solver has lost a task, and why. A re-organisation may still change that."""
        self._context.database.put(task, Stage.OUTBID, why)
        self._context.log.info("outbid", task=task, reason=why)

    def _refuse(self, task: int, why: str) -> None:
        """Record that a task is not to be looked at again."""
        self._context.database.put(task, Stage.REFUSED, why)
        self._context.log.info("not taken", task=task, reason=why)
        self._forget(task)

    def _forget(self, task: int) -> None:
        """Drop all data about a task, because nothing more is to be done for it."""
        self._beaten.pop(task, None)
        self._waiting.pop(task, None)
        self._context.places.forget(task)
        self._fetching.forget(task)


class _NotWorth(InternalError):
    """The task is not worth a bid."""


class _NotYet(_NotWorth):
    """There is too little disk for the task, but perhaps enough once the bundles that are being fetched have
    arrived or are deleted.
    """


class _NotNow(_NotWorth):
    """The tasks already taken leave too little memory, disk or stake, or too little
    time for training or games.
    """
