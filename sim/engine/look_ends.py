"""Books the costs and payments of second looks; `sim.engine.looking` decides their outcomes."""

from __future__ import annotations

import numpy as np

from sim.engine.books import Books
from sim.engine.looking import LOOK_TRIES, Attempt, Level, SecondLooks
from sim.engine.task import Task
from sim.mechanism import booking
from sim.mechanism.arrays import Flags, Indices
from sim.parameters import MarketParameters


class LookCloser:
    """Books a round's looks, in all rows."""

    def __init__(self, parameters: MarketParameters, books: Books) -> None:
        self._parameters = parameters
        self._books = books

    def end(self, task: Task, looks: SecondLooks) -> None:
        """Book the looks level by level. A look is paid if its account acts, however the task ends."""
        for level in looks.levels:
            self._draw(level.drawn)
            for number, attempt in enumerate(level.attempts):
                self._pay(task, attempt, again=number + 1 < LOOK_TRIES)
            self._answer(task, level)

    def _draw(self, drawn: Flags) -> None:
        """Take the fee for a level's first draw from the escrow."""
        rows = drawn.nonzero()[0]
        fee = self._parameters.draw_fee
        booking.pay_draws(self._books.ledger, rows, fee, np.ones(rows.shape, dtype=np.int64))

    def _pay(self, task: Task, attempt: Attempt, *, again: bool) -> None:
        """Book the fees, the work and the gas of lookers that acted. A silent looker loses what a silent seat
        loses.
        """
        parameters, books, prices = self._parameters, self._books, task.prices
        accounts, check, acts = self._seats(attempt.accounts), attempt.check, attempt.acts
        booking.silence(
            books.ledger,
            books.every,
            accounts,
            attempt.silent,
            fee=parameters.seat_fee,
            draw_fee=parameters.draw_fee,
            again=again,
        )
        booking.pay_seats(books.ledger, books.every, accounts, acts, parameters.audit_fee)
        replay = parameters.replay_cost * parameters.training_cost / parameters.segments * prices.work
        spent = check.replays * replay + acts * (parameters.gas_attest * prices.gas)
        books.spend(books.every, accounts, spent + check.challenges * (parameters.gas_dispute * prices.gas))
        books.tally.looks += acts.sum(axis=0)
        books.tally.silent += attempt.silent.sum(axis=0)

    def _answer(self, task: Task, level: Level) -> None:
        """Book the reveals and the answers. A target that does not reveal, or cannot answer an accusation,
        loses its lock. Every accusation began as a game: the looker and the solver pay gas, and the looker
        pays a game's cost to the solver. If the target answers, it pays the gas of a second reveal and
        receives a game's cost from the looker.
        """
        parameters, books, gas = self._parameters, self._books, task.prices.gas
        targets, lookers = self._seats(level.targets), self._seats(level.lookers)
        lost = level.accused | level.hidden
        accusations, cost = level.accused | level.answered, parameters.game_cost
        booking.take_locks(books.ledger, books.every, targets, lookers, lost, parameters.lock)
        solvers = np.broadcast_to(task.solver, lookers.shape)
        booking.pay_dropped(books.ledger, books.every, lookers, solvers, accusations, cost)
        booking.pay_answered(books.ledger, books.every, lookers, targets, level.answered, cost)
        moves = level.revealed.astype(np.int64) + level.answered
        books.spend(books.every, targets, moves * (parameters.gas_reveal * gas))
        books.spend(books.every, lookers, accusations * (parameters.gas_accuse * gas))
        books.spend(books.every, solvers, accusations * (parameters.gas_defence * gas))
        books.tally.caught += lost.sum(axis=0)

    def _seats(self, accounts: Indices) -> Indices:
        """Ledger accounts of verifiers. The account of NOBODY is arbitrary; nothing is booked for it."""
        return np.asarray(self._books.verifiers.start + np.maximum(accounts, 0))
