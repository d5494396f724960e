"""Recommended terms in the engine: cheating must lose and honest work must earn at every edge of the terms'
margins.

The terms are those that `assay submit` recommends for each number of segments. An edge (`EDGES`) is a set of
assumptions about the world around the terms: the honest share of verifiers, the gain of a false result, the
cost of training and the price of gas. sim.studies.margins has the closed forms behind the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from protocol.chain.parameters import TOKEN as CHAIN_TOKEN
from protocol.tasks.amounts import Amounts
from protocol.tasks.task import RATE_OF_ALL
from sim.agents.population import Population, population
from sim.agents.verifiers import Trusting, Verifier
from sim.engine.simulate import Case
from sim.mechanism.arrays import Floats
from sim.parameters import MarketParameters
from sim.recommendation import recommended
from sim.studies.cheaters import Disguised
from sim.studies.margins import margins
from sim.studies.points import of_both, where
from sim.studies.sizes import bounded
from sim.studies.study import Answer, Claim, Extra, Finding, Point, Study, Table
from sim.studies.tables import by_point, draws, mean, points_of, standard_error
from sim.theory import cheating_advantage
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEGMENTS: Final = (8, 20, 60, 200)
BUDGET: Final = MarketParameters().budget
_CENTRE: Final[Mapping[str, float]] = {
    "honest_share": 0.7,
    "gain": BUDGET,
    "training_cost": MarketParameters().training_cost,
    "gas_price": MarketParameters().gas_price,
}
EDGES: Final[Mapping[str, Mapping[str, float]]] = {
    "centre": {},
    "half of the verifiers honest": {"honest_share": 0.5},
    "gain of 2 budgets": {"gain": 2 * BUDGET},
    "work at half the price": {"training_cost": 30 * TOKEN},
    "work at 1.4 times the price": {"training_cost": 84 * TOKEN},
    "gas at 5 times the price": {"gas_price": 5 * MarketParameters().gas_price},
    "all of the cheater's at once": {"honest_share": 0.5, "gain": 2 * BUDGET, "training_cost": 30 * TOKEN},
}
_ASKED: Final = "as asked"
"""Name for the group of points that are on no edge."""
_HONEST: Final = 0.0
_CHEATERS: Final = (0.001, 0.1, 0.5, 1.0)
"""The shares of false segments with which cheaters are played. The first share is so small that it means one
segment.
"""


@cache
def parameters_for(segments: int) -> MarketParameters:
    """The market with the terms that `assay submit` recommends for K segments. Raises NoRecommendation."""
    return market(segments, recommended(segments, BUDGET * CHAIN_TOKEN // TOKEN))


def market(segments: int, amounts: Amounts) -> MarketParameters:
    """A market with the given amounts, which are in the chain's units."""
    values = {
        name: value if name in ("verifiers", "segments_per_verifier") else value * TOKEN // CHAIN_TOKEN
        for name, value in asdict(amounts).items()
        if name != "look_chance" and (name != "seat_lock" or amounts.look_chance)
    }
    # Devices are alike, as the closed form requires; the markup covers gas, which bids leave out.
    chance = amounts.look_chance / RATE_OF_ALL
    return MarketParameters(segments=segments, device_spread=0.0, markup=0.5, look_chance=chance, **values)


