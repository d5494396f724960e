"""Liveness: how many right tasks end void because verifiers are offline, gas is dear, or nobody proves a draw.

All verifiers are thrifty: they act when the fee covers gas and replay. Everybody meets the same gas price, so a spike
silences all of them at once, and neither more seats nor redraws help; downtime takes them one by one.
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
from sim.studies.study import Answer, Claim, Finding, Point, Study, Table
from sim.studies.tables import by_point, mean, points_of, standard_error
from sim.theory import draw_lost_probability, least_up, void_probability
from sim.theory.liveness import MOST_SEATS
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 0.01
"""Share of void tasks that is taken to be bearable."""
_LEAST = 1e-6
"""Smaller shares are not drawn: a logarithmic axis has no 0."""
SEATS = ("downtime", "verifiers")
OVERLAP = ("segments_per_verifier", "matches", "downtime")
REDRAWS = ("redraws", "downtime")
SPIKES = ("audit_fee", "gas_volatility")
MISSES = ("draw_missed", "max_misses")
GRIDS: Sequence[Grid] = (SEATS, OVERLAP, REDRAWS, SPIKES, MISSES)
_WITHOUT_TERM = (
    "device_spread",
    "crash_rate",
    "silence_rate",
    "arrival_rate",
    "token_volatility",
    "solver_capital",
)


class Liveness(Study):
    """Honest solvers, thrifty verifiers, and what keeps them from answering."""

    name = "liveness"
    question = "How many right tasks end void when verifiers are offline, gas is dear or draws are missed?"
    runs = 512
    rounds = 4

    def parameters(self) -> MarketParameters:
        """Few segments, so that seats can overlap; the fee is half as much again as a replay."""
        return MarketParameters(segments=20, audit_fee=5 * TOKEN, device_spread=0.0)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """A grid for each cause, and one for seats that overlap."""
        return {
            "downtime": (0.001, 0.01, 0.03, 0.1),
            "verifiers": (1, 2, 3, 5, 8),
            "segments_per_verifier": (1, 4, 8, 12, 16, 18, 20),
            "matches": (1, 2),
            "redraws": (0, 1, 2),
            "audit_fee": tuple(round(fee * TOKEN) for fee in (3.4, 3.5, 3.8, 4.5, 5, 6, 8)),
            "gas_volatility": (0.25, 0.5, 1.0),
            "draw_missed": (0.03, 0.07, 0.15, 0.3, 0.5),
            "max_misses": (0, 1, 2, 4),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """All grids."""
        return asked(self, given, GRIDS)

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """Raises ParameterError where the closed forms do not reach."""
        del point
        require(self.parameters(), parameters, _WITHOUT_TERM)
        return population([(Solver(), parameters.solver_count)], [(Thrifty(), parameters.verifier_count)])

    def answer(self, table: Table) -> Answer:
        """A claim for each point, a finding for each grid that was played."""
        points = points_of(self, table)
        rounds = int(table["rounds"][0])
        expected = np.array([self.void(self.case(point).parameters, rounds) for point in points])
        seen, error = mean(table, "void"), self._error(table, expected)
        claims = [
            Claim(f"void at {where(self, point)}", *map(float, numbers))
            for point, *numbers in zip(points, expected, seen, error)
        ]
        findings = [
            finding(laid)
            for grid, (along, finding) in _FINDINGS.items()
            if len((laid := Laid(self, points, expected, seen, grid)).values(along)) > 1
        ]
        return Answer(findings or [agreement(claims)], claims)

    def void(self, parameters: MarketParameters, rounds: int) -> float:
        """What theory expects: a draw is lost, dear gas silences everybody, or each seat is silent by itself.

        A seat that is drawn again R times answers with chance 1 - downtime^(R + 1).
        """
        silent = void_probability(
            segments=parameters.segments,
            segments_per_verifier=parameters.segments_per_verifier,
            verifiers=parameters.verifiers,
            matches=parameters.matches,
            up=1 - parameters.downtime ** (parameters.redraws + 1),
            accounts=parameters.verifier_count if parameters.verifiers <= MOST_SEATS else None,
        )
        lost = draw_lost_probability(missed=parameters.draw_missed, most_misses=parameters.max_misses)
        return 1 - (1 - silent) * (1 - dear(parameters, rounds)) * (1 - lost)

    def _error(self, table: Table, expected: Floats) -> Floats:
        """A task is a coin; where less than one void is expected in all, one is no contradiction."""
        tasks = by_point(table, "run").shape[1] * table["rounds"][0]
        coin = np.maximum(np.sqrt(expected * (1 - expected) / tasks), 1 / tasks)
        seen = standard_error(table, "void")
        error: Floats = np.where(np.isfinite(seen), np.maximum(coin, seen), coin)
        return error


def dear(parameters: MarketParameters, rounds: int) -> float:
    """Chance that gas and replay cost more than the fee, on average over the rounds of a run.

    The logarithm of the gas price in round t is normal: mean that of the start less t s^2 / 2, deviation s sqrt(t).
    """
    margin = parameters.audit_fee - parameters.replay_cost * parameters.training_cost / parameters.segments
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
    """One grid of the table."""

    def __init__(
        self, study: Study, points: Sequence[Point], expected: Floats, seen: Floats, grid: Grid
    ) -> None:
        self.study = study
        numbers = within(study, points, grid)
        self.points = [points[number] for number in numbers]
        self.expected, self.seen = expected[numbers], seen[numbers]

    def values(self, name: str) -> list[float]:
        """What a parameter has in the grid, ascending."""
        return sorted({point[name] for point in self.points})

    def at(self, **fixed: float) -> list[int]:
        """Numbers of the points with these values."""
        return [
            n for n, p in enumerate(self.points) if all(p[name] == value for name, value in fixed.items())
        ]

    def figure(self, x: str, by: str, label: str, names: str, *, scale: float = 1, **fixed: float) -> Figure:
        """Void over one parameter, a line for each value of another."""
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
        y = "void tasks, % (lines: theory, dots: engine)"
        some = bool((np.maximum(self.expected, self.seen) > _LEAST).any())
        logarithmic = x == "downtime" and min(self.values(x)) > 0
        return lines(series, x=label, y=y, log_x=logarithmic and some, log_y=some, level=100 * MOST)


def _positive(shares: Floats) -> Floats:
    return np.where(shares > _LEAST, shares, np.nan)


def _seats(laid: Laid) -> Finding:
    """Each seat alone can void a task."""
    down = laid.values("downtime")[-1]
    numbers = sorted(laid.at(downtime=down), key=lambda n: laid.points[n]["verifiers"])
    shares = [f"{laid.seen[n]:.2%} with {laid.points[n]['verifiers']:.0f}" for n in numbers]
    bearable = []
    for seats in laid.values("verifiers"):
        parameters = laid.study.case(laid.points[laid.at(verifiers=seats)[0]]).parameters
        up = least_up(
            segments=parameters.segments,
            segments_per_verifier=parameters.segments_per_verifier,
            verifiers=parameters.verifiers,
            matches=parameters.matches,
            void=MOST,
        )
        bearable.append(f"{1 - up:.2%} with {seats:.0f}")
    first, last = laid.seen[numbers[0]], laid.seen[numbers[-1]]
    verb = "void more tasks" if last > first else "void no more tasks"
    return Finding(
        f"More verifiers {verb}: where {down:.1%} are offline, {', '.join(shares)}; voids stay below {MOST:.0%} "
        f"by theory where no more are offline than {', '.join(bearable)}",
        laid.figure("downtime", "verifiers", "share of verifiers that are offline", "V = {}"),
    )


def _overlap(laid: Laid) -> Finding:
    """What a second attestation asks for, and from where on seats that overlap bring something."""
    down = laid.values("downtime")[-1]
    words = []
    for matches in laid.values("matches"):
        numbers = sorted(
            laid.at(downtime=down, matches=matches), key=lambda n: laid.points[n]["segments_per_verifier"]
        )
        shares = laid.seen[numbers]
        draws = [laid.points[n]["segments_per_verifier"] for n in numbers]
        most, last = int(np.argmax(shares)), len(draws) - 1
        many = np.flatnonzero(shares > shares[most] / 2)
        first = int(many[-1]) + 1 if many.size else 0
        fewer = f"from q = {draws[first]:.0f} on" if 0 < first <= last else "at no q tried"
        words.append(
            f"{fewer} with A = {matches:.0f} ({shares[most]:.2%} void at q = {draws[most]:.0f}, "
            f"{shares[last]:.2%} at q = {draws[last]:.0f})"
        )
    segments = laid.study.case(laid.points[0]).parameters.segments
    return Finding(
        f"Where {down:.0%} are offline and K = {segments}, drawing segments several times saves half of the tasks that "
        f"would be void {'; '.join(words)}",
        laid.figure(
            "segments_per_verifier", "matches", "q, segments drawn for each verifier", "A = {}", downtime=down
        ),
    )


def _redrawn(laid: Laid) -> Finding:
    """How many redraws each downtime needs."""
    words = []
    for down in laid.values("downtime"):
        enough = [laid.points[n]["redraws"] for n in laid.at(downtime=down) if laid.seen[n] <= MOST]
        most = laid.values("redraws")[-1]
        words.append(f"{min(enough):.0f} at {down:.1%}" if enough else f"more than {most:.0f} at {down:.1%}")
    return Finding(
        f"Redraws that keep void tasks at {MOST:.0%} or below, by the share of verifiers that are offline: "
        f"{', '.join(words)}",
        laid.figure("downtime", "redraws", "share of verifiers that are offline", "R = {}"),
        note="Redraws are dispute.md section 3; the contracts void the task.",
    )


def _spikes(laid: Laid) -> Finding:
    """The least fee tried that outlasts spikes."""
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
    gas = parameters.gas_attest * parameters.gas_price
    return Finding(
        f"Gas spikes silence everybody at once: beside a replay of {replay:.3g} and gas of {gas:.2g} tokens, the least "
        f"fee that keeps void tasks at {MOST:.0%} or below is {', '.join(words)}",
        laid.figure("audit_fee", "gas_volatility", "audit fee, tokens", "volatility {}", scale=TOKEN),
    )


def _missed(laid: Laid) -> Finding:
    """How often a draw may be missed, for each number of tries."""
    words = []
    for tries in laid.values("max_misses"):
        bearable = [laid.points[n]["draw_missed"] for n in laid.at(max_misses=tries) if laid.seen[n] <= MOST]
        chance = f"{max(bearable):.0%}" if bearable else "none tried"
        words.append(f"{chance} with {tries:.0f}")
    return Finding(
        f"The greatest chance of a missed draw that voids at most {MOST:.0%} of the tasks, by the misses that are "
        f"allowed: {', '.join(words)}",
        laid.figure("draw_missed", "max_misses", "chance that a draw is missed", "{} misses allowed"),
        note="Whose draw is never proved also loses its stake, which burns; it can prove it itself.",
    )


_FINDINGS: Final[Mapping[Grid, tuple[str, Callable[[Laid], Finding]]]] = {
    SEATS: ("verifiers", _seats),
    OVERLAP: ("segments_per_verifier", _overlap),
    REDRAWS: ("redraws", _redrawn),
    SPIKES: ("audit_fee", _spikes),
    MISSES: ("draw_missed", _missed),
}
"""By grid: the parameter that must have been varied for its finding, and what reads it."""
