"""One block of markets: its accounts, its luck, and one round of it: post, bid, train, draw, check, end.

Rows are independent runs of the same setting. A round is one task's whole life; its clocks are not played, only how it
ends. sim/ASSUMPTIONS.md names what is left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.agents.population import Population
from sim.agents.solvers import Bidding, Won, Work, costs_of
from sim.agents.verifiers import Check, Seats
from sim.engine.streams import Streams
from sim.engine.tally import Tally
from sim.mechanism import booking
from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.attestation import attested, satisfied
from sim.mechanism.auctions import NO_ASK, Assignment, Auction, first_price
from sim.mechanism.booking import FIRST_SOLVER, SUBMITTER
from sim.mechanism.draw import Draw, draw
from sim.mechanism.ledger import Ledger
from sim.setting import Setting
from sim.units import TOKEN


class _Task(NamedTuple):
    """One round's task in the rows where it was assigned: `solver` and `seats` are accounts."""

    rows: Indices
    solver: Indices
    price: Amounts
    work: Work


class Market:
    """`rows` markets. `rounds` is how many rounds the first deposits must last."""

    def __init__(
        self,
        setting: Setting,
        population: Population,
        rows: int,
        rounds: int,
        luck: Streams,
        auction: Auction = first_price,
    ) -> None:
        self.setting = setting
        self.population = population
        self.rows = rows
        self.luck = luck
        self.auction = auction
        self.first_verifier = FIRST_SOLVER + population.solver_count
        self.ledger = self._open(rounds)
        self.outside = np.zeros_like(self.ledger.free)
        """Costs and gains outside of the vault, (rows, accounts) token units."""
        self.tally = Tally.empty(rows)
        self.gas_price = np.full(rows, setting.gas_price * TOKEN)
        spread = setting.device_spread
        devices = np.exp(spread * luck.devices.standard_normal((rows, population.solver_count)))
        self.costs = costs_of(setting, devices)
        self._kinds = np.repeat(
            np.arange(len(population.verifiers)), [group.size for group in population.verifiers]
        )

    def _open(self, rounds: int) -> Ledger:
        setting, people = self.setting, self.population
        deposits = np.zeros((self.rows, self.first_verifier + people.verifier_count), dtype=np.int64)
        deposits[:, SUBMITTER] = rounds * (setting.budget + setting.fees + setting.draw_fee)
        # Nobody is ruined within the run: what a strategy earns on average is asked, not who is left.
        deposits[:, FIRST_SOLVER : self.first_verifier] = rounds * setting.stake
        deposits[:, self.first_verifier :] = setting.stake_unit + rounds * setting.challenge_bond
        ledger = Ledger(deposits)
        ledger.lock(slice(self.first_verifier, None), setting.stake_unit)
        return ledger

    # ------------------------------------------------------------------ a round

    def play(self) -> None:
        """One task in every market."""
        self._move_prices()
        task = self._train(self._assign())
        drawn, check = self._check(task)
        self._end(task, drawn, check)

    def _move_prices(self) -> None:
        spread = self.setting.gas_volatility
        if spread:
            self.gas_price *= np.exp(spread * self.luck.prices.standard_normal(self.rows) - spread**2 / 2)

    def _assign(self) -> Assignment:
        setting = self.setting
        luck = self.luck.bids.random(self.costs.shape) * 2
        asks = np.empty_like(self.costs)
        for group in self.population.solvers:
            mine = group.members
            wishes = group.strategy.bid(Bidding(setting, self.costs[:, mine], luck[:, mine]))
            asks[:, mine] = np.ceil(wishes)
        asks[asks > setting.budget] = NO_ASK
        asks[self.ledger.free[:, FIRST_SOLVER : self.first_verifier] < setting.stake] = NO_ASK
        assignment = self.auction(asks, np.full(self.rows, setting.budget))
        self.tally.unsold += ~assignment.sold
        return assignment

    def _train(self, assigned: Assignment) -> _Task:
        """Every winner works; those that miss the deadline are gone from the task that is returned."""
        setting = self.setting
        luck, accident = self.luck.work.random(self.rows), self.luck.accidents.random(self.rows)
        work = Work.idle(self.rows)
        for group in self.population.solvers:
            mine = np.flatnonzero((assigned.winner >= group.first) & (assigned.winner < group.members.stop))
            for whole, part in zip(work, group.strategy.work(Won(setting, luck[mine]))):
                whole[mine] = part
        rows = np.flatnonzero(assigned.sold)
        solver = FIRST_SOLVER + assigned.winner[rows]
        self.outside[rows, solver] -= np.rint(
            self.costs[rows, assigned.winner[rows]] * work.effort[rows] + self._gas(rows, setting.gas_task)
        ).astype(np.int64)
        submits = work.submits[rows] & (accident[rows] >= setting.crash_rate)
        late = rows[~submits]
        booking.expire(self.ledger, late, solver[~submits], setting.delay_penalty)
        self.tally.expired[late] += 1
        kept = rows[submits]
        return _Task(kept, solver[submits], assigned.price[kept], work.at(kept))

    def _check(self, task: _Task) -> tuple[Draw, Check]:
        """Draws are made, and used up, in every row, so that a variant's luck stays in step."""
        setting = self.setting
        everywhere = draw(
            self.luck.draws,
            self.rows,
            self.population.verifier_count,
            setting.verifiers,
            setting.segments,
            setting.segments_per_verifier,
        )
        luck = self.luck.checks.random((self.rows, setting.verifiers, 2))[task.rows]
        drawn = everywhere.at(task.rows)
        hit: Flags = np.logical_or.reduce(drawn.segments <= task.work.false[:, None, None], axis=2)
        served = np.repeat(task.work.serves[:, None], setting.verifiers, axis=1)
        check = Check.nothing(hit.shape)
        kinds = self._kinds[drawn.verifiers]
        # Whoever copies comes last, when there is something to copy.
        for number, group in sorted(
            enumerate(self.population.verifiers), key=lambda item: item[1].strategy.watches
        ):
            mine = kinds == number
            others = np.broadcast_to(check.attests.any(axis=1)[:, None], mine.shape)[mine]
            seats = Seats(setting, served[mine], hit[mine], others, luck[:, :, 0][mine])
            for whole, part in zip(check, group.strategy.check(seats)):
                whole[mine] = part
        online = luck[:, :, 1] >= setting.downtime
        return drawn, Check(check.replays & online, check.attests & online, check.challenges & online)

    def _end(self, task: _Task, drawn: Draw, check: Check) -> None:
        setting, tally = self.setting, self.tally
        booking.pay_drawer(self.ledger, task.rows, setting.draw_fee)
        self._pay_for_checks(task, drawn, check)
        wrong = (task.work.false > 0) | ~task.work.serves
        tally.false[task.rows] += wrong
        challenged = check.challenges.any(axis=1)
        accounts = self.first_verifier + drawn.verifiers
        self._convict(task, wrong & challenged, accounts, check)
        self._dismiss(task, ~wrong & challenged, accounts, check)
        done = attested(drawn, check.attests)
        enough = satisfied(drawn, done, setting.matches)
        goes_on = ~(wrong & challenged)
        tally.void[task.rows] += goes_on & ~enough
        self._settle(task, goes_on & enough, accounts, done, wrong)

    # ------------------------------------------------------------------ ends

    def _convict(self, task: _Task, ends: Flags, accounts: Indices, check: Check) -> None:
        """The first seat that challenges earns the reward; all that challenge pay their own gas."""
        setting, rows = self.setting, task.rows[ends]
        first = check.challenges[ends].argmax(axis=1)
        challengers = np.take_along_axis(accounts[ends], first[:, None], axis=1)[:, 0]
        booking.convict(
            self.ledger,
            rows,
            task.solver[ends],
            challengers,
            stake=setting.stake,
            reward=setting.reward_cap,
            restitution=setting.restitution,
        )
        self.tally.convicted[rows] += 1

    def _dismiss(self, task: _Task, ends: Flags, accounts: Indices, check: Check) -> None:
        for seat in range(accounts.shape[1]):
            mine = ends & check.challenges[:, seat]
            rows = task.rows[mine]
            booking.dismiss(
                self.ledger, rows, task.solver[mine], accounts[mine, seat], self.setting.challenge_bond
            )
            self.tally.dismissed[rows] += 1

    def _settle(self, task: _Task, ends: Flags, accounts: Indices, done: Flags, wrong: Flags) -> None:
        setting, rows, tally = self.setting, task.rows[ends], self.tally
        split = booking.settle(
            self.ledger,
            rows,
            task.solver[ends],
            accounts[ends],
            done[ends],
            price=task.price[ends],
            reserve=setting.fees,
            fee=setting.audit_fee,
        )
        tally.settled[rows] += 1
        tally.escaped[rows] += wrong[ends]
        tally.paid[rows] += split.to_solver
        tally.fees[rows] += split.each * done[ends].sum(axis=(1, 2))
        gained = (wrong & task.work.knows)[ends]
        self.outside[rows[gained], task.solver[ends][gained]] += setting.gain

    def _pay_for_checks(self, task: _Task, drawn: Draw, check: Check) -> None:
        """Replays, gas of attestations, gas of both sides of a dispute."""
        setting = self.setting
        duties = drawn.due.sum(axis=2)
        replayed = duties * check.replays
        cost = replayed * (setting.replay_cost * setting.training_cost / setting.segments)
        gas = duties * check.attests * setting.gas_attest + check.challenges * setting.gas_dispute
        spent = np.rint(cost + gas * self.gas_price[task.rows, None]).astype(np.int64)
        for seat in range(spent.shape[1]):
            self.outside[task.rows, self.first_verifier + drawn.verifiers[:, seat]] -= spent[:, seat]
        disputed = check.challenges.any(axis=1)
        rows, solver = task.rows[disputed], task.solver[disputed]
        self.outside[rows, solver] -= np.rint(self._gas(rows, setting.gas_defence)).astype(np.int64)

    def _gas(self, rows: Indices, amount: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        price: np.ndarray[tuple[int], np.dtype[np.float64]] = self.gas_price[rows] * amount
        return price

    # ------------------------------------------------------------------ accounts

    def profits(self) -> Amounts:
        """What everybody has more than at first, outside included, (rows, accounts) token units."""
        return self.ledger.gains() + self.outside
