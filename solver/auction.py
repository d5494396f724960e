"""Looking for work: every new task is weighed once, bid on if it pays, and bid on again when somebody asks for less.

One task at a time: a solver that trains one task does not bid on the next, whose deadline would run meanwhile.
"""

from __future__ import annotations

from protocol.bundles import BundleError
from protocol.chain.errors import Reverted
from protocol.chain.views import TaskStatus, TaskView
from protocol.task import Terms, TermsError
from solver.bidding import Offer, Refusal, decide
from solver.database import Stage
from solver.desk import Desk
from solver.holding import hold


class Auction:
    """Bids from one account. What was refused or lost is kept in the database and not looked at again."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._seen = 0

    def tick(self, take: bool) -> None:
        """Follow the standing bids; with `take` also look at new tasks, until one is bid on."""
        standing = [row.task for row in self._desk.database.tasks() if row.stage is Stage.BID]
        for task in standing:
            self._follow(self._desk.client.market.task(task))
        if not take or standing:
            return
        newest = self._desk.client.market.tasks()
        while self._seen < newest:
            self._seen += 1
            if self._is_new(self._seen) and self._consider(self._seen):
                return

    def _is_new(self, task: int) -> bool:
        only = self._desk.settings.tasks
        return (not only or task in only) and self._desk.database.task(task) is None

    def _consider(self, task: int) -> bool:
        """Bid on a new task, or note why not; True after a bid."""
        desk = self._desk
        view = desk.client.market.task(task)
        if view.status is not TaskStatus.BIDDING or desk.client.now() >= view.bids_until:
            return False
        try:
            terms = desk.client.market.terms(task)
            self._require_worth(terms, view)
            hold(desk, terms)
            return self._bid(task, terms, view)
        except (BundleError, TermsError, _NotWorth) as error:
            desk.database.put(task, Stage.REFUSED, str(error))
            desk.log.info("not taken", task=task, reason=str(error))
            return False

    def _require_worth(self, terms: Terms, view: TaskView) -> None:
        """Before anything is fetched: the terms alone must promise a profit."""
        self._price(terms, view)

    def _price(self, terms: Terms, view: TaskView) -> int:
        client = self._desk.client
        figures = self._desk.settings.figures(client.vault.free(client.address))
        others = int(view.solver, 16) != 0 and view.solver != client.address
        decision = decide(terms, figures, view.price if others else None)
        if isinstance(decision, Refusal):
            raise _NotWorth(decision.reason)
        assert isinstance(decision, Offer)
        return decision.price

    def _bid(self, task: int, terms: Terms, view: TaskView) -> bool:
        """Bid; the row is written first, so that a bid that was sent is always followed."""
        desk = self._desk
        price = self._price(terms, view)
        desk.database.put(task, Stage.BID, f"{price} units")
        try:
            receipt = desk.client.market.bid(task, price)
        except Reverted as error:  # outbid or closed in between: `_follow` sees to it
            desk.log.info("bid refused", task=task, error=error.name)
            return True
        desk.count("bid", receipt, task=task, price=str(price))
        return True

    def _follow(self, view: TaskView) -> None:
        """A task with a bid of one's own: assign it when bidding is over, answer a lower bid before."""
        desk, task = self._desk, view.task
        mine = view.solver == desk.client.address
        if view.status is TaskStatus.BIDDING:
            if desk.client.now() > view.bids_until:
                if mine:
                    desk.send("assign", lambda: desk.client.market.assign(task), task=task)
                else:
                    self._lost(task, "another solver asked for less")
            elif not mine:
                try:
                    self._bid(task, desk.client.market.terms(task), view)
                except _NotWorth as error:
                    self._lost(task, str(error))
        elif mine and not view.status.is_over:
            desk.database.put(task, Stage.TRAINING)
            desk.log.info("assigned", task=task, price=str(view.price))
        else:
            self._lost(task, "assigned to another solver" if not mine else view.status.name.lower())

    def _lost(self, task: int, why: str) -> None:
        self._desk.database.put(task, Stage.REFUSED, why)
        self._desk.log.info("not taken", task=task, reason=why)


class _NotWorth(Exception):
    """No price that suits both sides."""
