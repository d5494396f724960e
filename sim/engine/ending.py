"""The end of a submitted task, and what everybody pays and earns."""

from __future__ import annotations

import numpy as np

from sim.engine.books import Books
from sim.engine.capital import Locks
from sim.engine.look_ends import LookCloser
from sim.engine.prices import Prices
from sim.engine.task import NO_SEAT, Checks, Task
from sim.mechanism import booking
from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.bonds import bonds_of
from sim.mechanism.booking import SUBMITTER
from sim.mechanism.claims import fees_owed
from sim.parameters import MarketParameters


class Closer:
    """Books the ends of a round's tasks."""

    def __init__(
        self, parameters: MarketParameters, books: Books, prices: Prices, *, preempted: bool = False
    ) -> None:
        """`preempted`: the submitter replaces every challenger that wins (`agents.submitters.Insider`)."""
        self.parameters = parameters
        self.preempted = preempted
        self.books = books
        self.prices = prices
        self.locks = Locks(parameters, books)
        self._looks = LookCloser(parameters, books)

    def end(self, task: Task, checks: Checks) -> None:
        """Pay draws and punish silent accounts; then convict, settle, void, or close after a stall."""
        tally, convicted = self.books.tally, checks.convicted
        tally.false += task.wrong
        self._draws(task, checks)
        self._pay_for_checks(task, checks)
        if checks.second is not None:
            self._looks.end(task, checks.second)
        if self.parameters.capital_rate:
            self.locks.audited(task, checks, self._all_bonds(checks))
        self.books.stakes.add(task.solver, task.live & ~convicted)
        self._convict(task, checks, convicted)
        left = task.live & ~convicted
        self._dismiss(task, checks)
        self._forfeit(checks)
        settled = left & task.drawn & checks.full
        stalled = left & checks.stalled
        tally.settled += settled
        tally.stalled += stalled
        tally.void += left & ~settled & ~stalled
        self._pay_seats(checks, left)
        self._pay_solvers(task, settled, stalled & ~task.drawn)

    # ------------------------------------------------------------------ draws

    def _draws(self, task: Task, checks: Checks) -> None:
        """Pay for each draw, from the escrow or a silent account. If the beacon stops, the first draw is
        executed after the end of the task, and is paid too.
        """
        parameters, books = self.parameters, self.books
        submitted = task.live.nonzero()[0]
        booking.pay_draws(books.ledger, submitted, parameters.draw_fee, checks.escrow_draws.take(submitted))
        for rows, accounts, silent in checks.silences:
            seats = self._seats(accounts)
            booking.silence(
                books.ledger,
                rows,
                seats,
                silent,
                fee=parameters.seat_fee,
                draw_fee=parameters.draw_fee,
            )
            books.tally.silent[rows] += silent.sum(axis=0)
            books.tally.redrawn[rows] += 1

    # ------------------------------------------------------------------ challenges

    def _convict(self, task: Task, checks: Checks, ends: Flags) -> None:
        """Pay the reward to the first winner and the restitution to the submitter, and pay seats and lookers
        what they are owed.
        """
        parameters, rows = self.parameters, ends.nonzero()[0]
        if not rows.size:
            return
        first = checks.first[rows]
        challengers = checks.games.accounts[first, rows]
        if self.preempted:
            challengers = np.full_like(challengers, SUBMITTER)
            spent = self.prices.gas[rows] * parameters.gas_dispute + self.locks.bond * parameters.bond
            self.books.spend(rows, challengers, spent)
        reward = np.where(checks.late[rows], parameters.retrain_reward, parameters.reward)
        booking.convict(
            self.books.ledger,
            rows,
            task.solver[rows],
            challengers,
            reward=reward,
            restitution=parameters.restitution,
        )
        self._compensate(task, checks, rows, parameters.stake - reward - parameters.restitution)
        self.books.tally.convicted += ends
        self._defend(task, rows)

    def _compensate(self, task: Task, checks: Checks, rows: Indices, left: Amounts) -> None:
        """Pay seats and lookers from the rest of the stake, and burn the remainder.

        A seat that opened a game that was not dismissed gets a game's cost and the fee. Any other seat gets
        the fee if it is owed the fee. A looker that opened a game gets a game's cost.
        """
        parameters, ledger, solvers = self.parameters, self.books.ledger, task.solver[rows]
        cost, fee = parameters.game_cost, parameters.seat_fee
        seats = self._seats(checks.accounts[:, rows])
        spoke = checks.spoke(self._seats)[:, rows]
        convicted = checks.named[checks.first[rows], rows]
        owed = fees_owed(checks.paid[:, rows], spoke, checks.segments[:, :, rows], convicted)
        if checks.second is not None:
            # A looker has already had its fee.
            for level in checks.second.levels:
                lookers, games = self._seats(level.lookers[:, rows]), level.opened[:, rows]
                booking.compensate(ledger, rows, solvers, lookers, games, cost=cost, fee=0)
                left = left - cost * games.sum(axis=0)
        booking.compensate(ledger, rows, solvers, seats, spoke, cost=cost, fee=fee)
        booking.pay_fees(ledger, rows, solvers, seats, owed, fee=fee)
        rest = left - (cost + fee) * spoke.sum(axis=0) - fee * owed.sum(axis=0)
        booking.burn_rest(ledger, rows, solvers, rest)

    def _dismiss(self, task: Task, checks: Checks) -> None:
        """Book lost games and their bonds. A game that was lost before the task stalled counts too, even if
        the solver is convicted after the stall.
        """
        games = checks.games
        opened = games.opened * (checks.lost & task.live)
        for number in range(int(opened.max(initial=0))):
            for line, challengers in enumerate(games.accounts):
                rows = (opened[line] > number).nonzero()[0]
                booking.dismiss(
                    self.books.ledger,
                    rows,
                    task.solver[rows],
                    challengers[rows],
                    self._bonds(checks, line, number)[rows],
                )
                self.books.tally.dismissed[rows] += 1
                self._defend(task, rows)

    def _forfeit(self, checks: Checks) -> None:
        """Unopened commitments lose their bonds, however the task ends."""
        games = checks.games
        for number in range(int(games.unopened.max(initial=0))):
            for line, challengers in enumerate(games.accounts):
                rows = (games.unopened[line] > number).nonzero()[0]
                bonds = self._bonds(checks, line, number, first=games.opened[line])[rows]
                booking.forfeit(self.books.ledger, rows, challengers[rows], bonds)

    def _bonds(self, checks: Checks, line: int, number: int, first: Amounts | int = 0) -> Amounts:
        """The bond of one commitment of a party in each row, (rows,). `line` is the party's place in the
        games. The party's commitments are counted from 0, and this is number `first` + `number`.
        """
        games, bond = checks.games, self.parameters.bond
        if games.seats[line] != NO_SEAT or line >= checks.early:
            return np.full(len(self.books.every), bond)
        return bonds_of(bond, games.held[line] + first + number)

    def _all_bonds(self, checks: Checks) -> Amounts:
        """Total bonds of each party's commitments, (n, rows)."""
        games = checks.games
        made = games.opened + games.unopened
        bonds = np.zeros_like(made)
        for number in range(int(made.max(initial=0))):
            for line, commitments in enumerate(made):
                bonds[line] += (commitments > number) * self._bonds(checks, line, number)
        return bonds

    def _defend(self, task: Task, rows: Indices) -> None:
        """Book the solver's gas for one game."""
        self.books.spend(rows, task.solver[rows], self.prices.gas[rows] * self.parameters.gas_defence)

    # ------------------------------------------------------------------ payments

    def _pay_seats(self, checks: Checks, left: Flags) -> None:
        """Pay attested seats their fee. A seat gets none if the solver is convicted or the seat has lost its lock."""
        rows, fee = left.nonzero()[0], self.parameters.seat_fee
        attested = checks.paid.take(rows, axis=1)
        seats = self._seats(checks.accounts.take(rows, axis=1))
        booking.pay_seats(self.books.ledger, rows, seats, attested, fee)
        self.books.tally.fees[rows] += fee * attested.sum(axis=0)

    def _pay_solvers(self, task: Task, settled: Flags, undrawn: Flags) -> None:
        books, tally = self.books, self.books.tally
        rows = settled.nonzero()[0]
        booking.pay_solver(books.ledger, rows, task.solver[rows], task.price[rows])
        tally.paid[rows] += task.price[rows]
        tally.escaped += settled & task.wrong
        gained = (settled & task.wrong & task.work.knows).nonzero()[0]
        books.spend(gained, task.solver[gained], np.full(gained.shape, -float(self.parameters.gain)))
        rows = undrawn.nonzero()[0]
        booking.close_undrawn(books.ledger, rows, task.solver[rows], task.price[rows])

    def _pay_for_checks(self, task: Task, checks: Checks) -> None:
        """Book replays, and the gas of attestations and challenges."""
        parameters, books, prices = self.parameters, self.books, self.prices
        replay = parameters.replay_cost * parameters.training_cost / parameters.segments * prices.work
        attest = parameters.gas_attest * prices.gas
        dispute = parameters.gas_dispute * prices.gas
        for rows, accounts, check in checks.sittings:
            spent = check.replays * (parameters.segments_per_verifier * replay[rows])
            spent += check.attests * attest[rows]
            if check.challenges.any():
                spent += check.challenges * dispute[rows]
            books.spend(rows, self._seats(accounts), spent)
        if checks.looks is not None:
            looks = checks.looks
            bystanders = np.arange(books.bystanders.start, books.bystanders.stop)[:, None]
            books.spend(books.every, bystanders, looks.replays * replay + looks.games * dispute)
        if task.own_games is not None:
            own = task.own_games * task.live
            books.spend(books.every, np.full_like(own, SUBMITTER), own * dispute)

    def _seats(self, accounts: Amounts) -> Indices:
        """Ledger accounts of verifiers. The account of an empty seat is arbitrary; nothing is booked for it."""
        return np.asarray(self.books.verifiers.start + np.maximum(accounts, 0))