class Recommended(Study):
    """Plays several false shares at each edge (`EDGES`), and compares them with honest work at the same
    edge.
    """

    name = "recommended"
    question = "Which terms make cheating lose and honest work earn, and how far does that reach?"
    runs = 2048
    rounds = 8

    def parameters(self) -> MarketParameters:
        """The market with the terms for the largest number of segments. It is only the default, because
        `case` uses the terms for each point's own number of segments.
        """
        return parameters_for(SEGMENTS[-1])

    def axes(self) -> Mapping[str, Sequence[float]]:
        """The axes: the sizes of tasks, and the false shares. `points` crosses them with the edges."""
        return {
            "segments": SEGMENTS,
            "false_share": (_HONEST, *_CHEATERS),
            **{name: (value,) for name, value in _CENTRE.items()},
        }

    def extra(self) -> Mapping[str, Extra]:
        """The composition of the population."""
        return {
            "false_share": Extra("share of the segments that solvers invent; 0: they are honest"),
            "honest_share": Extra("share of the verifiers that replay; the others attest what is served"),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Every task size with every false share, at each edge. If the operator gives an axis other than
        these two, there are no edges: that axis is varied too, and parameters without a given axis stay at
        the centre.
        """
        grid = super().points(given)
        names = {self.known(name) for name in given}
        edges = EDGES.values() if not names - {"segments", "false_share"} else [{}]
        bounded(len(edges) * len(grid), {**self.axes(), **given})
        return [{**point, **edge} for edge in edges for point in grid]

    def case(self, point: Point) -> Case:
        """The recommended terms for the point's K, changed by the point's other values."""
        base = parameters_for(int(point["segments"]))
        own = self.extra()
        parameters = base.with_values({name: value for name, value in point.items() if name not in own})
        return Case(parameters, self.population(parameters, point))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """Either all solvers cheat or none does; they bid the same in both cases. Verifiers are honest or
        trusting, with at least one of each kind, because the two kinds are compared.
        """
        honest = of_both(point["honest_share"], parameters)
        share = point["false_share"]
        return population(
            [(Disguised(share=share, rate=float(share > 0)), parameters.solver_count)],
            [(Verifier(), honest), (Trusting(), parameters.verifier_count - honest)],
        )

    def answer(self, table: Table) -> Answer:
        """Findings on the played points, then on the closed forms."""
        played = self._played(table)
        if played is None:
            return Answer([Finding("Only honest or only false work was played: nothing can be compared")])
        return Answer(
            [played.cheating(), played.earning(), *margins()],
            played.claims(),
        )

    def claims(self, table: Table) -> Sequence[Claim]:
        """The claims of `answer`, computed without the findings on the closed forms."""
        played = self._played(table)
        return [] if played is None else played.claims()

    def _played(self, table: Table) -> _Played | None:
        """The played points; None unless both honest and false work were played."""
        points = points_of(self, table)
        honest = [point["false_share"] == _HONEST for point in points]
        return _Played(self, table, points) if any(honest) and not all(honest) else None


class _Played:
    """The played points. Holds the advantage of cheating and the solvers' profits at each point, in tokens
    per task, and groups the points by edge.
    """

    def __init__(self, study: Recommended, table: Table, points: Sequence[Point]) -> None:
        self.study, self.points, self.table = study, points, table
        self.profit = by_point(table, "profit_solver_disguised") / TOKEN
        self.base = [
            next(
                number
                for number, other in enumerate(points)
                if {**other, "false_share": 0} == {**point, "false_share": 0}
                and other["false_share"] == _HONEST
            )
            for point in points
        ]
        means, errors = self.profit.mean(axis=1), standard_error(table, "profit_solver_disguised") / TOKEN
        self.advantage: Floats = means - means[self.base]
        self.error: Floats = np.hypot(errors, errors[self.base])
        """Standard errors of `advantage`. An advantage compares a point with its honest counterpart. The two
        have different random numbers, so the errors of both count.
        """

    def _edges(self) -> dict[str, list[int]]:
        """Numbers of the points of each played edge; points on no edge are listed under `_ASKED`."""
        found = {}
        for name, edge in EDGES.items():
            at = {**_CENTRE, **edge}
            numbers = [n for n, point in enumerate(self.points) if all(point[k] == v for k, v in at.items())]
            if numbers:
                found[name] = numbers
        others = set(range(len(self.points))).difference(*found.values())
        return {**found, _ASKED: sorted(others)} if others else found

    def _place(self, edge: str, number: int) -> str:
        """A point of an edge in words: its number of segments, and any other varied parameters."""
        point = self.points[number]
        more = [
            name
            for name, value in point.items()
            if name not in ("segments", "false_share")
            and (edge == _ASKED or name not in _CENTRE)
            and any(other[name] != value for other in self.points)
        ]
        words = [f"{point['segments']:g} segments", *(where(self.study, point, name) for name in more)]
        return f"{edge!r} with {', '.join(words)}"

    def cheating(self) -> Finding:
        """A finding on the best cheater's advantage at each edge."""
        series, best = [], {}
        for name, numbers in self._edges().items():
            cheats = [n for n in numbers if self.points[n]["false_share"] > 0]
            sizes = sorted({int(self.points[n]["segments"]) for n in cheats})
            most = [
                max((n for n in cheats if self.points[n]["segments"] == k), key=self.advantage.__getitem__)
                for k in sizes
            ]
            best[name] = max(most, key=self.advantage.__getitem__)
            series.append((name, sizes, self.advantage[most], 2 * self.error[most]))
        worst = max(best, key=lambda name: self.advantage[best[name]])
        number = best[worst]
        loses = all(self.advantage[n] + 2 * self.error[n] < 0 for n in best.values())
        places = "at every edge of the margins" if best.keys() == EDGES.keys() else "wherever it was played"
        sentence = (
            f"Cheating {'loses' if loses else 'does not lose'} {places}: at most {self.advantage[number]:+,.0f} tokens "
            f"a task, at {self._place(worst, number)}"
        )
        return Finding(sentence, _figure(series, "advantage of the best cheater, tokens a task"))

    def earning(self) -> Finding:
        """A finding on the earnings of honest solvers and of honest verifiers. Only points with honest
        solvers count.
        """
        seats = mean(self.table, "profit_verifier_honest") / TOKEN
        series, least = [], []
        for name, numbers in self._edges().items():
            honest = [n for n in numbers if self.points[n]["false_share"] == _HONEST]
            sizes = [int(self.points[n]["segments"]) for n in honest]
            earned = [(self.profit[n].mean(), seats[n] / self._seated(n)) for n in honest]
            series.append((name, sizes, np.array([seat for _, seat in earned]), np.zeros(len(honest))))
            least += [(*pair, name, size) for pair, size in zip(earned, sizes)]
        solver, seat = min(least, key=lambda one: one[0]), min(least, key=lambda one: one[1])
        verb = "earn" if solver[0] > 0 and seat[1] > 0 else "do not always earn"
        sentence = (
            f"Honest solvers and verifiers {verb}: a solver at least {solver[0]:,.2f} tokens a task ({solver[2]!r}), "
            f"an honest seat at least {seat[1]:,.2f} ({seat[2]!r}, {seat[3]} segments)"
        )
        return Finding(sentence, _figure(series, "profit of an honest seat, tokens a task"))

    def _seated(self, number: int) -> float:
        """Mean number of honest seats of a task."""
        case = self.study.case(self.points[number])
        return case.parameters.verifiers * case.population.honest

    def _price(self, number: int) -> float:
        """Mean price of a sold task, in tokens; `number` is a point with honest solvers."""
        sold = 1 - by_point(self.table, "unsold")[number]
        return float((by_point(self.table, "price")[number] * sold).sum() / max(sold.sum(), 1)) / TOKEN

    def claims(self) -> list[Claim]:
        """Claims on the advantage of cheating."""
        found = []
        for number, point in enumerate(self.points):
            if point["false_share"] == _HONEST:
                continue
            case = self.study.case(point)
            parameters = case.parameters
            false = Disguised(share=point["false_share"]).false(parameters)
            # If work is expensive, some tasks get no bid within the budget. Nobody gains or loses by them.
            sold = 1 - by_point(self.table, "unsold")[number].mean()
            price = self._price(self.base[number])
            expected = sold * cheating_advantage(
                segments=parameters.segments,
                false=false,
                segments_per_verifier=parameters.segments_per_verifier,
                verifiers=parameters.verifiers,
                honest=case.population.honest,
                price=price,
                gain=parameters.gain / TOKEN,
                stake=parameters.stake / TOKEN + parameters.gas_defence * parameters.gas_price,
                cost=parameters.training_cost / TOKEN,
                kept=0.0,
                accounts=parameters.verifier_count,
            )
            # Each task is a coin toss: even if none escaped, one could have.
            tasks = draws(self.table, number)
            coin = (price + parameters.gain / TOKEN + parameters.stake / TOKEN) / tasks
            where = ", ".join(
                f"{name} {self.study.unit(name).format(value)}" for name, value in point.items()
            )
            found.append(
                Claim(
                    f"advantage at {where}",
                    float(expected),
                    float(self.advantage[number]),
                    max(float(self.error[number]), coin),
                    draws=draws(self.table, number, self.base[number]),
                )
            )
        return found


def _figure(series: Sequence[tuple[str, Sequence[int], Floats, Floats]], y: str) -> Figure:
    from sim.figures import Line, lines

    return lines(
        [Line(name, sizes, values, values - band, values + band) for name, sizes, values, band in series],
        x="K: segments of a task",
        y=y,
        level=0.0,
    )
