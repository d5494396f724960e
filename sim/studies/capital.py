"""Capital: the stake that concurrent tasks need from verifiers and solvers, and the cost of locking it.

Everybody is honest and answers. So if a seat stays empty or a task gets no bid, the only reason is that
accounts or stakes are locked.

The price of capital is the difference between two markets with the same seed, only one of which pays for
capital.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Final

import numpy as np

from protocol.chain.recommendation import RULES
from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.verifiers import Verifier
from sim.engine.simulate import Case, Columns, simulate
from sim.parameters import MarketParameters
from sim.studies.capital_reading import GRIDS, Seen
from sim.studies.points import ALIKE, agreement, asked, require
from sim.studies.recommended import parameters_for
from sim.studies.study import Answer, Claim, Extra, Point, Study, Table
from sim.units import Unit

_SEGMENTS: Final = (60, 20, 200)
_PARTIES: Final = {
    "capital_submitter": "profit_submitter",
    "capital_solver": "profit_solver_honest",
    "capital_seats": "profit_verifier_honest",
}
"""Columns with each party's cost of locks, and the engine's columns from which they are computed."""
_WITH_TERM: Final = ("solver_capital", "overlap", "capital_rate", "gas_volatility")


class Capital(Study):
    """Honest people, recommended terms, and several tasks in flight."""

    name = "capital"
    question = (
        "How many accounts and stakes do tasks in flight together need, and what does locked capital cost?"
    )
    runs = 4096
    rounds = 16

    def parameters(self) -> MarketParameters:
        """A market with equal devices, asking prices below the budget, and few solvers. There are few solvers
        so that their stakes can run out.
        """
        return replace(parameters_for(_SEGMENTS[0]), markup=0.1, solver_count=2)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """Axes of three grids: accounts, stakes, and the price of capital."""
        return {
            "overlap": (1, 2, 4, 8),
            "accounts_per_seat": (3.0, 0.75, 1.0, 1.05, 1.1, 1.2, 1.5),
            "solver_capital": (0, 1, 2, 3),
            "capital_rate": (0.0, 0.05, float(RULES.capital_rate), 0.2),
            "segments": _SEGMENTS,
        }

    def extra(self) -> Mapping[str, Extra]:
        """The number of accounts for each seat."""
        return {
            "accounts_per_seat": Extra(
                "registered accounts for each seat of the tasks in flight", Unit.FACTOR, 0.01, 1000
            ),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Points of all grids."""
        return asked(self, given, GRIDS)

    def case(self, point: Point) -> Case:
        """Recommended terms for the point's own K. Raises ParameterError if the closed forms do not apply."""
        own = self.parameters()
        terms = replace(
            parameters_for(int(point["segments"])), markup=own.markup, solver_count=own.solver_count
        )
        values = {name: value for name, value in point.items() if name not in self.extra()}
        terms = terms.with_values(values)
        require(own, terms, [name for name in ALIKE if name not in _WITH_TERM])
        # Rounded first, because 1.1 times 30 is slightly more than 33 in floating point.
        accounts = ceil(round(point["accounts_per_seat"] * terms.verifiers * terms.overlap, 9))
        parameters = terms.with_values({"verifier_count": accounts})
        return Case(parameters, self.population(parameters, point))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """A population that is all honest."""
        del point
        return population([(Solver(), parameters.solver_count)], [(Verifier(), parameters.verifier_count)])

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """The number of redraws per task, the share of tasks that end void or stalled, the share of tasks
        that are sold, and each party's cost of locks per task in token units.
        """
        case = self.case(point)
        priced = simulate(case, runs=runs, rounds=rounds, seed=seed)
        free = priced
        if case.parameters.capital_rate:
            market = replace(case, parameters=case.parameters.with_values({"capital_rate": 0.0}))
            free = simulate(market, runs=runs, rounds=rounds, seed=seed)
        return {
            "redrawn": priced["redrawn"],
            "unfilled": priced["void"] + priced["stalled"],
            "sold": 1 - priced["unsold"],
            **{name: free[column] - priced[column] for name, column in _PARTIES.items()},
        }

    def answer(self, table: Table) -> Answer:
        """Claims for each point, and a finding for each grid that was played."""
        seen = Seen(self, table)
        claims = seen.claims()
        return Answer(seen.findings() or [agreement(claims)], claims)

    def claims(self, table: Table) -> Sequence[Claim]:
        """The claims of `answer`, computed without its figures."""
        return Seen(self, table).claims()
