"""Everybody's accounts in one block of markets: the vault's ledger, costs and gains outside of it, the tally."""

from __future__ import annotations

import numpy as np

from sim.agents.population import Population, spread
from sim.engine.tally import Tally
from sim.mechanism.arrays import Amounts, Floats, Indices
from sim.mechanism.booking import FIRST_SOLVER, SUBMITTER
from sim.mechanism.ledger import Ledger, book
from sim.setting import Setting


class Books:
    """Accounts are numbered: submitter, drawer, solvers, verifiers, bystanders."""

    def __init__(self, setting: Setting, people: Population, rows: int, rounds: int) -> None:
        """Deposits that last for `rounds` rounds. Raises SettingError when their sum leaves 62 bits."""
        self.solvers = slice(FIRST_SOLVER, FIRST_SOLVER + people.solver_count)
        self.verifiers = slice(self.solvers.stop, self.solvers.stop + people.verifier_count)
        self.bystanders = slice(self.verifiers.stop, self.verifiers.stop + people.bystander_count)
        self.every = np.arange(rows)
        """The numbers of all rows."""
        needed = self._needed(setting, people, rounds)
        self.ledger = Ledger(np.broadcast_to(needed[:, None], (len(needed), rows)))
        self.ledger.lock(self.verifiers, setting.stake_unit * people.slots[:, None])
        self.outside = np.zeros((len(needed), rows), dtype=np.int64)
        """Costs and gains outside of the vault, (accounts, rows) token units."""
        self.tally = Tally.empty(rows)

    def _needed(self, setting: Setting, people: Population, rounds: int) -> Amounts:
        """First deposits, (accounts,). All but solvers with a given capital own what they can lose at most."""
        seats, games = setting.verifiers, people.submitter.most_games
        jackpots = setting.jackpot * seats * (setting.segments_per_verifier + 1)
        a_task = setting.budget + setting.fees + setting.draw_fee + jackpots + setting.delay_penalty
        bond = setting.challenge_bond
        needed = np.zeros(self.bystanders.stop, dtype=object)
        needed[SUBMITTER] = rounds * (a_task + games * bond)
        needed[self.solvers] = (setting.solver_capital or rounds) * setting.stake
        # A verifier may be drawn for every seat.
        needed[self.verifiers] = setting.stake_unit * people.slots + rounds * seats * (
            bond + setting.stake_unit
        )
        needed[self.bystanders] = (
            spread(people.bystanders, [group.strategy.most_games for group in people.bystanders])
            * rounds
            * bond
        )
        return needed.astype(np.int64)

    def spend(self, rows: Indices, accounts: Indices, amounts: Floats) -> None:
        """Costs outside of the vault, rounded to units; rows and accounts as in `sim.mechanism.ledger.book`."""
        book(self.outside, rows, accounts, -np.rint(amounts).astype(np.int64))

    def profits(self) -> Amounts:
        """What everybody has more than at first, outside included, (accounts, rows) token units."""
        gains = self.ledger.gains()
        gains += self.outside
        return gains
