"""Liveness: how often right tasks are redrawn, and how many stall, because verifiers are offline or gas is
expensive.

All verifiers are thrifty: they act if the fee plus the cost of silence covers gas and replays. All of them
face the same gas price, so a spike silences all at once and redraws do not help; downtime affects each
independently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

import numpy as np

from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.verifiers import Thrifty
from sim.mechanism.arrays import Floats
from sim.parameters import MarketParameters
from sim.studies.grids import Grid, within
from sim.studies.points import agreement, asked, require, where
from sim.studies.study import CHANCE, Answer, Claim, Finding, Point, Study, Table
from sim.studies.tables import by_point, draws, mean, points_of, standard_error
from sim.theory import expected_redraws, least_up, stall_probability
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 0.01
"""Tolerated share of stalled tasks."""
_LEAST = 1e-6
"""Smallest share that is plotted, because a logarithmic axis has no 0."""
SEATS = ("downtime", "verifiers")
REDRAWS = ("redraws", "downtime")
SPIKES = ("audit_fee", "gas_volatility")
GRIDS: Sequence[Grid] = (SEATS, REDRAWS, SPIKES)
_WITHOUT_TERM = (
    "device_spread",
    "crash_rate",
    "silence_rate",
    "arrival_rate",
    "token_volatility",
    "solver_capital",
    "overlap",
    "beacon_stops",
)


class Liveness(Study):
    """Honest solvers and thrifty verifiers, with downtime and gas spikes."""

    name = "liveness"
    question = "How often are right tasks drawn again, and how many stall, when verifiers are offline or gas is dear?"
    runs = 1024
    rounds = 8

    def parameters(self) -> MarketParameters:
        """Few segments and redraws, so that some tasks stall."""
        return MarketParameters(segments=20, audit_fee=5 * TOKEN, device_spread=0.0, redraws=3)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """Axes of three grids: downtime by seats, redraws by downtime, and audit fees by gas volatility."""
        return {
            "downtime": (0.001, 0.01, 0.03, 0.1, 0.3),
            "verifiers": (1, 2, 3, 5, 8),
            "redraws": (0, 1, 2, 4, 8),
            "audit_fee": tuple(round(fee * TOKEN) for fee in (1.7, 1.75, 1.8, 2, 3, 5)),
            "gas_volatility": (0.25, 0.5, 1.0),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Points of all grids."""
        return asked(self, given, GRIDS)

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """Honest solvers and thrifty verifiers. Raises ParameterError if the closed forms do not apply."""
        del point
        require(self.parameters(), parameters, _WITHOUT_TERM)
        return population([(Solver(), parameters.solver_count)], [(Thrifty(), parameters.verifier_count)])

    def answer(self, table: Table) -> Answer:
        """Claims for each point, and a finding for each grid that was played."""
        points = points_of(self, table)
        rounds = int(table["rounds"][0])
        cases = [self.case(point).parameters for point in points]
        expected = np.array([self.stalled(parameters, rounds) for parameters in cases])
        seen, error = mean(table, "stalled"), self._error(table, expected)
        claims = [
            Claim(
                f"stalled at {where(self, point)}", *map(float, numbers), draws=draws(table, n), bound=CHANCE
            )
            for n, (point, *numbers) in enumerate(zip(points, expected, seen, error))
        ]
        claims += self._redraws(table, points, rounds)
        findings = [
            finding(laid)
            for grid, (along, finding) in _FINDINGS.items()
            if len((laid := Laid(self, points, expected, seen, grid, mean(table, "redrawn"))).values(along))
            > 1
        ]
        return Answer(findings or [agreement(claims)], claims)

    def stalled(self, parameters: MarketParameters, rounds: int) -> float:
        """The expected share of stalled tasks. A task stalls if expensive gas silences everybody, or if a
        seat stays silent through all redraws because its verifiers are offline.
        """
        silent = stall_probability(
            verifiers=parameters.verifiers, up=1 - parameters.downtime, redraws=parameters.redraws
        )
        return 1 - (1 - silent) * (1 - dear(parameters, rounds))

    def _redraws(self, table: Table, points: Sequence[Point], rounds: int) -> list[Claim]:
        """Claims on the number of redraws per task at each point."""
        claims = []
        tasks = by_point(table, "run").shape[1] * rounds
        means, errors = mean(table, "redrawn"), standard_error(table, "redrawn")
        for number, point in enumerate(points):
            parameters = self.case(point).parameters
            costly = dear(parameters, rounds)
            drawn = expected_redraws(
                verifiers=parameters.verifiers, up=1 - parameters.downtime, redraws=parameters.redraws
            )
            least = max(1.0, parameters.redraws * float(np.sqrt(costly * (1 - costly) * tasks))) / tasks
            claims.append(
                Claim(
                    f"redraws a task at {where(self, point)}",
                    (1 - costly) * drawn + costly * parameters.redraws,
                    float(means[number]),
                    max(float(errors[number]), least),
                    draws=draws(table, number),
                    bound=CHANCE,
                )
            )
        return claims

    def _error(self, table: Table, expected: Floats) -> Floats:
        """Standard errors of the share of stalled tasks. They are at least those of coin tosses, because each
        task either stalls or does not. They are also at least the effect of one stall, so that one stall is
        allowed even if fewer are expected.
        """
        tasks = by_point(table, "run").shape[1] * table["rounds"][0]
        coin = np.maximum(np.sqrt(expected * (1 - expected) / tasks), 1 / tasks)
        seen = standard_error(table, "stalled")
        error: Floats = np.where(np.isfinite(seen), np.maximum(coin, seen), coin)
        return error


