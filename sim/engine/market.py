"""One block of markets: its accounts, its random numbers, and its rounds.

Rows are independent runs with the same parameters. A round is the whole life of one task: post, bid, train,
draw, check, end. Clocks are not simulated, only outcomes. sim/ASSUMPTIONS.md lists what is left out.
"""

from __future__ import annotations

import numpy as np

from sim.agents.population import HONEST_SUBMITTER, Population, spread
from sim.agents.solvers import Bidding, Won, Work
from sim.agents.submitters import Actions, Posting
from sim.engine.books import Books
from sim.engine.checking import Checker
from sim.engine.ending import Closer
from sim.engine.prices import Prices
from sim.engine.streams import Streams
from sim.engine.task import Task
from sim.mechanism import booking
from sim.mechanism.arrays import Amounts
from sim.mechanism.auctions import NO_ASK, Assignment, Auction, descending
from sim.mechanism.booking import FIRST_SOLVER, SUBMITTER
from sim.parameters import MarketParameters


class Market:
    """`rows` markets. Their initial deposits last for `rounds` rounds."""

    def __init__(
        self,
        parameters: MarketParameters,
        population: Population,
        rows: int,
        rounds: int,
        random: Streams,
        auction: Auction = descending,
    ) -> None:
        self.parameters = parameters
        self.population = population
        self.random = random
        self.auction = auction
        self.books = Books(parameters, population, rows, rounds)
        self.prices = Prices(parameters, random, rows)
        self.checker = Checker(parameters, population, random)
        self.closer = Closer(parameters, self.books, self.prices, preempted=population.submitter.preempts)
        devices = np.exp(parameters.device_spread * random.devices.normal(population.solver_count))
        if parameters.device_range:
            devices *= 1 + parameters.device_range * (random.devices.uniform(population.solver_count) - 0.5)
        self.costs = np.rint(parameters.training_cost * devices)
        """Each solver's honest costs at initial prices, in whole token units. The shape is (solvers, rows)."""
        self._kinds = spread(population.solvers, range(len(population.solvers)))
        self._honest_submitter = population.submitter == HONEST_SUBMITTER

    def play(self) -> None:
        """Play one task in every market in which a task arrives."""
        task = self.begin()
        self.closer.end(task, self.checker.check(task))

    def begin(self) -> Task:
        """Move prices; post, sell and train tasks."""
        self.prices.move()
        actions = self._post()
        costs = self.prices.costs(self.costs)
        return self._train(self._assign(costs, actions), costs, actions)

    def _post(self) -> Actions | None:
        """The submitter's actions besides paying; None if it is honest."""
        if self._honest_submitter:
            return None
        return self.population.submitter.act(Posting(self.parameters, self.random.submitters.uniform()))

    def _assign(self, costs: Amounts, actions: Actions | None) -> Assignment:
        parameters, tally = self.parameters, self.books.tally
        uniform = self.random.bids.uniform(len(costs))
        uniform *= 2
        asks = np.empty_like(costs)
        for group in self.population.solvers:
            mine = group.members
            np.ceil(group.strategy.bid(Bidding(parameters, costs[mine], uniform[mine])), out=asks[mine])
        if parameters.solver_capital:
            left = self.books.ledger.free[self.books.solvers] - self.books.stakes.locked
            asks[left < parameters.stake] = NO_ASK
        if actions:
            asks = np.concatenate([asks, np.ceil(actions.asks)[None]])
        sold, winner, price = self.auction(asks, np.full(len(self.books.every), parameters.budget))
        posted = np.ones_like(sold)
        if parameters.arrival_rate < 1:
            posted = self.random.arrivals.uniform() < parameters.arrival_rate
        tally.posted += posted
        tally.unsold += posted & ~sold
        return Assignment(sold & posted, winner, price.astype(np.int64))

    def _train(self, assigned: Assignment, costs: Amounts, actions: Actions | None) -> Task:
        """Have every winner work, and meet or miss its deadline."""
        parameters, books = self.parameters, self.books
        sold, winner, price = assigned
        solver = FIRST_SOLVER + winner
        able = sold
        if actions:
            # The submitter's own bid comes last; if it wins, nobody trains.
            itself = winner == len(costs)
            solver[itself] = SUBMITTER
            winner = np.where(itself, 0, winner)
            able = sold & ~itself & ~actions.gone
        work = self._work(winner)
        effort = costs.reshape(-1).take(winner * costs.shape[1] + books.every) * work.effort * able
        books.spend(books.every, solver, effort + self.prices.gas * parameters.gas_task * sold)
        if parameters.capital_rate:
            self.closer.locks.trained(solver, sold)
        live = able & work.submits
        if parameters.crash_rate:
            live &= self.random.accidents.uniform() >= parameters.crash_rate
        late = (sold & ~live).nonzero()[0]
        booking.expire(books.ledger, late, solver[late], parameters.delay_penalty)
        books.tally.expired[late] += 1
        drawn = np.ones_like(live)
        if parameters.beacon_stops:
            drawn = self.random.beacon.uniform() >= parameters.beacon_stops
        return Task(live, drawn, solver, price, work, actions.games if actions else None, self.prices)

    def _work(self, winner: Amounts) -> Work:
        view = Won(self.parameters, self.random.work.uniform())
        works = [group.strategy.work(view) for group in self.population.solvers]
        return Work.of_kinds(works, self._kinds.take(winner))
