"""The verifier's dilemma: whether replaying pays, and whether fees change that.

A share x of the results is false, and a share d of the verifiers replays; the others attest whatever is
served. The study measures how much more a seat earns by replaying than by rubber-stamping, and compares this
with the inspection game of `sim.theory`. A second grid varies the fees. Gas is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim.agents.population import Population, population
from sim.agents.verifiers import Trusting, Verifier
from sim.engine.simulate import Columns, simulate
from sim.parameters import MarketParameters
from sim.studies.cheaters import Disguised
from sim.studies.dilemma_reading import FEES, GAME, Rows, fees, game
from sim.studies.dilemma_seat import Seat
from sim.studies.points import ALIKE, agreement, asked, of_both, require, where
from sim.studies.study import Answer, Claim, Extra, Point, Study, Table
from sim.studies.tables import by_point, draws, mean, points_of, standard_error
from sim.units import TOKEN


class Dilemma(Study):
    """Solvers that cheat at a given rate, and verifiers of which a given share replays."""

    name = "dilemma"
    question = "When does replaying pay more than rubber-stamping, and do fees change it?"
    runs = 1024
    rounds = 16

    def parameters(self) -> MarketParameters:
        """A market with equal devices and without gas."""
        return MarketParameters(device_spread=0.0, gas_price=0.0)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """The axes of two grids, one for the game and one for the fees. The first value of each of the
        study's own parameters is its centre: the value that it keeps in a grid that does not vary it.
        """
        return {
            "false_rate": (0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
            "diligence": (0.5, 0.02, 0.05, 0.1, 0.2, 0.35, 0.65, 0.8, 0.98),
            "audit_fee": (0, 2 * TOKEN, 4 * TOKEN, 6 * TOKEN),
            "false_share": (0.5,),
        }

    def extra(self) -> Mapping[str, Extra]:
        """The rates of cheating and of replaying, and the false share."""
        return {
            "false_rate": Extra("x: chance that a result is false"),
            "diligence": Extra("d: share of the verifiers that replay; the others do not"),
            "false_share": Extra("share of the segments of a false result that are invented"),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Points of two grids: the game, and fees."""
        return asked(self, given, (GAME, FEES))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """Both kinds of verifiers, at least one of each. Raises ParameterError for a parameter that theory
        has no term for.
        """
        require(self.parameters(), parameters, (*ALIKE, "gas_price"))
        looking = of_both(point["diligence"], parameters)
        return population(
            [(Disguised(point["false_share"], point["false_rate"]), parameters.solver_count)],
            [(Verifier(), looking), (Trusting(), parameters.verifier_count - looking)],
        )

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """Per seat, in token units: the earnings of each kind, and the difference between them. Per task: the
        solvers' profit in token units, and the share of tasks with a conviction.
        """
        case = self.case(point)
        played = simulate(case, runs=runs, rounds=rounds, seed=seed)
        looking = case.population.honest * case.parameters.verifiers
        replaying = played["profit_verifier_honest"] / looking
        skipping = played["profit_verifier_lazy"] / (case.parameters.verifiers - looking)
        return {
            "replaying": replaying,
            "skipping": skipping,
            "surplus": replaying - skipping,
            "profit_solver": played["profit_solver_disguised"],
            "convicted": played["convicted"],
        }

    def answer(self, table: Table) -> Answer:
        """Findings and claims on the game and on fees."""
        points = points_of(self, table)
        seats = [Seat(self.case(point), point) for point in points]
        tasks = int(by_point(table, "run").shape[1] * table["rounds"][0])
        least = np.array([seat.least_error(tasks) for seat in seats])
        seen = standard_error(table, "surplus")
        rows = Rows(
            self,
            points,
            seats,
            np.array([seat.gain() for seat in seats]),
            mean(table, "surplus"),
            np.where(np.isfinite(seen), np.maximum(seen, least), least),
            mean(table, "profit_solver"),
            np.nan_to_num(standard_error(table, "profit_solver"), posinf=0.0),
            mean(table, "replaying"),
            np.nan_to_num(standard_error(table, "replaying"), posinf=0.0),
            table,
        )
        claims = [
            Claim(
                f"gain of replaying a seat in tokens at {where(self, point)}",
                *(amount / TOKEN for amount in amounts),
                draws=draws(table, n),
            )
            for n, (point, *amounts) in enumerate(
                zip(points, rows.expected.tolist(), rows.gain.tolist(), rows.error.tolist())
            )
        ]
        parts = [part(rows) for part in (game, fees)]
        findings = [finding for found, _ in parts for finding in found]
        claims = [*(claim for _, own in parts for claim in own), *claims]
        return Answer(findings or [agreement(claims)], claims)