def dear(parameters: MarketParameters, rounds: int) -> float:
    """Chance that gas and replays cost more than the fee plus the cost of silence, averaged over the rounds
    of a run.

    The logarithm of the gas price in round t is normal. Its standard deviation is s sqrt(t), where s is
    `gas_volatility`. Its mean is the logarithm of the starting price minus t s^2 / 2.
    """
    replays = parameters.replay_cost * parameters.training_cost / parameters.segments
    margin = parameters.seat_fee + parameters.silence_costs - parameters.segments_per_verifier * replays
    cost, spread = parameters.gas_attest * parameters.gas_price * TOKEN, parameters.gas_volatility
    if margin <= 0:
        return 1.0
    if not cost or not spread:
        return float(cost >= margin)
    far = math.log(margin / cost)
    normal = NormalDist()
    return (
        sum(normal.cdf(-(far + t * spread**2 / 2) / (spread * math.sqrt(t))) for t in range(1, rounds + 1))
        / rounds
    )


class Laid:
    """The results of one grid."""

    def __init__(
        self,
        study: Study,
        points: Sequence[Point],
        expected: Floats,
        seen: Floats,
        grid: Grid,
        redrawn: Floats,
    ) -> None:
        self.study = study
        numbers = within(study, points, grid)
        self.points = [points[number] for number in numbers]
        self.expected, self.seen, self.redrawn = expected[numbers], seen[numbers], redrawn[numbers]

    def values(self, name: str) -> list[float]:
        """A parameter's values in the grid, ascending."""
        return sorted({point[name] for point in self.points})

    def at(self, **fixed: float) -> list[int]:
        """For all points that have these parameter values, their indices in `points`."""
        return [
            n for n, p in enumerate(self.points) if all(p[name] == value for name, value in fixed.items())
        ]

    def figure(self, x: str, by: str, label: str, names: str, *, scale: float = 1, **fixed: float) -> Figure:
        """A plot of the share of stalled tasks over one parameter, with a line for each value of another."""
        from sim.figures import Line, lines

        series = []
        for value in self.values(by):
            numbers = sorted(self.at(**{by: value}, **fixed), key=lambda n: self.points[n][x])
            series.append(
                Line(
                    names.format(self.study.unit(by).format(value)),
                    [self.points[n][x] / scale for n in numbers],
                    100 * _positive(self.expected[numbers]),
                    points=100 * _positive(self.seen[numbers]),
                )
            )
        y = "stalled tasks, % (lines: theory, dots: engine)"
        some = bool((np.maximum(self.expected, self.seen) > _LEAST).any())
        logarithmic = x == "downtime" and min(self.values(x)) > 0
        return lines(series, x=label, y=y, log_x=logarithmic and some, log_y=some, level=100 * MOST)


