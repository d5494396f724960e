"""Books the cost of locked capital (`protocol.tasks.amounts.task_capital`). Like gas, it is booked outside
the vault.

Durations are those of a task whose seats are all attested in time. Two things are assumed: a redraw does not
prolong a seat's lock, and a conviction does not release any lock earlier. A look's lock lasts as long as a
seat's.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from protocol.tasks.amounts import GAME_CLOCKS, Capital, capital_cost, task_capital
from sim.mechanism.arrays import Amounts, Flags, Indices
from sim.mechanism.booking import SUBMITTER
from sim.mechanism.draw import NOBODY
from sim.parameters import MarketParameters

if TYPE_CHECKING:
    from sim.engine.books import Books
    from sim.engine.task import Checks, Task


def of_task(parameters: MarketParameters) -> Capital:
    """Cost of each lock of a task that is settled without a game, in token units. The cost of the escrow is
    that of the whole escrow, not only of the fees in it.
    """
    return task_capital(
        Fraction(parameters.capital_rate),
        training=parameters.training_time,
        audit=parameters.audit_time,
        stake=parameters.stake,
        delay_penalty=parameters.delay_penalty,
        seat_lock=parameters.lock,
        escrow=parameters.escrow,
    )


def of_game(parameters: MarketParameters, amount: int) -> Fraction:
    """Cost of locking an amount for the duration of a game, as in `protocol.tasks.amounts.least_bond`."""
    return capital_cost(Fraction(parameters.capital_rate), amount, GAME_CLOCKS * parameters.game_time)


class Locks:
    """Books the costs of a market's locks."""

    def __init__(self, parameters: MarketParameters, books: Books) -> None:
        self._books = books
        self._task = of_task(parameters)
        rate = Fraction(parameters.capital_rate)
        self._trained = capital_cost(rate, parameters.escrow, parameters.training_time)
        self._played = of_game(parameters, parameters.stake)
        self.bond = float(of_game(parameters, 1))
        """Cost of locking one token unit of a bond."""

    def trained(self, solvers: Indices, sold: Flags) -> None:
        """Book the cost of what is locked from bid to submission: the submitter's escrow, and the winner's
        delay penalty.
        """
        self._spend(np.full_like(solvers, SUBMITTER), sold * float(self._trained))
        self._spend(solvers, sold * float(self._task.delay_penalty))

    def audited(self, task: Task, checks: Checks, bonds: Amounts) -> None:
        """Book the cost of what is locked from the submission on: the escrow, the stake, the locks of seats
        and looks, and bonds. `bonds` has the total bonds of each party in `checks.games`, (n, rows). Games
        run in parallel, so together they hold the stake only for the duration of one game.
        """
        live, solvers, games = task.live, task.solver, checks.games
        self._spend(np.full_like(solvers, SUBMITTER), live * float(self._task.escrow - self._trained))
        played = live & games.opened.any(axis=0)
        self._spend(solvers, live * float(self._task.stake) + played * float(self._played))
        self._spend(games.accounts, bonds * self.bond)
        for rows, accounts, _ in checks.sittings:
            seats = self._books.verifiers.start + np.maximum(accounts, 0)
            self._books.spend(rows, seats, (accounts != NOBODY) * float(self._task.seat))
        if checks.second is not None:
            lookers = checks.second.accounts
            seats = self._books.verifiers.start + np.maximum(lookers, 0)
            self._books.spend(self._books.every, seats, (lookers != NOBODY) * float(self._task.seat))

    def _spend(self, accounts: Indices, amounts: Amounts) -> None:
        self._books.spend(self._books.every, accounts, amounts.astype(np.float64))
