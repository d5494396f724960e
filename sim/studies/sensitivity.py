"""Sensitivity: which parameters decide whether cheating pays and whether checking pays, over their whole
ranges.

Morris' elementary effects (Technometrics 33(2), 1991) screen the parameters. Sobol's indices with Saltelli's
sampling (Computer Physics Communications 181(2), 2010) give the share of an outcome's variance that a
parameter explains alone (first order) and together with all others (total). Both methods come from SALib.
Effects are differences between points, so all points use the same random numbers. At each point, the market
with honest solvers and the market with cheaters use them too. Nothing is compared with closed forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from sim.agents.population import Population, population
from sim.agents.verifiers import Trusting, Verifier
from sim.engine.simulate import Case, Columns, simulate
from sim.errors import SweepError
from sim.mechanism.arrays import Floats
from sim.parameters import MarketParameters
from sim.studies.cheaters import Disguised
from sim.studies.study import Answer, Extra, Finding, Point, Study, Table
from sim.studies.tables import mean, of_points
from sim.units import TOKEN, Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A cheater with many false segments is easily found, so false shares are small.
RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "honest_share": (0.3, 0.9),
    "false_share": (0.01, 0.1),
    "gain": (50 * TOKEN, 200 * TOKEN),
    # 600 tokens cover all payments of a conviction with the most expensive seats:
    # 4 / 3 x (3 x (80 + 2.2) + 100 + 75) = 562.
    "stake": (600 * TOKEN, 1500 * TOKEN),
    "segments": (10, 100),
    "segments_per_verifier": (2, 8),
    "training_cost": (30 * TOKEN, 84 * TOKEN),
    "audit_fee": (TOKEN, 10 * TOKEN),
}
MORRIS, SOBOL = 0, 1
TRAJECTORIES: Final = 20
SAMPLES: Final = 128
"""Base samples of Sobol's sequence, which is balanced for a power of two. The study has SAMPLES x (parameters
+ 2) points.
"""
LEVELS: Final = 4
_SEED: Final = 1
"""Seed of the samples, and of the resampling for intervals. It is fixed, so that the points never change."""


class Outcome(NamedTuple):
    """A column of the table, whose variance the study explains."""

    column: str
    text: str


OUTCOMES: Final = (
    Outcome("advantage", "what cheating earns over honest work"),
    Outcome("seat", "what an honest verifier's seat earns"),
)


class Sensitivity(Study):
    """Plays points that are sampled from the ranges of all parameters in `RANGES`. At each point, a market
    with cheating solvers is compared with a market with honest solvers.
    """

    name = "sensitivity"
    common = True
    question = "Which parameters decide whether cheating pays, and whether checking does?"
    runs = 128
    rounds = 1
    trajectories: int = TRAJECTORIES
    samples: int = SAMPLES

    def parameters(self) -> MarketParameters:
        """A small market with equal devices, a markup that covers gas, and rewards that the least stake
        covers.
        """
        return MarketParameters(
            device_spread=0.0,
            markup=0.5,
            retrain_reward=75 * TOKEN,
            solver_count=5,
            verifier_count=50,
        )

    def axes(self) -> Mapping[str, Sequence[float]]:
        """The two sampling methods, and the ends of each range."""
        return {"method": (MORRIS, SOBOL), **RANGES}

    def extra(self) -> Mapping[str, Extra]:
        """The sampling method, and the composition of the population."""
        return {
            "method": Extra("0: Morris' trajectories, 1: Sobol's sequence", Unit.COUNT, 0, 1),
            "honest_share": Extra("share of the verifiers that replay; the others attest what is served"),
            "false_share": Extra("share of the segments that a cheater invents"),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """The sample of each method, between the ends of each range. A parameter whose axis has only one
        value stays at that value.

        Raises SweepError for a parameter without a range, an axis with no values or more than two, or fewer
        than two axes that vary.
        """
        axes = {**self.axes(), **{self.known(name): values for name, values in given.items()}}
        for name, values in axes.items():
            if name not in self.axes() or not len(values):
                raise SweepError(
                    f"{name}: expected values of one of {', '.join(RANGES)}, got {len(values)} for this; correct it"
                )
            if len(values) > 2:
                raise SweepError(
                    f"{name}: expected one value, or the two ends between which samples lie, got {len(values)} values; "
                    f"give its least and its most"
                )
        ends = {name: (min(values), max(values)) for name, values in axes.items() if name != "method"}
        free = {name: pair for name, pair in ends.items() if pair[0] < pair[1]}
        if len(free) < 2:
            raise SweepError("expected at least two parameters that vary, got fewer; widen a range")
        held = {name: low for name, (low, _) in ends.items() if name not in free}
        return [
            {"method": int(method), **held, **self._valued(free, row)}
            for method in axes["method"]
            for row in self._sample(_problem(free), int(method))
        ]

    def _sample(self, problem: dict[str, Any], method: int) -> Floats:
        from SALib.sample import morris, sobol

        if method == MORRIS:
            rows: Floats = morris.sample(problem, self.trajectories, num_levels=LEVELS, seed=_SEED)
        else:
            rows = sobol.sample(problem, self.samples, calc_second_order=False, seed=_SEED)
        return rows

    def _valued(self, names: Mapping[str, tuple[float, float]], row: Floats) -> Point:
        # Levels between the ends are computed, so rounding may put them just outside.
        inside = {
            name: min(max(float(value), low), high) for (name, (low, high)), value in zip(names.items(), row)
        }
        return {name: round(value) if self.unit(name).whole else value for name, value in inside.items()}

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """A population in which all solvers cheat."""
        return self._people(parameters, point, 1.0)

    def _people(self, parameters: MarketParameters, point: Point, rate: float) -> Population:
        honest = max(1, round(point["honest_share"] * parameters.verifier_count))
        return population(
            [(Disguised(share=point["false_share"], rate=rate), parameters.solver_count)],
            [(Verifier(), honest), (Trusting(), parameters.verifier_count - honest)],
        )

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """Both outcomes in tokens, from markets with honest and with cheating solvers under the same seed."""
        cheating = self.case(point)
        people = self._people(cheating.parameters, point, 0.0)
        honest = Case(cheating.parameters, people)
        false, true = (simulate(case, runs=runs, rounds=rounds, seed=seed) for case in (cheating, honest))
        seats = cheating.parameters.verifiers * people.honest
        return {
            "advantage": (false["profit_solver_disguised"] - true["profit_solver_disguised"]) / TOKEN,
            "seat": true["profit_verifier_honest"] / TOKEN / seats,
        }

    def answer(self, table: Table) -> Answer:
        """For each outcome, findings on Sobol's indices with a tornado plot, and on Morris' screening."""
        findings = []
        methods = of_points(table, "method")
        for outcome in OUTCOMES:
            values = mean(table, outcome.column)
            total: Floats | None = None
            if (methods == SOBOL).any():
                part = self._part(table, methods == SOBOL)
                finding, total = _sobol(outcome, part, values[methods == SOBOL])
                findings.append(finding)
            if (methods == MORRIS).any():
                part = self._part(table, methods == MORRIS)
                findings.append(_morris(outcome, part, values[methods == MORRIS], total))
        return Answer(findings)

    def _part(self, table: Table, rows: Any) -> dict[str, Floats]:
        """For each varying parameter, an array of shape (points,): the parameter's values as fractions of its
        range.
        """
        part = {}
        for name in RANGES:
            values = of_points(table, name)
            if values.min() < values.max():
                part[name] = (values[rows] - values.min()) / (values.max() - values.min())
        return part


def _problem(ranges: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
    return {
        "num_vars": len(ranges),
        "names": list(ranges),
        "bounds": [list(pair) for pair in ranges.values()],
    }


def _sobol(outcome: Outcome, part: Mapping[str, Floats], values: Floats) -> tuple[Finding, Floats]:
    """Return a finding on Sobol's indices, and the total indices. The finding shows the mean outcome in the
    lowest and in the highest quarter of each range.
    """
    from SALib.analyze import sobol

    from sim.figures import tornado

    names = list(part)
    if values.std() == 0:
        return Finding(f"Nothing moves {outcome.text}: it is {values[0]:+,.2f} tokens everywhere"), np.zeros(
            len(names)
        )
    found = sobol.analyze(
        _problem(dict.fromkeys(names, (0.0, 1.0))), values, calc_second_order=False, seed=_SEED
    )
    total, alone, error = found["ST"], found["S1"], found["ST_conf"]
    order = np.argsort(-total)
    first = ", ".join(f"{names[n]} {total[n]:.0%} (alone {alone[n]:.0%})" for n in order[:3])
    pays = (values > 0).mean()
    sentence = (
        f"Of the variance of {outcome.text} most goes with {first}; it is positive in {pays:.0%} of the sampled "
        f"markets"
    )
    low = [values[part[name] <= 0.25].mean() for name in names]
    high = [values[part[name] >= 0.75].mean() for name in names]
    note = (
        f"Bars: means over the lowest and the highest quarter of each range. Total indices of Sobol, from "
        f"{len(values):,} markets, are right to {error.max():.2f} (95 %); they add up to {total.sum():.2f}, and "
        f"what is above 1 is interaction."
    )
    figure = tornado(names, low, high, centre=float(values.mean()), x=f"{outcome.text}, tokens")
    return Finding(sentence, figure, note), total


def _morris(outcome: Outcome, part: Mapping[str, Floats], values: Floats, total: Floats | None) -> Finding:
    """A finding on the elementary effects, and on whether they and Sobol's total indices (`total`) name the
    same parameters.
    """
    from SALib.analyze import morris

    names = list(part)
    inputs = np.stack([part[name] for name in names], axis=1)
    found = morris.analyze(
        _problem(dict.fromkeys(names, (0.0, 1.0))), inputs, values, num_levels=LEVELS, seed=_SEED
    )
    effects = np.asarray(found["mu_star"], dtype=np.float64)
    signed = np.asarray(found["mu"], dtype=np.float64)
    order = np.argsort(-effects)
    first = ", ".join(f"{names[n]} {signed[n]:+,.1f}" for n in order[:3])
    same = ""
    if total is not None:
        mine, other = set(order[:3].tolist()), set(np.argsort(-total)[:3].tolist())
        same = f"; {len(mine & other)} of these 3 are among the first 3 of Sobol's indices"
    sentence = f"Over its range a parameter moves {outcome.text} by (tokens): {first}{same}"
    return Finding(sentence, _effects(names, effects, outcome))


def _effects(names: Sequence[str], effects: Floats, outcome: Outcome) -> Figure:
    from sim.figures import tornado

    zeros = np.zeros(len(names))
    return tornado(names, zeros, effects, centre=0.0, x=f"mean absolute effect on {outcome.text}, tokens")
