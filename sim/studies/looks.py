"""Looks: whether second looks make it pay to replay, who still skips in equilibrium, and what looks cost.

There are two kinds of accounts, those that replay and those that skip. Terms are those recommended for tasks
with looks. Training costs the whole budget, and the fees are derived from the budget, so replays cost as much
as possible, and skipping saves as much as possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np

from protocol.chain.parameters import TOKEN as CHAIN_TOKEN
from protocol.chain.recommendation import RULES
from protocol.tasks.amounts import derive
from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.verifiers import LazyLooker, Trusting, Verifier
from sim.engine.simulate import Case, Columns, simulate
from sim.parameters import MarketParameters
from sim.recommendation import setting_of
from sim.studies.looks_reading import GRIDS, Seen
from sim.studies.points import ALIKE, agreement, asked, of_both, require
from sim.studies.recommended import BUDGET, market
from sim.studies.study import Answer, Claim, Extra, Point, Study, Table
from sim.units import TOKEN, Unit

_SEGMENTS: Final = (60, 20, 120)


@cache
def looked(segments: int) -> MarketParameters:
    """The recommended market with looks for a task of K segments. Raises NoRecommendation."""
    setting = replace(setting_of(segments, BUDGET * CHAIN_TOKEN // TOKEN), look_chance=None)
    terms = market(segments, derive(setting, RULES))
    return replace(terms, training_cost=BUDGET, markup=0.0, solver_count=1)


class Looks(Study):
    """Compares verifiers that replay with two kinds of skippers, for several values of the skippers' share,
    the lock, and the task's length.
    """

    name = "looks"
    question = "Do second looks make it pay to replay, who skips nevertheless, and what do they cost?"
    runs = 8192
    rounds = 16

    def parameters(self) -> MarketParameters:
        """The market of `looked`, which has one honest solver."""
        return looked(_SEGMENTS[0])

    def axes(self) -> Mapping[str, Sequence[float]]:
        """Axes of three grids: the skippers' share by the lock, the skippers' share by the kind of skippers,
        and the task's length.
        """
        return {
            "skip_share": (0.3, 0.05, 0.1, 0.5, 0.7, 0.9),
            "lock_share": (1.0, 0.3, 0.5),
            "in_seats": (1, 0),
            "segments": _SEGMENTS,
        }

    def extra(self) -> Mapping[str, Extra]:
        """The share and kind of skippers, and the size of the lock."""
        return {
            "skip_share": Extra("share of the accounts that skip"),
            "lock_share": Extra("lock of a seat over the recommended one", Unit.FACTOR, 0.0, 100.0),
            "in_seats": Extra(
                "1: skippers replay neither seats nor looks; 0: they skip looks alone", Unit.COUNT
            ),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Points of all grids."""
        return asked(self, given, GRIDS)

    def case(self, point: Point) -> Case:
        """The terms recommended for the point's number of segments, except that the lock is the recommended
        one times the point's `lock_share`. Raises ParameterError if the closed forms do not apply.
        """
        super().case({**point, "segments": self.parameters().segments})
        terms = looked(int(point["segments"]))
        values = {name: value for name, value in point.items() if name not in self.extra()}
        terms = terms.with_values(values)
        require(self.parameters(), terms, [name for name in ALIKE if name != "look_chance"])
        parameters = replace(terms, seat_lock=round(point["lock_share"] * terms.seat_lock))
        return Case(parameters, self.population(parameters, point))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """Honest solvers, verifiers that replay, and skippers. There is at least one verifier of each kind."""
        skippers = of_both(point["skip_share"], parameters)
        kind = Trusting() if point["in_seats"] else LazyLooker()
        honest = parameters.verifier_count - skippers
        return population([(Solver(), parameters.solver_count)], [(Verifier(), honest), (kind, skippers)])

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """Looks and lost locks per task, and the earnings of verifiers that replay and of skippers, in token
        units per task.
        """
        case = self.case(point)
        played = simulate(case, runs=runs, rounds=rounds, seed=seed)
        kind = case.population.verifiers[1].strategy.name
        return {
            "looks": played["looks"],
            "caught": played["caught"],
            "replaying": played["profit_verifier_honest"],
            "skipping": played[f"profit_verifier_{kind}"],
        }

    def answer(self, table: Table) -> Answer:
        """Claims for each point, a finding for each grid that was played, and a finding on what looks cost
        according to theory.
        """
        seen = Seen(self, table)
        claims = seen.claims()
        return Answer(seen.findings() or [agreement(claims)], claims)

    def claims(self, table: Table) -> Sequence[Claim]:
        """The claims of `answer`, computed without its figures."""
        return Seen(self, table).claims()