def _positive(shares: Floats) -> Floats:
    return np.where(shares > _LEAST, shares, np.nan)


def _seats(laid: Laid) -> Finding:
    """A finding on redraws and on tolerable downtime, by the number of seats. Each seat can delay a task."""
    down = laid.values("downtime")[-1]
    numbers = sorted(laid.at(downtime=down), key=lambda n: laid.points[n]["verifiers"])
    again = [f"{laid.redrawn[n]:.2f} times with {laid.points[n]['verifiers']:.0f}" for n in numbers]
    redraws = laid.study.parameters().redraws
    bearable = [
        f"{1 - least_up(verifiers=int(seats), redraws=redraws, stalled=MOST):.0%} with {seats:.0f}"
        for seats in laid.values("verifiers")
    ]
    return Finding(
        f"Each silent seat is drawn again: where {down:.0%} are offline a task is redrawn {', '.join(again)} seats; "
        f"with {redraws} redraws at most {MOST:.0%} stall by theory where no more are offline than "
        f"{', '.join(bearable)}",
        laid.figure("downtime", "verifiers", "share of verifiers that are offline", "V = {}"),
        note=f"The recommended stall period has time for {MarketParameters().redraws} redraws.",
    )


def _redrawn(laid: Laid) -> Finding:
    """A finding on redraws. For each downtime, it names the lowest of the tried numbers of redraws with which
    the share of stalled tasks is at most `MOST`.
    """
    words = []
    for down in laid.values("downtime"):
        enough = [laid.points[n]["redraws"] for n in laid.at(downtime=down) if laid.seen[n] <= MOST]
        most = laid.values("redraws")[-1]
        words.append(f"{min(enough):.0f} at {down:.1%}" if enough else f"more than {most:.0f} at {down:.1%}")
    return Finding(
        f"Redraws that keep stalled tasks at {MOST:.0%} or below, by the share of verifiers that are offline: "
        f"{', '.join(words)}",
        laid.figure("downtime", "redraws", "share of verifiers that are offline", "R = {}"),
    )


def _spikes(laid: Laid) -> Finding:
    """A finding on fees. For each gas volatility, it names the lowest of the tried fees with which the share
    of stalled tasks is at most `MOST`.
    """
    words = []
    for spread in laid.values("gas_volatility"):
        numbers = laid.at(gas_volatility=spread)
        enough = [laid.points[n]["audit_fee"] / TOKEN for n in numbers if laid.seen[n] <= MOST]
        words.append(
            (f"{min(enough):g} tokens" if enough else "more than any tried")
            + f" at a volatility of {spread:g} a round"
        )
    parameters = laid.study.case(laid.points[0]).parameters
    replay = parameters.replay_cost * parameters.training_cost / parameters.segments / TOKEN
    gas = parameters.gas_attest * parameters.gas_price / parameters.segments_per_verifier
    return Finding(
        f"Gas spikes silence everybody at once: beside a replay of {replay:.3g} and gas of {gas:.2g} tokens a segment, "
        f"the least fee that keeps stalled tasks at {MOST:.0%} or below is {', '.join(words)}",
        laid.figure("audit_fee", "gas_volatility", "audit fee, tokens", "volatility {}", scale=TOKEN),
        note="Half of the replay's cost is enough, for who is silent loses the fee besides not earning it.",
    )


_FINDINGS: Final[Mapping[Grid, tuple[str, Callable[[Laid], Finding]]]] = {
    SEATS: ("verifiers", _seats),
    REDRAWS: ("redraws", _redrawn),
    SPIKES: ("audit_fee", _spikes),
}
"""For each grid, the parameter that must have several values for the grid's finding, and the function that
makes the finding.
"""
