"""How a submitted task ends, and what that costs and brings everybody."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.engine.books import Books
from sim.engine.prices import Prices
from sim.engine.streams import Streams
from sim.engine.task import Checks, Task
from sim.mechanism import booking
from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.attestation import attested, satisfied
from sim.mechanism.booking import SUBMITTER
from sim.mechanism.forcing import flagged, settle_flags
from sim.parameters import MarketParameters


class Games(NamedTuple):
    """All challenges of a task, by challenger: seats first, then bystanders, then the submitter; (n, rows) each."""

    accounts: Indices
    opened: Amounts
    won: Flags


class Closer:
    """Books the ends of a round's tasks."""

    def __init__(
        self,
        parameters: MarketParameters,
        books: Books,
        prices: Prices,
        luck: Streams,
        *,
        preempted: bool = False,
    ) -> None:
        """`preempted`: the submitter takes the place of every challenger that wins (`agents.submitters.Insider`)."""
        self.parameters = parameters
        self.preempted = preempted
        self.books = books
        self.prices = prices
        self.luck = luck

    def end(self, task: Task, checks: Checks) -> None:
        """Convicted, void or settled; before that the drawer is paid, after it every lost challenge."""
        books, tally = self.books, self.books.tally
        submitted = task.live.nonzero()[0]
        booking.pay_drawer(books.ledger, submitted, self.parameters.draw_fee)
        wrong = task.wrong
        tally.false += wrong
        seats = books.verifiers.start + checks.drawn.verifiers
        self._pay_for_checks(task, checks, seats)
        games = self.games(task, checks, seats)
        convicted: Flags = np.logical_or.reduce(games.won, axis=0)
        self._convict(task, games, convicted)
        goes_on = task.live & ~convicted
        self._dismiss(task, games, goes_on)
        # A task that is over counts as complete: nobody asks.
        done = attested(checks.drawn, checks.check.attests | ~goes_on)
        enough = satisfied(checks.drawn, done, self.parameters.matches)
        tally.void += goes_on & ~enough
        self._settle(task, checks, seats, goes_on & enough, wrong)
        if self.parameters.forced_error_rate:
            self._force(checks, seats, goes_on)

    # ------------------------------------------------------------------ challenges

    def games(self, task: Task, checks: Checks, seats: Indices) -> Games:
        """Who challenges knowing what is wrong, or a solver that serves nothing or is silent, wins."""
        check = checks.check
        lost_by_silence = ~task.work.serves
        if self.parameters.silence_rate:
            # It is silent in each game by itself; the first challenger of all is rewarded, whichever game it is.
            silent = 1 - (1 - self.parameters.silence_rate) ** self._opened(task, checks)
            lost_by_silence = lost_by_silence | (self.luck.silence.uniform() < silent)
        won = check.challenges & ((checks.hit & check.replays) | lost_by_silence)
        games = Games(seats, check.challenges, won)
        if checks.looks is not None:
            looks = checks.looks
            won = (looks.games > 0) & ((looks.hit & looks.replays) | lost_by_silence)
            games = _joined(games, np.broadcast_to(self._bystanders(), won.shape), looks.games, won)
        if task.own_games is not None:
            opened = (task.own_games * task.live)[None]
            games = _joined(games, np.full_like(opened, SUBMITTER), opened, (opened > 0) & lost_by_silence)
        return games

    def _opened(self, task: Task, checks: Checks) -> Amounts:
        """How many games each task has, (rows,)."""
        opened = checks.check.challenges.sum(axis=0)
        if checks.looks is not None:
            opened = opened + checks.looks.games.sum(axis=0)
        if task.own_games is not None:
            opened = opened + task.own_games * task.live
        return np.asarray(opened)

    def _convict(self, task: Task, games: Games, ends: Flags) -> None:
        """The first that wins earns the reward; the bonds of all return."""
        parameters, rows = self.parameters, ends.nonzero()[0]
        first = games.won.take(rows, axis=1).argmax(axis=0)
        challengers = games.accounts[first, rows]
        if self.preempted:
            challengers = np.full_like(challengers, SUBMITTER)
            self.books.spend(rows, challengers, self.prices.gas[rows] * parameters.gas_dispute)
        booking.convict(
            self.books.ledger,
            rows,
            task.solver[rows],
            challengers,
            stake=parameters.stake,
            reward=parameters.reward_cap,
            restitution=parameters.restitution,
        )
        self.books.tally.convicted += ends
        self._defend(task, rows)

    def _dismiss(self, task: Task, games: Games, ends: Flags) -> None:
        """Every game of a task that is not convicted is lost, each with its bond."""
        opened = games.opened * ends
        while opened.any():
            for challengers, mine in zip(games.accounts, opened):
                rows = mine.nonzero()[0]
                booking.dismiss(
                    self.books.ledger,
                    rows,
                    task.solver[rows],
                    challengers[rows],
                    self.parameters.challenge_bond,
                )
                self.books.tally.dismissed[rows] += 1
                self._defend(task, rows)
            opened = np.maximum(opened.astype(np.int64) - 1, 0)

    def _defend(self, task: Task, rows: Indices) -> None:
        """The solver's gas of one game."""
        self.books.spend(rows, task.solver[rows], self.prices.gas[rows] * self.parameters.gas_defence)

    # ------------------------------------------------------------------ attestations

    def _settle(self, task: Task, checks: Checks, seats: Indices, ends: Flags, wrong: Flags) -> None:
        parameters, tally, rows = self.parameters, self.books.tally, ends.nonzero()[0]
        counts = (checks.drawn.duties * checks.check.attests).take(rows, axis=1).astype(np.int64)
        split = booking.settle(
            self.books.ledger,
            rows,
            task.solver[rows],
            seats.take(rows, axis=1),
            counts,
            price=task.price[rows],
            reserve=parameters.fees,
            fee=parameters.audit_fee,
        )
        tally.settled += ends
        tally.escaped += ends & wrong
        tally.paid[rows] += split.to_solver
        tally.fees[rows] += split.each * counts.sum(axis=0)
        gained = (ends & wrong & task.work.knows).nonzero()[0]
        self.books.spend(gained, task.solver[gained], np.full(gained.shape, -float(parameters.gain)))

    def _force(self, checks: Checks, seats: Indices, ends: Flags) -> None:
        parameters, rows = self.parameters, ends.nonzero()[0]
        due = checks.drawn.due
        flags = flagged(self.luck.flags.uniform(*due.shape[:2]), due, parameters.forced_error_rate)
        settle_flags(
            self.books.ledger,
            rows,
            seats.take(rows, axis=1),
            flags.take(rows, axis=2),
            checks.check.replays.take(rows, axis=1),
            checks.check.attests.take(rows, axis=1),
            jackpot=parameters.jackpot,
            penalty=parameters.stake_unit,
        )

    def _bystanders(self) -> Indices:
        return np.arange(self.books.bystanders.start, self.books.bystanders.stop)[:, None]

    def _pay_for_checks(self, task: Task, checks: Checks, seats: Indices) -> None:
        """Replays, gas of attestations and of challenges."""
        parameters, check, books = self.parameters, checks.check, self.books
        replay = parameters.replay_cost * parameters.training_cost / parameters.segments * self.prices.work
        spent = check.replays * replay
        spent += check.attests * (parameters.gas_attest * self.prices.gas)
        spent *= checks.drawn.duties
        dispute = parameters.gas_dispute * self.prices.gas
        if check.challenges.any():
            spent += check.challenges * dispute
        books.spend(books.every, seats, spent)
        if checks.looks is not None:
            looks = checks.looks
            books.spend(books.every, self._bystanders(), looks.replays * replay + looks.games * dispute)
        if task.own_games is not None:
            own = task.own_games * task.live
            books.spend(books.every, np.full_like(own, SUBMITTER), own * dispute)


def _joined(games: Games, accounts: Indices, opened: Amounts, won: Flags) -> Games:
    more = Games(accounts, opened, won)
    return Games(*(np.concatenate(pair) for pair in zip(games, more)))
