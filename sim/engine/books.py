"""The accounts of one block of markets: the vault's ledger, costs and gains outside it, and the tally."""

from __future__ import annotations

from math import ceil

import numpy as np

from sim.agents.population import Population
from sim.engine.capital import of_game, of_task
from sim.engine.flight import Stakes
from sim.engine.looking import LOOK_TRIES
from sim.engine.tally import Tally
from sim.mechanism.arrays import Amounts, Floats, Indices
from sim.mechanism.bonds import most_locked
from sim.mechanism.booking import FIRST_SOLVER, SUBMITTER
from sim.mechanism.ledger import Ledger, book, require_range
from sim.parameters import MarketParameters
from sim.units import TOKEN


class Bonds:
    """The most that each party without a seat can lock in bonds for one task, in token units."""

    def __init__(self, bond: int, seats: int, people: Population) -> None:
        # Seats of the first draw commit before the parties without a seat.
        held = seats
        self.bystanders: list[int] = []
        """The amount for each bystander."""
        for group in people.bystanders:
            games = group.strategy.most_games
            for _ in range(group.size):
                if group.strategy.late:
                    self.bystanders.append(games * bond)
                else:
                    self.bystanders.append(most_locked(bond, held, games))
                    held += games
        self.submitter = most_locked(bond, held, people.submitter.most_games)


class Books:
    """All accounts of the block, in the order submitter, drawer, solvers, verifiers, bystanders."""

    def __init__(self, parameters: MarketParameters, people: Population, rows: int, rounds: int) -> None:
        """Make deposits that last `rounds` rounds. Raises ParameterError if sums of amounts may need more
        than 62 bits.
        """
        self.solvers = slice(FIRST_SOLVER, FIRST_SOLVER + people.solver_count)
        self.verifiers = slice(self.solvers.stop, self.solvers.stop + people.verifier_count)
        self.bystanders = slice(self.verifiers.stop, self.verifiers.stop + people.bystander_count)
        self.every = np.arange(rows)
        """The numbers of all rows."""
        exact = self._needed(parameters, people, rounds)
        require_range("deposits", int(exact.sum()))
        require_range("costs and gains outside of the vault", rounds * most_outside(parameters, people))
        needed = exact.astype(np.int64)
        self.ledger = Ledger(np.broadcast_to(needed[:, None], (len(needed), rows)))
        self.ledger.lock(self.verifiers, parameters.stake_unit * people.slots[:, None])
        self.stakes = Stakes(parameters.overlap, parameters.stake, self.solvers, rows)
        """Stakes of tasks in flight. The ledger still counts these tokens as free."""
        self.outside = np.zeros((len(needed), rows), dtype=np.int64)
        """Costs and gains outside the vault, (accounts, rows) token units."""
        self.tally = Tally.empty(rows)

    def _needed(self, parameters: MarketParameters, people: Population, rounds: int) -> Amounts:
        """Initial deposits, (accounts,), as Python integers, which do not overflow.

        A deposit has one part for each round. The part covers everything that the account can lose in one
        task, and everything that the task can lock, because no token is both lost and locked in one task. So
        the deposit also covers the locks of tasks in flight. A verifier's deposit also holds its registered
        stake. A solver with a given capital deposits only that capital.
        """
        bonds = Bonds(parameters.bond, parameters.verifiers, people)
        a_task = parameters.escrow + parameters.delay_penalty
        needed = np.zeros(self.bystanders.stop, dtype=object)
        needed[SUBMITTER] = rounds * (a_task + bonds.submitter)
        needed[self.solvers] = (parameters.solver_capital or rounds) * parameters.stake
        # A verifier has at most one seat or look in a task, and may lose its lock there.
        slots = people.slots.astype(object)
        needed[self.verifiers] = parameters.stake_unit * slots + rounds * (
            _bond(parameters) + parameters.lock
        )
        needed[self.bystanders] = [rounds * most for most in bonds.bystanders]
        return needed

    def spend(self, rows: Indices, accounts: Indices, amounts: Floats) -> None:
        """Book costs outside the vault, rounded to units; `rows` and `accounts` are as in
        `sim.mechanism.ledger.book`.
        """
        book(self.outside, rows, accounts, -np.rint(amounts).astype(np.int64))

    def profits(self) -> Amounts:
        """Each account's gain since the start, inside and outside the vault, (accounts, rows) token units."""
        gains = self.ledger.gains()
        gains += self.outside
        return gains


def _bond(parameters: MarketParameters) -> int:
    """The most that a seat or look can lose in addition to its lock. Without looks, this is its bond. With
    looks, it is the larger of the bond and twice a game's cost. A looker that accuses pays a game's cost to
    the solver for the game that it drops, and another to the accused if the accused answers.
    """
    return max(parameters.bond, 2 * parameters.game_cost) if parameters.look_chance else parameters.bond


def most_outside(parameters: MarketParameters, people: Population) -> int:
    """Upper bound for the sum of what all accounts spend and gain outside the vault for one task, in token
    units, at initial prices.

    A winner's own cost is counted as the budget: it is at most the winner's ask, which the budget limits.
    """
    looks = LOOK_TRIES * parameters.slots if parameters.look_chance else 0
    seats, gas = parameters.verifiers * (parameters.redraws + 1) + looks, parameters.gas_price * TOKEN
    games = seats + people.submitter.most_games + 1
    games += sum(group.size * group.strategy.most_games for group in people.bystanders)
    replays = seats * parameters.segments_per_verifier + people.bystander_count * parameters.segments
    spent = (
        parameters.budget + replays * parameters.replay_cost * parameters.training_cost / parameters.segments
    )
    spent += gas * (parameters.gas_task + seats * parameters.gas_attest)
    spent += gas * looks * (2 * parameters.gas_reveal + parameters.gas_accuse + parameters.gas_defence)
    spent += gas * games * (parameters.gas_dispute + parameters.gas_defence)
    locks, bonds = of_task(parameters), Bonds(parameters.bond, parameters.verifiers, people)
    locked = parameters.stake + seats * parameters.bond + bonds.submitter + sum(bonds.bystanders)
    spent += float(locks.stake + locks.delay_penalty + locks.escrow + seats * locks.seat)
    spent += float(of_game(parameters, locked))
    return ceil(spent) + parameters.gain
