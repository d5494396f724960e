"""Auctions: what a task costs with descending bids, second price and posted price, and whether letting the
cheapest bid win wastes strong devices.

Solvers' costs are uniform, as in `sim.theory.auctions`, and nobody bids below its cost, which is optimal in
each of these formats. The engine plays each format with the same seed, without gas. `sim.studies.matching`
assigns tasks to devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.verifiers import Verifier
from sim.engine.simulate import Case, Columns, simulate
from sim.errors import ParameterError
from sim.mechanism.arrays import Floats
from sim.mechanism.auctions import AUCTIONS
from sim.parameters import MarketParameters
from sim.studies.auctions_reading import (
    BIDDERS,
    BUDGETS,
    LOADS,
    Seen,
    market_of,
    of_formats,
    of_rules,
    of_variances,
)
from sim.studies.grids import within
from sim.studies.matching import MOST_LOAD, Batch
from sim.studies.matching import play as play_batch
from sim.studies.points import asked, require
from sim.studies.study import Answer, Extra, Point, Study, Table
from sim.studies.tables import points_of
from sim.theory import TheoryError, descending, efficiency
from sim.units import TOKEN, Unit

_WITHOUT_TERM: Final = (
    *("device_spread", "crash_rate", "silence_rate", "arrival_rate", "token_volatility", "solver_capital"),
    *("downtime", "markup", "gas_price", "draw_fee", "beacon_stops", "overlap", "capital_rate"),
)


class Auctions(Study):
    """Plays four auction formats (`AUCTIONS`), all with the same solvers. Also plays two rules that assign
    tasks to devices, both with the same tasks and devices.
    """

    name = "auctions"
    question = "What do descending bids, second and posted price cost, and does the cheapest bid waste strong devices?"
    runs = 3072
    rounds = 1

    def parameters(self) -> MarketParameters:
        """A market with costs from 30 to 90 tokens, a budget that covers them, no gas, and no fees besides
        the price.
        """
        return MarketParameters(
            training_cost=60 * TOKEN,
            device_spread=0.0,
            device_range=1.0,
            markup=0.0,
            budget=90 * TOKEN,
            restitution=0,
            gas_price=0.0,
            audit_fee=0,
            draw_fee=0,
            solver_count=5,
        )

    def axes(self) -> Mapping[str, Sequence[float]]:
        """The numbers of bidders and the budgets, then the loads and economies of a market with strong and
        weak devices. Every other axis has a single value.
        """
        return {
            "solver_count": (1, 2, 3, 5, 10, 20),
            "budget": tuple(amount * TOKEN for amount in (40, 50, 60, 75, 90, 120)),
            "worth": (150 * TOKEN,),
            "load": (1.0, 0.25, 0.5, 0.75, 1.5),
            "economy": (0.25, -0.25),
            "strength_spread": (0.7,),
            "size_spread": (0.5,),
            "deadline_spread": (0.5,),
        }

    def extra(self) -> Mapping[str, Extra]:
        """The value of a result, the load, the economy, and the spreads of devices and tasks."""
        return {
            "worth": Extra("what a result is worth to its submitter", Unit.TOKENS, TOKEN, 10**9 * TOKEN),
            "load": Extra("tasks side by side for each device", Unit.FACTOR, 0, MOST_LOAD),
            "economy": Extra("a unit of work costs strength^-economy", Unit.FACTOR, -2, 2),
            "strength_spread": Extra("deviation of the logarithm of devices' strength", Unit.FACTOR, 0, 3),
            "size_spread": Extra("deviation of the logarithm of tasks' size", Unit.FACTOR, 0, 3),
            "deadline_spread": Extra("deviation of the logarithm of tasks' deadline", Unit.FACTOR, 0, 3),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Points of three grids: numbers of bidders; budgets; and loads by economy."""
        return asked(self, given, (BIDDERS, BUDGETS, LOADS))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """A population that is all honest. Raises ParameterError if the closed forms do not apply."""
        require(self.parameters(), parameters, _WITHOUT_TERM)
        least = parameters.training_cost * (1 - parameters.device_range / 2)
        if not parameters.device_range * parameters.training_cost or parameters.budget < least:
            raise ParameterError(
                f"budget, device_range, training_cost: expected costs that differ and a budget of at least the "
                f"lowest, {least / TOKEN:g} tokens, got a range of {parameters.device_range:g} around "
                f"{parameters.training_cost / TOKEN:g} and {parameters.budget / TOKEN:g}; raise them"
            )
        market = market_of(parameters)
        try:
            efficiency(descending(market), market, value=point["worth"])
        except TheoryError as error:
            raise ParameterError(
                f"worth: expected more than the lowest cost, {least / TOKEN:g} tokens, for nothing is to be gained "
                f"below, got {point['worth'] / TOKEN:g}; raise it"
            ) from error
        return population([(Solver(), parameters.solver_count)], [(Verifier(), parameters.verifier_count)])

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """For each format, the share of tasks done, and the price and cost per posted task. For each rule of
        `sim.studies.matching`, the share of tasks done and the welfare.
        """
        case = self.case(point)
        columns: dict[str, Floats] = {}
        for name, auction in AUCTIONS.items():
            solver = Solver()
            people = population(
                [(solver, case.parameters.solver_count)], [(Verifier(), case.parameters.verifier_count)]
            )
            found = simulate(Case(case.parameters, people, auction), runs=runs, rounds=rounds, seed=seed)
            paid = found["price"] * found["settled"]
            columns[f"trade_{name}"] = found["settled"]
            columns[f"price_{name}"] = paid
            columns[f"cost_{name}"] = paid - found[f"profit_solver_{solver.name}"]
        return {**columns, **play_batch(_batch(case.parameters, point), runs=runs, seed=seed)}

    def answer(self, table: Table) -> Answer:
        """Claims for each format and rule; findings for cost, efficiency, risk, and strong devices."""
        points = points_of(self, table)
        by_point = [self.case(point).parameters for point in points]
        sold = sorted({*within(self, points, BIDDERS), *within(self, points, BUDGETS)})
        claims = [
            *(claim for n in sold for claim in of_formats(self, points[n], by_point[n], table, n)),
            *of_variances(by_point, table, sold),
            *(claim for n in within(self, points, LOADS) for claim in of_rules(self, points[n], table, n)),
        ]
        seen = Seen(self, table, points, by_point)
        several = len(seen.budgets) > 1
        findings = [
            seen.costs(),
            *([seen.efficiency()] if several else []),
            seen.risk(),
            seen.done(),
            seen.welfare(),
        ]
        return Answer(findings, claims)


def _batch(parameters: MarketParameters, point: Point) -> Batch:
    return Batch(
        devices=20,
        load=point["load"],
        economy=point["economy"],
        strength_spread=point["strength_spread"],
        size_spread=point["size_spread"],
        deadline_spread=point["deadline_spread"],
        worth=point["worth"],
        cost=parameters.training_cost,
    )
