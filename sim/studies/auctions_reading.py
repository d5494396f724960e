"""Reads the results of the auctions study (`sim.studies.auctions`). Makes the claims for each format and each
rule, the findings, and the figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from sim.mechanism.arrays import Floats
from sim.parameters import MarketParameters
from sim.studies.grids import within
from sim.studies.points import where
from sim.studies.study import CHANCE, Claim, Finding, Point, Study, Table
from sim.studies.tables import by_point, draws, mean, standard_error
from sim.theory import (
    Market,
    Outcome,
    descending,
    efficiency,
    late,
    ordered_cost_variance,
    posted_price,
    second_price,
)
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS: Final = {
    "descending": descending,
    "late": late,
    "second_price": second_price,
    "posted_price": posted_price,
}
"""The closed form of each format, by the names of `AUCTIONS`."""
_SAME: Final = 0.005
"""Difference of two shares below which findings treat the shares as equal."""
BIDDERS = ("solver_count",)
BUDGETS = ("budget",)
LOADS = ("load", "economy")
Values = Callable[[str, Sequence[int]], tuple[Floats, Floats] | None]
"""A function of a format and a list of point numbers. It returns the expected and the measured values, or
None to omit the format.
"""


def market_of(parameters: MarketParameters) -> Market:
    """The bidders in the terms of `sim.theory`: the devices' costs are uniform around the median device's cost."""
    cost, half = parameters.training_cost, parameters.device_range / 2
    return Market(parameters.solver_count, cost * (1 - half), cost * (1 + half), parameters.budget)


def of_formats(
    study: Study, point: Point, parameters: MarketParameters, table: Table, number: int
) -> list[Claim]:
    """Claims at one point: for each format, on the share of tasks that are sold, the price, and the cost."""
    market, here = market_of(parameters), where(study, point, "solver_count", "budget")
    tasks = by_point(table, "run").shape[1] * table["rounds"][0]
    claims = []
    for name, form in FORMATS.items():
        outcome = form(market)
        # If nearly all or no tasks are sold, one task more or less is allowed. Amounts are rounded up to a
        # unit.
        coin = math.sqrt(outcome.trade * (1 - outcome.trade) / tasks)
        once = max(coin, 1 / tasks) if outcome.trade < 1 else 0.0
        for column, expected, unit in (
            ("trade", outcome.trade, 1),
            ("price", outcome.price, TOKEN),
            ("cost", outcome.cost, TOKEN),
        ):
            measure = f"{column}_{name}"
            least = max(once * expected, 1.0) if unit > 1 else once
            error = _error(table, measure, number, least)
            text = f"{name.replace('_', ' ')}: {column} at {here}"
            claims.append(
                Claim(
                    text,
                    expected / unit,
                    float(mean(table, measure)[number]) / unit,
                    error / unit,
                    draws=draws(table, number),
                    bound=CHANCE if unit == 1 else 0.0,
                )
            )
    return claims


def of_variances(by_point: Sequence[MarketParameters], table: Table, numbers: Sequence[int]) -> list[Claim]:
    """Claims on the variance of second prices. There is one for each point with at least two bidders and a
    budget that no cost exceeds. There are none at all if runs have several tasks.
    """
    claims = []
    if table["rounds"][0] > 1:
        return []
    for number in numbers:
        market = market_of(by_point[number])
        n = market.bidders
        if n < 2 or market.budget < market.high:
            continue
        measured, error = _variance(table, "second_price", number)
        text = f"second price: variance of the price at solver_count {n}"
        expected = ordered_cost_variance(market, 2) / TOKEN**2
        claims.append(Claim(text, expected, measured, error, draws=draws(table, number)))
    return claims


def _variance(table: Table, name: str, number: int) -> tuple[float, float]:
    """Variance of prices in square tokens, and its standard error; 0 and infinity for a single run."""
    prices = by_point(table, f"price_{name}")[number] / TOKEN
    runs = len(prices)
    if runs < 2:
        return 0.0, math.inf
    squares = (prices - prices.mean()) ** 2
    return float(squares.sum() / (runs - 1)), float(squares.std() / math.sqrt(runs))


def of_rules(study: Study, point: Point, table: Table, number: int) -> list[Claim]:
    """Claims on the share of tasks done, one for each of the two rules. Under the rule that the weakest able
    device wins, the expected share is the greatest possible one. Under the rule that the cheapest ask wins,
    the expected share is `done_form` of `sim.studies.matching`; there is no claim for this rule if `economy`
    is 0.
    """
    here = where(study, point, "load", "economy")
    claims = []
    for rule, form in (("weakest", "done_most"), ("cheapest", "done_form")):
        if rule == "cheapest" and point["economy"] == 0:
            continue  # All asks are equal, so the first number wins; there is no closed form for that.
        apart = {"apart": table[f"done_{rule}"] - table[form], "run": table["run"]}
        claims.append(
            Claim(
                f"{rule} that can: share of tasks done at {here}",
                float(mean(table, form)[number]),
                float(mean(table, f"done_{rule}")[number]),
                _error(apart, "apart", number, 0.0),
                draws=draws(table, number, each=1),
                bound=CHANCE,
            )
        )
    return claims


def _error(table: Table, measure: str, number: int, least: float) -> float:
    return max(least, float(standard_error(table, measure)[number]))


class Seen:
    """Makes the study's findings from its table of results."""

    def __init__(
        self, study: Study, table: Table, points: Sequence[Point], by_point: Sequence[MarketParameters]
    ) -> None:
        self.study = study
        self.table = table
        self.points = points
        self.by_point = by_point
        self.bidders = self._sorted(BIDDERS, "solver_count")
        self.budgets = self._sorted(BUDGETS, "budget")
        self.middle = within(study, points, ())[0]

    def _sorted(self, grid: Sequence[str], name: str) -> list[int]:
        return sorted(within(self.study, self.points, grid), key=lambda number: self.points[number][name])

    def costs(self) -> Finding:
        """A finding on the price that the submitter pays, by format."""
        paid = {name: mean(self.table, f"price_{name}")[self.middle] / TOKEN for name in FORMATS}
        off = paid["descending"] / paid["second_price"] - 1
        dearer = paid["late"] / paid["descending"] - 1
        more = paid["posted_price"] / paid["descending"] - 1
        few, many = (mean(self.table, "price_descending")[self.bidders[i]] / TOKEN for i in (0, -1))
        counts = [self.points[self.bidders[i]]["solver_count"] for i in (0, -1)]
        verb = "falls" if many < few else "goes"
        crowd = (
            f"; from {counts[0]:.0f} to {counts[1]:.0f} bidders the price {verb} from {few:.1f} to {many:.1f}"
            if counts[0] < counts[1]
            else ""
        )
        return Finding(
            f"Descending bids cost {paid['descending']:.1f} tokens on average, {off:+.1%} beside second price; all "
            f"of them late {dearer:+.0%}; paying the budget of {self._budget()} to the first that comes "
            f"{more:+.0%}{crowd}",
            self._figure(self.bidders, "solver_count", "bidders", "price, tokens a task", self._prices),
            note="Late is the dearest that waiting for the last second can make it: every bid adds a whole extension, "
            "and the least undercut doubles. A bidder that answers at once keeps it from doubling.",
        )

    def efficiency(self) -> Finding:
        """A finding on the part of the greatest possible surplus that each format realises."""
        shares = {name: self._efficient(name, self.budgets)[1] for name in FORMATS}
        budgets = [self.by_point[number].budget / TOKEN for number in self.budgets]
        low, posted = shares["descending"][0], int(np.argmax(shares["posted_price"]))
        here = self._efficient("descending", [self.middle])[1][0]
        return Finding(
            f"A budget of {budgets[0]:g} tokens leaves {low:.0%} of the surplus to bids, one of "
            f"{self._budget()} {here:.1%}; a posted price does "
            f"best at {budgets[posted]:g} with {shares['posted_price'][posted]:.1%}, for the first that comes is not "
            f"the cheapest",
            self._figure(
                self.budgets,
                "budget",
                "budget, tokens",
                "share of the greatest surplus",
                self._efficient,
                TOKEN,
            ),
        )

    def risk(self) -> Finding:
        """A finding on the variation of prices from task to task."""
        numbers = [n for n in self.bidders if self.by_point[n].solver_count > 1]
        here = self.middle
        first, second = (
            math.sqrt(_variance(self.table, name, here)[0]) for name in ("descending", "second_price")
        )
        return Finding(
            f"Prices vary from task to task by {first:.1f} tokens by descending bids and by {second:.1f} at second "
            f"price, with {self.by_point[here].solver_count} bidders",
            self._figure(numbers, "solver_count", "bidders", "standard deviation, tokens", self._deviations)
            if len(numbers) > 1
            else None,
        )

    def done(self) -> Finding:
        """A finding on the share of tasks done under each of the two rules."""
        words = []
        for economy, numbers in self._by_economy().items():
            worst = min(numbers, key=lambda n: self._mean("done_cheapest", n) - self._mean("done_weakest", n))
            cheapest, most = (self._mean(f"done_{rule}", worst) for rule in ("cheapest", "weakest"))
            load = self.points[worst]["load"]
            words.append(
                f"where strong devices {_dearness(economy)} "
                + (
                    f"it does {cheapest:.0%} of the tasks at {load:g} a device, the weakest that can {most:.0%}"
                    if most - cheapest > _SAME
                    else "it does as much as any assignment could"
                )
            )
        lost = max(np.max(mean(self.table, "done_weakest") - mean(self.table, "done_cheapest")), 0.0)
        verb = "wastes strong devices" if lost > _SAME else "wastes no strong devices"
        return Finding(
            f"The cheapest bid {verb}: {'; '.join(words)}",
            self._loads("done", "share of tasks done", 1),
            note="Costs are asked as they are: strong devices that foresee hard tasks would ask more for easy ones. "
            "Strength must be certified, which the contracts do not do.",
        )

    def welfare(self) -> Finding:
        """A finding on the welfare under both rules: the value of the tasks done minus their cost."""
        words = []
        for economy, numbers in self._by_economy().items():
            gains = [
                self._mean("welfare_weakest", n) / self._mean("welfare_cheapest", n) - 1 for n in numbers
            ]
            low, high = min(gains), max(gains)
            change = f"{low:+.0%} to {high:+.0%}" if max(-low, high) > _SAME else "nothing"
            words.append(f"{change} where strong devices {_dearness(economy)}")
        return Finding(
            f"Giving each task to the weakest device that can adds to welfare, over the loads tried: "
            f"{', '.join(words)}",
            self._loads("welfare", "worth less cost, tokens a task", TOKEN),
        )

    # ------------------------------------------------------------------ figures

    def _budget(self) -> str:
        return self.study.unit("budget").format(self.by_point[self.middle].budget)

    def _mean(self, column: str, number: int) -> float:
        return float(mean(self.table, column)[number])

    def _by_economy(self) -> dict[float, list[int]]:
        numbers: dict[float, list[int]] = {}
        for number in self._sorted(LOADS, "load"):
            numbers.setdefault(self.points[number]["economy"], []).append(number)
        return dict(sorted(numbers.items(), reverse=True))

    def _prices(self, name: str, numbers: Sequence[int]) -> tuple[Floats, Floats]:
        theory = [FORMATS[name](market_of(self.by_point[n])).price for n in numbers]
        return np.array(theory) / TOKEN, mean(self.table, f"price_{name}")[numbers] / TOKEN

    def _efficient(self, name: str, numbers: Sequence[int]) -> tuple[Floats, Floats]:
        theory, seen = [], []
        for n in numbers:
            market, worth = market_of(self.by_point[n]), self.points[n]["worth"]
            played = Outcome(*(self._mean(f"{column}_{name}", n) for column in ("trade", "price", "cost")))
            theory.append(efficiency(FORMATS[name](market), market, value=worth))
            seen.append(efficiency(played, market, value=worth))
        return np.array(theory), np.array(seen)

    def _deviations(self, name: str, numbers: Sequence[int]) -> tuple[Floats, Floats] | None:
        if name == "posted_price":
            return None
        seen = np.sqrt([_variance(self.table, name, n)[0] for n in numbers])
        theory = []
        for n in numbers:
            market = market_of(self.by_point[n])
            known = name == "second_price" and market.budget >= market.high
            theory.append(math.sqrt(ordered_cost_variance(market, 2)) / TOKEN if known else math.nan)
        return np.array(theory), np.array(seen)

    def _figure(
        self, numbers: Sequence[int], axis: str, x: str, y: str, values: Values, scale: float = 1
    ) -> Figure:
        from sim.figures import Line, lines

        series = []
        for name in FORMATS:
            both = values(name, numbers)
            if both:
                at = [self.points[n][axis] / scale for n in numbers]
                series.append(Line(name.replace("_", " "), at, both[0], points=both[1]))
        return lines(series, x=f"{x} (lines: theory, dots: engine)", y=y)

    def _loads(self, measure: str, y: str, scale: float) -> Figure:
        from sim.figures import Line, lines

        series = []
        for economy, numbers in self._by_economy().items():
            loads = [self.points[n]["load"] for n in numbers]
            for rule in ("cheapest", "weakest"):
                column = f"{measure}_{rule}"
                values = mean(self.table, column)[numbers] / scale
                band = 2 * standard_error(self.table, column)[numbers] / scale
                label = f"{rule} that can, strong devices {_dearness(economy)}"
                series.append(Line(label, loads, values, values - band, values + band))
        return lines(series, x="tasks side by side for each device (bands: 2 standard errors)", y=y)


def _dearness(economy: float) -> str:
    return "ask less" if economy > 0 else "ask more" if economy < 0 else "ask the same"
