"""Baseline: does the engine agree with the closed forms? A lazy solver meets an honest share of verifiers.

All other studies rest on this one. At every point, it compares three measures with `sim.theory`: the share of
tasks that escape, the cheater's profit and the burned stake. Devices are alike and nobody crashes, because
the closed forms have no term for either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from sim.agents.population import Population, population
from sim.agents.solvers import Lazy
from sim.agents.verifiers import Trusting, Verifier
from sim.errors import ParameterError
from sim.mechanism.arrays import Floats
from sim.parameters import KNOWN, MarketParameters
from sim.studies.prices import expected_price
from sim.studies.study import CHANCE, Answer, Claim, Extra, Finding, Point, Study, Table
from sim.studies.tables import by_point, draws, mean, points_of, standard_error
from sim.theory import cheating_profit, escape_probability, expected_claims
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WITH_TERM: Final = frozenset(
    (
        *("budget", "stake", "restitution", "audit_fee", "delay_penalty", "gain", "training_cost", "markup"),
        *("segments", "verifiers", "segments_per_verifier", "solver_count", "verifier_count"),
        *(
            "draw_fee",
            "stake_unit",
            "bond",
            "reward",
            "game_cost",
            "retrain_reward",
            "replay_cost",
            "gas_price",
            "gas_volatility",
        ),
        *("gas_attest", "gas_dispute", "gas_defence", "gas_task"),
    )
)
"""Parameters that the closed forms include. All other parameters must stay as in `Baseline.parameters`."""


class Forms(NamedTuple):
    """Values that theory expects for one task, as computed by `Baseline.forms`. Each field has one value per
    point, (points,), and amounts are in token units.
    """

    escape: Floats
    profit: Floats
    swing: Floats
    """Difference between the profit of a task that escapes and that of a task with a conviction."""
    burned: Floats
    burned_once: Floats
    """Amount that one conviction burns."""


class Measure(NamedTuple):
    """A column of the table and its closed form. `of` returns two values. The first is the measure's value
    that theory expects. The second is the difference in the measure between a task that escapes and a task
    with a conviction.
    """

    column: str
    text: str
    axis: str
    unit: int
    of: Callable[[Forms], tuple[Floats, Floats]]
    chance: bool = True
    """Whether the measure is a chance times an amount. If so, an absolute tolerance is enough near 0."""


MEASURES: Final = (
    Measure("escaped", "escape", "share that escapes", 1, lambda f: (f.escape, np.ones_like(f.escape))),
    Measure(
        "profit_solver_lazy", "cheater's profit", "tokens a task", TOKEN, lambda f: (f.profit, f.swing), False
    ),
    Measure("burned", "burned stake", "tokens a task", TOKEN, lambda f: (f.burned, f.burned_once)),
)


class Baseline(Study):
    """Lazy solvers; some verifiers replay and the others do not."""

    name = "baseline"
    question = "Does the engine meet the closed forms of escape, profit and burned stake?"
    runs = 1024
    rounds = 20

    def parameters(self) -> MarketParameters:
        """A market with equal devices. When a solver is convicted, nobody but verifiers is paid from its
        stake, so the stake can be small.
        """
        return MarketParameters(device_spread=0.0, restitution=0, retrain_reward=0)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """The false share and the honest share."""
        return {"false_share": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), "honest_share": (0.3, 0.5, 0.7, 0.9)}

    def extra(self) -> Mapping[str, Extra]:
        """The composition of the population."""
        return {
            "false_share": Extra("share of the segments that a solver invents"),
            "honest_share": Extra("share of the verifiers that replay; the others attest whatever is served"),
        }

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """A population in which all solvers are lazy. Raises ParameterError if the closed forms do not apply."""
        own = self.parameters()
        for name in KNOWN.keys() - _WITH_TERM:
            kept, given = getattr(own, name), getattr(parameters, name)
            if given != kept:
                raise ParameterError(
                    f"{name}: expected {kept:g}, for the closed forms have no term for it, got {given:g}; leave it out"
                )
        solver = Lazy(point["false_share"])
        dearest = parameters.training_cost * solver.expected_effort(parameters) * (1 + 2 * parameters.markup)
        if dearest > parameters.budget:
            unit = KNOWN["budget"].metadata["unit"]
            raise ParameterError(
                f"budget: expected at least {unit.format(dearest)}, the highest ask, "
                f"got {unit.format(parameters.budget)}; raise it, for the closed forms sell every task"
            )
        honest = round(point["honest_share"] * parameters.verifier_count)
        return population(
            [(solver, parameters.solver_count)],
            [(Verifier(), honest), (Trusting(), parameters.verifier_count - honest)],
        )

    def answer(self, table: Table) -> Answer:
        """Claims on all three measures at every point, and a finding for each measure."""
        points = points_of(self, table)
        tasks = int(by_point(table, "run").shape[1] * table["rounds"][0])
        forms = self.forms(points)
        found = [_compared(self, measure, table, points, forms, tasks) for measure in MEASURES]
        own = set(points[0]) == set(self.axes())
        return Answer(
            [_finding(measure, points, claims, own) for measure, claims in zip(MEASURES, found)],
            [claim for claims in found for claim in claims],
        )

    def forms(self, points: Sequence[Point]) -> Forms:
        """The values that theory expects for one task at each point.

        Gas, which `cheating_profit` leaves out, is added here: for every task, and for every dispute.
        """
        cases = [self.case(point) for point in points]
        by_point = [case.parameters for case in cases]

        def all_of(name: str) -> Floats:
            return np.array([getattr(one, name) for one in by_point], dtype=np.float64)

        false = np.array([Lazy(p["false_share"]).false(one) for p, one in zip(points, by_point)])
        cost, gas = all_of("training_cost"), all_of("gas_price") * TOKEN
        effort = 1 - false / all_of("segments")
        price = np.array([expected_price(one, share) for one, share in zip(by_point, effort)])
        audit: dict[str, Any] = {
            "segments": all_of("segments"),
            "false": false,
            "segments_per_verifier": all_of("segments_per_verifier"),
            "verifiers": all_of("verifiers"),
            "honest": np.array([case.population.honest for case in cases]),
            "accounts": all_of("verifier_count"),
        }
        escape = escape_probability(**audit)
        gain, stake = all_of("gain"), all_of("stake")
        profit = cheating_profit(**audit, price=price, gain=gain, stake=stake, cost=cost, kept=0.0)
        burned = stake - all_of("reward") - all_of("restitution")
        fee, claims = all_of("audit_fee") * all_of("segments_per_verifier"), expected_claims(**audit)
        paid = claims.spoke * (all_of("game_cost") + fee) + claims.fees * fee
        return Forms(
            escape=escape,
            profit=profit - gas * (all_of("gas_task") + (1 - escape) * all_of("gas_defence")),
            swing=price + gain + stake + gas * all_of("gas_defence"),
            burned=(1 - escape) * burned - paid,
            burned_once=burned,
        )


def _compared(
    study: Study, measure: Measure, table: Table, points: Sequence[Point], forms: Forms, tasks: int
) -> list[Claim]:
    """A claim for each point: the measure's expected and measured values, and the error of its mean.

    The error is estimated from the table, with two lower limits. First, whether a task escapes is like a coin
    toss. So the error is at least the standard error of the mean of such tosses, times the amount by which
    one task's outcome changes the measure. Second, the error is at least the effect of one task on the mean,
    so that one event is allowed even if fewer are expected.
    """
    expected, swing = measure.of(forms)
    coin = np.maximum(np.sqrt(forms.escape * (1 - forms.escape) / tasks), 1 / tasks) * swing
    seen = standard_error(table, measure.column)
    error = np.where(np.isfinite(seen), np.maximum(coin, seen), coin)
    bound = CHANCE * swing if measure.chance else np.zeros_like(swing)
    numbers = np.stack([expected, mean(table, measure.column), error, bound]) / measure.unit
    return [
        Claim(
            f"{measure.text} at {_where(study, point)}",
            *numbers[:3, n].tolist(),
            draws=draws(table, n),
            bound=float(numbers[3, n]),
        )
        for n, point in enumerate(points)
    ]


def _where(study: Study, point: Point) -> str:
    return ", ".join(f"{name} {study.unit(name).format(value)}" for name, value in point.items())


def _finding(measure: Measure, points: Sequence[Point], claims: Sequence[Claim], own: bool) -> Finding:
    """A sentence with a figure. If the points are the study's own grid (`own`), the figure has lines over the
    grid; otherwise it plots measured against expected values.
    """
    worst = max(map(_off, claims))
    holding = sum(claim.holds for claim in claims)
    verb = "agree" if holding == len(claims) else "do not agree"
    sentence = (
        f"Engine and theory {verb} on the {measure.text}: {holding:,} of {len(claims):,} points within 4 standard "
        f"errors of both seeds together, the farthest {worst:.1f} away"
    )
    return Finding(sentence, _lines(measure, points, claims) if own else _parity(measure, claims))


def _off(claim: Claim) -> float:
    """Distance between expected and measured values, in standard errors. If the standard error is 0, the
    distance is 0 for a claim that holds and infinite for one that does not.
    """
    if claim.error == 0:
        return 0.0 if claim.holds else math.inf
    return abs(claim.expected - claim.measured) / claim.error


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
