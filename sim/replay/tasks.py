"""A task's whole life: the agents decide as they do in the engine, the chain carries it out, the books follow.

Where the engine's rules say who wins, who is rewarded and whether a task settles, the chain must say the same.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.commitments import ProgressTree
from sim.engine.task import Task
from sim.mechanism.arrays import Flags
from sim.mechanism.attestation import satisfied
from sim.mechanism.auctions import NO_ASK, Bid, bids
from sim.mechanism.booking import FIRST_SOLVER, SUBMITTER
from sim.mechanism.draw import Draw
from sim.replay.amounts import SCALE
from sim.replay.auditing import Submitted, attest, draw, lose_draw
from sim.replay.comparison import ESCROW, STAKE
from sim.replay.disputing import dispute
from sim.replay.shadow import Shadow
from sim.replay.stage import Stage
from sim.replay.terms import terms
from sim.replay.training import Trained

_MOST_BIDS: Final = 8
"""Of a bidding in time, the last: what was bid before them changes nothing that is left."""


class Life:
    """Plays one task after the other on a stage."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._shadow = Shadow(stage.scenario)
        self._books = stage.books
        self._amounts = stage.amounts
        self._parameters = stage.scenario.parameters
        self._submitter: Client = stage.clients[SUBMITTER]
        self._referee: Client = stage.referee

    def play(self) -> str:
        """One task; how it ended on the chain, which is how it ended in the engine."""
        before = self._shadow.ends()
        end = self._play(self._shadow.begin())
        ended = [name for name, count in self._shadow.ends().items() if count != before[name]]
        self._stage.same("the end of a task", ended, [end])
        if self._stage.scenario.exact:
            own, theirs = self._books.ledger.gains()[:, 0], self._shadow.books.ledger.gains()[:, 0]
            self._stage.same(
                "gains by the int64 ledger", [int(gain) * SCALE for gain in theirs], own.tolist()
            )
        return end

    def _play(self, engine: Task) -> str:
        task, escrow = self._post()
        sold = self._bid(task)
        self._stage.until(self._referee.market.task(task).bids_until)
        self._referee.market.assign(task)
        if sold is None:
            self._books.release(SUBMITTER, ESCROW, escrow)
            return self._ended(task, "unsold")
        solver, price = sold
        self._stage.same("the winner of an auction", int(engine.solver[0]), solver)
        if not engine.live[0]:
            return self._expire(task, solver, escrow)
        trained = self._stage.training.by(int(engine.work.false[0]))
        self._submit(task, solver, trained)
        if self._shadow.loses_draw(engine):
            lose_draw(self._stage, task)
            self._void(task, solver, escrow)
            self._books.undrawn(solver)
            return self._ended(task, "void")
        serves = bool(engine.work.serves[0])
        submitted = Submitted(task, solver, price, escrow - self._amounts.draw_fee, serves, trained)
        drawn = draw(self._stage, task)
        checks = self._shadow.end(engine, drawn)
        found: Flags = np.logical_or.reduce(np.isin(drawn.segments, sorted(trained.false_segments)), axis=0)
        self._stage.same("seats whose replay differs", checks.hit.tolist(), found.tolist())
        done = attest(self._stage, submitted, checks)
        accused = self._shadow.challenges(len(drawn.verifiers))
        if dispute(self._stage, submitted, checks, accused):
            return "convicted"
        return self._close(submitted, drawn, done)

    # ------------------------------------------------------------------ posting, bidding, training

    def _post(self) -> tuple[int, int]:
        number = self._submitter.market.tasks() + 1
        task, _ = self._submitter.market.post(
            terms(self._stage.training, self._parameters, self._amounts, number)
        )
        escrow = self._amounts.budget + self._amounts.draw_fee + self._reserve
        self._books.lock(SUBMITTER, ESCROW, escrow)
        self._stage.booked(f"task {task} posted")
        return task, escrow

    def _bid(self, task: int) -> tuple[int, int] | None:
        """All bids in their order, each in time or each in the last second. Account and price of the winner."""
        made = self._bids()
        if not self._stage.scenario.late:
            made = made[-_MOST_BIDS:]
        for number, bid in enumerate(made):
            bidder = self._bidder(bid.solver)
            if number:
                self._books.release(self._bidder(made[number - 1].solver), STAKE, self._amounts.stake)
                if not self._stage.scenario.exact:
                    higher = self._refusal(task, bid.price + 1)
                    self._stage.same("a bid that is one unit higher", "BidTooHigh", higher)
            if self._stage.scenario.late:
                self._stage.devnet.next_block_at(self._referee.market.task(task).bids_until)
            self._stage.clients[bidder].market.bid(task, bid.price)
            self._books.lock(bidder, STAKE, self._amounts.stake)
            self._stage.booked(f"task {task}: {self._stage.name(bidder)} bids {bid.price}")
        if not made:
            return None
        solver, price = self._bidder(made[-1].solver), made[-1].price
        view = self._submitter.market.task(task)
        self._stage.same(
            "best bidder and price", (self._stage.clients[solver].address, price), (view.bidder, view.price)
        )
        extension = self._submitter.market.terms(task).extension
        due = len(made) * extension if self._stage.scenario.late else 0
        self._stage.same("overtime of bidding", due, view.overtime)
        return solver, price

    def _refusal(self, task: int, price: int) -> str:
        """Why the contract takes no bid of this price from nobody, who has no stake either."""
        try:
            self._referee.market.read_all("bid", task, price)
        except Reverted as error:
            return error.name
        return ""

    def _bids(self) -> list[Bid]:
        """As the engine's solvers bid. With `exact` amounts these are its bids, each a multiple of its unit; else they
        go down by the contract's own least undercut.
        """
        most, late = self._parameters.budget, self._stage.scenario.late
        asks = [int(ask) if ask <= most else NO_ASK for ask in self._shadow.asks[:, 0]]
        if self._stage.scenario.exact:
            return [Bid(solver, price * SCALE) for solver, price in bids(asks, most, late=late)]
        exact = [self._amounts.price(ask, number) for number, ask in enumerate(asks)]
        return bids(exact, self._amounts.budget, late=late)

    def _bidder(self, number: int) -> int:
        """The account of an ask: the submitter's own is the last."""
        return FIRST_SOLVER + number if number < self._stage.scenario.population.solver_count else SUBMITTER

    def _expire(self, task: int, solver: int, escrow: int) -> str:
        self._stage.until(self._submitter.market.task(task).train_until)
        self._referee.market.expire(task)
        self._books.release(SUBMITTER, ESCROW, escrow)
        self._books.release(solver, STAKE, self._amounts.stake)
        self._books.expired(solver)
        return self._ended(task, "expired")

    def _submit(self, task: int, solver: int, trained: Trained) -> None:
        roots = trained.roots
        tree = ProgressTree(list(roots)).at(len(roots))
        last = len(roots) - 1
        self._stage.clients[solver].market.submit(
            task, tree.root, tree.inclusion_path(0), [], roots[last], tree.inclusion_path(last)
        )
        self._stage.booked(f"task {task}: submitted, {trained.false} of {last} segments false")

    # ------------------------------------------------------------------ ends

    def _close(self, task: Submitted, drawn: Draw, done: Flags) -> str:
        """Settled or void, when the window is over."""
        enough = bool(satisfied(drawn, done, self._parameters.matches)[0])
        self._stage.same("attestations suffice", enough, self._referee.audit.satisfied(task.number))
        if not enough:
            self._void(task.number, task.solver, task.escrow)
            return self._ended(task.number, "void")
        self._over(task.number, task.solver, task.escrow)
        self._referee.market.settle(task.number)
        seats = self._stage.first_verifier + drawn.verifiers
        self._books.settled(task.solver, seats, done, task.price, self._reserve)
        return self._ended(task.number, "settled")

    def _void(self, task: int, solver: int, escrow: int) -> None:
        self._over(task, solver, escrow)
        self._referee.market.void(task)

    def _over(self, task: int, solver: int, escrow: int) -> None:
        """The window passes; escrow and stake are booked by what follows, or return."""
        self._stage.until(self._referee.market.task(task).challenge_until)
        self._books.release(SUBMITTER, ESCROW, escrow)
        self._books.release(solver, STAKE, self._amounts.stake)

    def _ended(self, task: int, how: str) -> str:
        self._stage.booked(f"task {task}: {how}")
        return how

    @property
    def _reserve(self) -> int:
        return self._amounts.reserve(self._parameters.verifiers, self._parameters.segments_per_verifier)
