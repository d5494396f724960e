"""A task from post to end: agents decide as in the engine, the chain executes, and the books record it.

The chain must agree with the engine on who wins, who is rewarded and whether a task settles.
"""

from __future__ import annotations

from typing import Final

from protocol.chain.client import Client
from protocol.chain.errors import Reverted
from protocol.commitments import ProgressTree
from protocol.node.party.rounds import show_round
from sim.engine.task import Checks, Task
from sim.mechanism.auctions import NO_ASK, Bid, bids
from sim.mechanism.booking import FIRST_SOLVER, SUBMITTER
from sim.replay.accusing import Looked
from sim.replay.amounts import SCALE
from sim.replay.auditing import Auditing
from sim.replay.comparison import ESCROW, STAKE
from sim.replay.disputing import Submitted, dispute
from sim.replay.rounds import signature
from sim.replay.shadow import Shadow
from sim.replay.stage import Stage
from sim.replay.terms import terms
from sim.replay.timing import submission
from sim.replay.training import Trained

_MOST_BIDS: Final = 8
"""If bids are not late, at most this many of them are played. These are the last ones, because earlier bids
leave no trace. Late bids are all played.
"""


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
        """Play one task and return how it ended, which must be the same on the chain and in the engine."""
        before = self._shadow.ends()
        end = self._play(self._shadow.begin())
        ended = [name for name, count in self._shadow.ends().items() if count != before[name]]
        self._stage.same("the end of a task", ended, [end])
        if self._stage.scenario.exact:
            own, theirs = self._books.ledger.gains()[:, 0], self._shadow.books.ledger.gains()[:, 0]
            whole = [int(gain) * SCALE + half for gain, half in zip(theirs, self._stage.halves, strict=True)]
            self._stage.same("gains by the int64 ledger", whole, own.tolist())
        return end

    def _play(self, engine: Task) -> str:
        task = self._post()
        won = self._bid(task)
        if self._stage.scenario.cancelled:
            self._stage.same("the winner of a task that is taken back", None, won)
            self._submitter.market.cancel(task)
        else:
            self._stage.until(self._submitter.market.task(task).bids_until)
            self._referee.market.assign(task)
        if won is None:
            self._books.close_escrow()
            return self._ended(task, "unsold")
        solver, price = won
        self._stage.same("the winner of an auction", int(engine.solver[0]), solver)
        if not engine.live[0]:
            return self._expire(task, solver)
        trained = self._stage.training.by(int(engine.work.false[0]))
        self._submit(task, solver, trained)
        auditing = Auditing(self._stage, task, trained)
        serves = bool(engine.work.serves[0])
        submitted = Submitted(task, solver, price, serves, trained, auditing)
        checks = self._shadow.end(engine, auditing)
        if engine.drawn[0]:
            false = [
                any(segment in trained.false_segments for segment in auditing.segments(seat))
                for seat in range(self._parameters.verifiers)
            ]
            differ = [int(engine.work.false[0]) >= min(auditing.segments(seat)) for seat in range(len(false))]
            self._stage.same("seats whose replay differs", differ, false)
        end = self._end(submitted, checks)
        if auditing.owed:
            auditing.execute_late()
        auditing.release()
        return end

    def _end(self, task: Submitted, checks: Checks) -> str:
        """Play the outcomes of looks, then the challenges. If none of these convicts the solver, play the end
        of the task. Return how the task ended.
        """
        accused, owed = self._shadow.challenges(), self._shadow.claims()
        looked = None
        if checks.second is not None:
            looked = Looked(self._stage, task, checks.second, self._shadow.looking)
            looked.accuse()
        if dispute(self._stage, task, [each for each in accused if not each.late], owed):
            if looked and self._stage.scenario.moot:
                looked.close_moot()
            return "convicted"
        attested = [
            self._stage.first_verifier + int(account)
            for account, done in zip(checks.accounts[:, 0], checks.paid[:, 0])
            if done
        ]
        if checks.stalled[0]:
            self._stall(task)
            if dispute(self._stage, task, [each for each in accused if each.late], owed):
                return "convicted"
            return self._close(task, attested, "stalled")
        return self._close(task, attested, "settled" if checks.full[0] else "void")

    # ------------------------------------------------------------------ posting, bidding, training

    def _post(self) -> int:
        number = self._submitter.market.tasks() + 1
        show_round(self._referee, signature)
        task, _ = self._submitter.market.post(
            terms(self._stage.training, self._parameters, self._amounts, number)
        )
        self._books.lock(SUBMITTER, ESCROW, self._amounts.escrow(self._parameters))
        self._stage.booked(f"task {task} posted")
        return task

    def _bid(self, task: int) -> tuple[int, int] | None:
        """Make the bids in order. If the scenario's bids are late, each comes in the last second of bidding;
        otherwise all come early. Return the winner's account and price, or None if nobody bids.
        """
        made = self._bids()
        if not self._stage.scenario.late:
            made = made[-_MOST_BIDS:]
        for number, bid in enumerate(made):
            bidder = self._bidder(bid.solver)
            if number:
                self._books.release(self._bidder(made[number - 1].solver), STAKE, self._amounts.delay_penalty)
                if not self._stage.scenario.exact:
                    higher = self._refusal(task, bid.price + 1)
                    self._stage.same("a bid that is one unit higher", "BidTooHigh", higher)
            if self._stage.scenario.late:
                self._stage.devnet.next_block_at(self._referee.market.task(task).bids_until)
            self._stage.clients[bidder].market.bid(task, bid.price)
            self._books.lock(bidder, STAKE, self._amounts.delay_penalty)
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
        """The name of the contract's error if the referee, which has no stake, bids this price. Empty if the
        contract does not refuse the bid.
        """
        try:
            self._referee.market.read_all("bid", task, price)
        except Reverted as error:
            return error.name
        return ""

    def _bids(self) -> list[Bid]:
        """The bids of the engine's solvers, with prices in chain units. With `exact` amounts, the prices are
        the engine's, so they are multiples of its unit. Otherwise, each price is lower than the one before by
        the contract's least undercut.
        """
        most, late = self._parameters.budget, self._stage.scenario.late
        asks = [int(ask) if ask <= most else NO_ASK for ask in self._shadow.asks[:, 0]]
        if self._stage.scenario.exact:
            return [Bid(solver, price * SCALE) for solver, price in bids(asks, most, late=late)]
        exact = [self._amounts.price(ask, number) for number, ask in enumerate(asks)]
        return bids(exact, self._amounts.budget, late=late)

    def _bidder(self, number: int) -> int:
        """The account that made ask `number`. The solvers' asks come first; the last ask is the submitter's own."""
        return FIRST_SOLVER + number if number < self._stage.scenario.population.solver_count else SUBMITTER

    def _expire(self, task: int, solver: int) -> str:
        self._stage.until(self._submitter.market.task(task).train_until)
        self._referee.market.expire(task)
        self._books.close_escrow()
        self._books.release(solver, STAKE, self._amounts.delay_penalty)
        self._books.expired(solver)
        self._stage.halved(self._amounts.delay_penalty, SUBMITTER)
        return self._ended(task, "expired")

    def _submit(self, task: int, solver: int, trained: Trained) -> None:
        roots = trained.roots
        tree = ProgressTree(list(roots)).at(len(roots))
        last = len(roots) - 1
        wanted = self._stage.scenario.drawn
        if wanted:
            time = submission(self._referee, task, tree.root, self._parameters.segments, wanted)
            self._stage.devnet.next_block_at(time)
        self._stage.clients[solver].market.submit(
            task, tree.root, tree.inclusion_path(0), [], roots[last], tree.inclusion_path(last)
        )
        self._books.release(solver, STAKE, self._amounts.delay_penalty)
        self._books.lock(solver, STAKE, self._amounts.stake)
        self._stage.booked(f"task {task}: submitted, {trained.false} of {last} segments false")

    # ------------------------------------------------------------------ ends

    def _stall(self, task: Submitted) -> None:
        """Let the stall period pass. It starts when the first draw is executed. If the task was not drawn, it
        starts at the beacon round that was due for the draw.
        """
        audit, parameters = self._referee.audit.audit(task.number), self._referee.market.parameters()
        since = audit.drawn_at or self._referee.deployment.beacon.time_of(audit.round)
        self._stage.until(since + parameters.stall_period)
        self._referee.market.stall(task.number)
        self._stage.booked(f"task {task.number}: stalled")

    def _close(self, task: Submitted, attested: list[int], end: str) -> str:
        """Let the challenge window pass; then pay the seats whose accounts are in `attested`. The solver is
        paid the price if the task settled, half of it if the task was never drawn, and otherwise nothing.
        """
        drawn = bool(task.auditing.accounts)
        market = self._referee.market
        window = market.task(task.number).challenge_until, self._referee.looks.answers_until(task.number)
        self._stage.until(max(window))
        {"settled": market.settle, "void": market.void, "stalled": market.close_stalled}[end](task.number)
        self._books.close_escrow(owed=task.auditing.owed)
        self._books.release(task.solver, STAKE, self._amounts.stake)
        self._books.paid_seats(attested)
        if end == "settled":
            self._books.paid_solver(task.solver, task.price)
        if not drawn:
            self._books.closed_undrawn(task.solver, task.price)
            self._stage.halved(task.price, task.solver, SUBMITTER)
        return self._ended(task.number, end)

    def _ended(self, task: int, how: str) -> str:
        self._stage.booked(f"task {task}: {how}")
        return how
