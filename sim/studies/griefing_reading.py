"""Claims and figures of the griefing study (`sim.studies.griefing`): harm, loss, factors and break-even
amounts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from sim.mechanism.arrays import Floats
from sim.studies.grids import within
from sim.studies.study import Claim, Point, Study, Table
from sim.studies.tables import draws, mean, standard_error
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BONDS: Final = ("bond", "yearly_rate")
FEES: Final = ("audit_fee",)
PENALTIES: Final = ("delay_penalty", "yearly_rate")
ATTACKS: Final = {
    "challenge": "false challenges",
    "silence": "silent verifiers",
    "late": "late solvers",
}


class Seen:
    """The table by point and attack, and the values that theory expects."""

    def __init__(
        self, study: Study, points: Sequence[Point], table: Table, expected: Mapping[str, Floats]
    ) -> None:
        self.study = study
        self.points = points
        self.table = table
        self.expected = expected
        self.middle = self.grid(())[0]
        """Index in `points` of the point at which all parameters are at their centre."""

    def grid(self, grid: Collection[str]) -> list[int]:
        """Indices in `points` of a grid's points."""
        return within(self.study, self.points, grid)

    def harm(self, attack: str) -> Floats:
        """Mean harm at each point, (points,)."""
        return mean(self.table, f"{attack}_harm")

    def loss(self, attack: str) -> Floats:
        """Mean loss at each point, (points,)."""
        return mean(self.table, f"{attack}_loss")

    def factors(self, attack: str) -> Floats:
        """Measured griefing factors, (points,); infinite where harm costs the attacker nothing."""
        return _factors(self.harm(attack), self.loss(attack))

    def theory(self, attack: str) -> Floats:
        """Expected griefing factors, (points,)."""
        return _factors(self.expected[f"{attack}_harm"], self.expected[f"{attack}_loss"])

    def factor(self, attack: str) -> float:
        """Measured griefing factor at the centre."""
        return float(self.factors(attack)[self.middle])

    def at(self, name: str) -> str:
        """A parameter's value at the centre, in words."""
        return self.study.unit(name).format(self.points[self.middle][name])

    def claims(self, grid: Collection[str], columns: Sequence[str]) -> list[Claim]:
        """Claims on harm and loss. If a measured value is below 0, it counts as 0. Amounts are rounded to units."""
        claims = []
        for column in columns:
            means, errors = mean(self.table, column), standard_error(self.table, column)
            for number in self.grid(grid):
                where = ", ".join(
                    f"{name} {self.study.unit(name).format(self.points[number][name])}" for name in grid
                )
                claims.append(
                    Claim(
                        f"{column.replace('_', ' ')} at {where}",
                        float(self.expected[column][number]) / TOKEN,
                        max(0.0, float(means[number])) / TOKEN,
                        max(1.0, float(errors[number])) / TOKEN,
                        draws=draws(self.table, number),
                    )
                )
        return claims

    def by_rate(self, grid: Collection[str]) -> dict[float, list[int]]:
        """Indices in `points` of a grid's points, as one list per yearly rate; the centre's rate comes first.
        Each list is ordered by the amount that the grid varies (`axis`).
        """
        numbers: dict[float, list[int]] = {}
        for number in [self.middle, *self.grid(grid)]:
            numbers.setdefault(self.points[number]["yearly_rate"], []).append(number)
        name = axis(grid)
        return {rate: sorted({*own}, key=lambda n: self.points[n][name]) for rate, own in numbers.items()}

    def least(
        self, grid: Collection[str], attack: str, form: str, *, slope: float
    ) -> tuple[str, list[Claim]]:
        """The least amounts with which the factor is at most 1, one for each yearly rate. Returns all of them
        in words, and a claim for each amount that lies within the grid's range.

        Harm minus loss is linear in the amount, and falls by `slope` per token.
        """
        net, name = self.harm(attack) - self.loss(attack), axis(grid)
        error = standard_error(self.table, f"{attack}_harm") + standard_error(self.table, f"{attack}_loss")
        words: list[str] = []
        claims = []
        for rate, numbers in self.by_rate(grid).items():
            amounts = np.array([self.points[number][name] for number in numbers]) / TOKEN
            least = _root(amounts, net[numbers])
            tried = f"all of {amounts[0]:g} to {amounts[-1]:g}"
            amount = (
                f"{least:.3g}" if np.isfinite(least) else f"{'less' if least < 0 else 'more'} than {tried}"
            )
            words.append(
                f"{amount} at {rate:.0%}"
                if words
                else f"{amount} tokens where waiting costs {rate:.0%} a year"
            )
            if np.isfinite(least):
                text = f"{form.replace('_', ' ')} at yearly_rate {rate:g}"
                off = max(1.0, float(error[numbers].max())) / slope / TOKEN
                expected = float(self.expected[form][numbers[0]]) / TOKEN
                claims.append(Claim(text, expected, least, off, draws=draws(self.table, *numbers)))
        others = f" ({', '.join(words[1:])})" if words[1:] else ""
        return words[0] + others, claims

    def figure(self, grid: Collection[str], attack: str, x: str) -> Figure:
        """A plot of griefing factors against an amount. Lines are the factors that theory expects, dots are
        measured ones.
        """
        from sim.figures import Line, lines

        name, seen, theory = axis(grid), _shown(self.factors(attack)), _shown(self.theory(attack))
        series = [
            Line(
                f"waiting costs {rate:.0%} a year",
                [self.points[number][name] / TOKEN for number in numbers],
                theory[numbers],
                points=seen[numbers],
            )
            for rate, numbers in sorted(self.by_rate(grid).items())
        ]
        x = f"{x} (lines: theory, dots: engine)"
        every = [number for line in self.by_rate(grid).values() for number in line]
        some = bool((np.nan_to_num([seen[every], theory[every]]) > 0).any())
        positive = all(self.points[number][name] > 0 for number in every)
        return lines(
            series, x=x, y="harm for each token lost", log_x=positive and some, log_y=some, level=1.0
        )


def axis(grid: Collection[str]) -> str:
    """Name of the amount that a grid varies, which is its first axis."""
    return next(iter(grid))


def _factors(harm: Floats, loss: Floats) -> Floats:
    some, lost = np.maximum(harm, 0.0), np.maximum(loss, 0.0)
    free = np.where(some > 0, np.inf, 0.0)
    return np.asarray(np.divide(some, lost, out=free, where=lost > 0))


def _shown(factors: Floats) -> Floats:
    """Factors for a logarithmic axis: 0 and infinity become NaN."""
    return np.where((factors > 0) & np.isfinite(factors), factors, np.nan)


def _root(x: Floats, falling: Floats) -> float:
    """The place at which a falling line through the points reaches 0: -inf if the line is never above 0, and
    inf if the line always is.
    """
    if (falling <= 0).all():
        return float("-inf")
    if (falling > 0).all():
        return float("inf")
    return float(np.interp(0.0, -falling, x))
