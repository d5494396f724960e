"""Baseline: does the engine meet the closed forms? A lazy solver against an honest share of verifiers.

Everything else rests on this study: at every point the escape, the cheater's profit and the burned stake are played and
compared with `sim.theory`. Devices are alike here and nobody crashes, for which the closed forms have no term.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from protocol.economics import slash_split
from sim.agents.population import Population, population
from sim.agents.solvers import Lazy
from sim.agents.verifiers import Trusting, Verifier
from sim.errors import SettingError
from sim.setting import KNOWN, Setting
from sim.studies.study import Answer, Claim, Extra, Finding, Point, Study, Table
from sim.studies.tables import by_point, mean, points_of, standard_error
from sim.theory import cheating_profit, escape_probability
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WITHOUT_TERM: Final = ("device_spread", "crash_rate", "downtime")
"""Parameters that the closed forms know at 0 only."""


class Forms(NamedTuple):
    """Expected values of one task, amounts in token units: see `Baseline.forms`."""

    escape: float
    profit: float
    swing: float
    """Between the profit of a task that escapes and that of one that is convicted."""
    burned: float
    burned_once: float
    """By one conviction."""


class Measure(NamedTuple):
    """A column beside its closed form: (expected, what hangs on the coin)."""

    column: str
    text: str
    axis: str
    of: Callable[[Forms], tuple[float, float]]
    unit: float


MEASURES: Final = (
    Measure("escaped", "escape", "share of tasks that escape", lambda form: (form.escape, 1.0), 1.0),
    Measure(
        "profit_solver_lazy",
        "cheater's profit",
        "profit, tokens a task",
        lambda form: (form.profit, form.swing),
        TOKEN,
    ),
    Measure(
        "burned", "burned stake", "burned, tokens a task", lambda form: (form.burned, form.burned_once), TOKEN
    ),
)


class Baseline(Study):
    """Lazy solvers, some verifiers that look and others that do not."""

    name = "baseline"
    question = "Does the engine meet the closed forms of escape, profit and burned stake?"

    def setting(self) -> Setting:
        """Devices alike."""
        return Setting(device_spread=0.0)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """False share and honest share."""
        return {"false_share": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), "honest_share": (0.3, 0.5, 0.7, 0.9)}

    def extra(self) -> Mapping[str, Extra]:
        """What the population is made of."""
        return {
            "false_share": Extra("share of the segments that a solver invents"),
            "honest_share": Extra("share of the verifiers that replay; the others attest whatever is served"),
        }

    def population(self, setting: Setting, point: Point) -> Population:
        """All solvers lazy. Raises SettingError where the closed forms do not reach."""
        for name in _WITHOUT_TERM:
            if getattr(setting, name):
                raise SettingError(
                    f"{name}: expected 0, for the closed forms have no term for it, got {getattr(setting, name)}; "
                    f"leave it out"
                )
        solver = Lazy(point["false_share"])
        dearest = setting.training_cost * solver.expected_effort(setting) * (1 + 2 * setting.markup)
        if dearest > setting.budget:
            unit = KNOWN["budget"].metadata["unit"]
            raise SettingError(
                f"budget: expected at least {unit.format(dearest)}, the highest ask, "
                f"got {unit.format(setting.budget)}; raise it, for the closed forms sell every task"
            )
        honest = round(point["honest_share"] * setting.verifier_count)
        return population(
            [(solver, setting.solver_count)],
            [(Verifier(), honest), (Trusting(), setting.verifier_count - honest)],
        )

    def answer(self, table: Table) -> Answer:
        """All three at every point."""
        points = points_of(self, table)
        tasks = int(by_point(table, "run").shape[1] * table["rounds"][0])
        forms = [self.forms(point) for point in points]
        found = [_compared(self, measure, table, points, forms, tasks) for measure in MEASURES]
        own = set(points[0]) == set(self.axes())
        return Answer(
            [_finding(measure, points, claims, own) for measure, claims in zip(MEASURES, found)],
            [claim for claims in found for claim in claims],
        )

    def forms(self, point: Point) -> Forms:
        """What theory expects of one task at a point.

        The lowest of n asks whose markups are uniform on 0 to 2 has the mean markup 2 / (n + 1). Gas is no part of
        `cheating_profit`: every task costs some, a dispute more.
        """
        case = self.case(point)
        setting, solver = case.setting, Lazy(point["false_share"])
        false, cost = solver.false(setting), setting.training_cost
        price = cost * (1 - false / setting.segments) * (1 + setting.markup * 2 / (setting.solver_count + 1))
        gas = setting.gas_price * TOKEN
        audit = {
            "segments": setting.segments,
            "false": false,
            "segments_per_verifier": setting.segments_per_verifier,
            "verifiers": setting.verifiers,
            "honest": case.population.honest,
            "rerolls": 0,
        }
        escape = float(escape_probability(**audit))
        profit = cheating_profit(
            **audit, price=price, gain=setting.gain, stake=setting.stake, cost=cost, kept=0.0
        )
        split = slash_split(setting.stake, setting.reward_cap, setting.restitution)
        return Forms(
            escape=escape,
            profit=float(profit) - gas * (setting.gas_task + (1 - escape) * setting.gas_defence),
            swing=price + setting.gain + setting.stake + gas * setting.gas_defence,
            burned=(1 - escape) * (split.burned + split.rest),
            burned_once=split.burned + split.rest,
        )


def _compared(
    study: Study, measure: Measure, table: Table, points: Sequence[Point], forms: Sequence[Forms], tasks: int
) -> list[Claim]:
    """A claim for each point. A task is a coin: the error of a mean is at least the coin's times what hangs on it.

    It is never below that of one task: where theory expects less than one event in all, one is no contradiction.
    """
    means, errors = mean(table, measure.column), standard_error(table, measure.column)
    claims = []
    for point, form, measured, seen in zip(points, forms, means, errors):
        expected, swing = measure.of(form)
        coin = max(math.sqrt(form.escape * (1 - form.escape) / tasks), 1 / tasks) * swing
        error = max(coin, seen) if math.isfinite(seen) else coin
        where = ", ".join(f"{name} {study.unit(name).format(value)}" for name, value in point.items())
        claims.append(
            Claim(
                f"{measure.text} at {where}",
                expected / measure.unit,
                measured / measure.unit,
                error / measure.unit,
            )
        )
    return claims


def _finding(measure: Measure, points: Sequence[Point], claims: Sequence[Claim], own: bool) -> Finding:
    """A sentence that says what the figure shows: lines over the study's own grid, else expected beside measured."""
    worst = max(abs(claim.expected - claim.measured) / claim.error for claim in claims)
    holding = sum(claim.holds for claim in claims)
    verb = "meets" if holding == len(claims) else "does not meet"
    sentence = (
        f"The engine's {measure.text} {verb} theory: {holding} of {len(claims)} points within 4 standard errors, "
        f"the farthest {worst:.1f} away"
    )
    return Finding(sentence, _lines(measure, points, claims) if own else _parity(measure, claims))


def _lines(measure: Measure, points: Sequence[Point], claims: Sequence[Claim]) -> Figure:
    from sim.figures import Line, lines

    series = []
    for share in sorted({point["honest_share"] for point in points}):
        here = [(p["false_share"], c) for p, c in zip(points, claims) if p["honest_share"] == share]
        here.sort(key=lambda pair: pair[0])
        expected = np.array([claim.expected for _, claim in here])
        band = np.array([4 * claim.error for _, claim in here])
        series.append(
            Line(
                f"honest share {share:g}",
                [false for false, _ in here],
                expected,
                expected - band,
                expected + band,
                [claim.measured for _, claim in here],
            )
        )
    return lines(
        series,
        x="false share f (lines: theory with 4 standard errors, dots: engine)",
        y=measure.axis,
        log_x=True,
    )


def _parity(measure: Measure, claims: Sequence[Claim]) -> Figure:
    from sim.figures import parity

    numbers = np.array([(claim.expected, claim.measured, claim.error) for claim in claims])
    return parity(*numbers.T, x=f"{measure.axis}, theory", y=f"{measure.axis}, engine")
