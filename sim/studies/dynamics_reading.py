"""Findings of the dynamics study (`sim.studies.dynamics`): trajectories over time, and in the plane of
shares.

`Shares` maps the names `cheating` and `checking` to arrays of shape (points, runs, epochs), which hold these
shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from sim.mechanism.arrays import Floats
from sim.studies.points import where
from sim.studies.study import Finding, Point, Study
from sim.theory import Equilibrium

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEGMENTS: Final = 20
REST, REPLICATOR, BEST_RESPONSE = 0, 1, 2
RULES: Final = {REST: "at rest", REPLICATOR: "replicator", BEST_RESPONSE: "best response"}
FEWEST: Final = 0.02
"""Least share of each strategy. Without it, a share of 0 would never change."""
_SWING: Final = 0.3
"""A trajectory whose share of cheaters varies by more than this in the second half counts as circling."""
_NEAR: Final = 0.1
"""Largest distance from the equilibrium that counts as having reached it. A trajectory that does not circle
has reached the equilibrium if, in its second half, the mean of each share is closer to it than this distance.
"""
Shares = Mapping[str, Floats]


class Trajectories:
    """The trajectories of the first market that was played, without those that are held at the
    equilibrium.
    """

    def __init__(
        self,
        study: Study,
        points: Sequence[Point],
        shares: Shares,
        moving: Sequence[int],
        equilibrium: Callable[[Point], Equilibrium],
    ) -> None:
        first = points[moving[0]]
        here = [n for n in moving if _market(points[n]) == _market(first)]
        self.study = study
        self.points = [points[n] for n in here]
        self.shares = {name: values[here] for name, values in shares.items()}
        self.late = {name: values[:, :, values.shape[2] // 2 :] for name, values in self.shares.items()}
        self.markets = len({tuple(_market(points[n]).values()) for n in moving})
        self.rest = equilibrium(first)

    def findings(self) -> list[Finding]:
        """Two findings on the trajectories: one over time, and one in the plane of shares."""
        middle = {name: values.mean() for name, values in self.late.items()}
        cheating = self.late["cheating"]
        sentence = (
            f"The shares {behaviour(self.late, self.rest)}: in the second half "
            f"{middle['cheating']:.0%} of the solvers cheat ({cheating.min():.0%} to {cheating.max():.0%}) "
            f"and {middle['checking']:.0%} of the verifiers replay; the inspection game's equilibrium is "
            f"{self.rest.cheating:.0%} and {self.rest.checking:.0%}"
        )
        distances = ", ".join(f"{self._off(rule):.2f} by {name}" for rule, name in self._rules().items())
        plane = f"The late average is off the equilibrium in the plane of both shares: {distances}"
        return [Finding(sentence, self._in_time(), self._note()), Finding(plane, self._plane())]

    def _rules(self) -> dict[int, str]:
        return {rule: RULES[rule] for rule in sorted({int(point["rule"]) for point in self.points})}

    def _off(self, rule: int) -> float:
        own = [point["rule"] == rule for point in self.points]
        apart = (values[own].mean() - getattr(self.rest, name) for name, values in self.late.items())
        return float(np.hypot(*apart))

    def _note(self) -> str:
        """A note on the starting points and the market."""
        first = self.points[0]
        starts = len({(point["cheating"], point["checking"]) for point in self.points})
        other = [name for name in _market(first) if name != "false_share"]
        but = f", but for {where(self.study, first, *other)}" if other else ""
        more = f" It is the first of {self.markets} markets that were played." if self.markets > 1 else ""
        return (
            f"Shares start in {starts} {'places' if starts > 1 else 'place'}; at least {FEWEST:.0%} always try the "
            f"other strategy. A cheater invents {first['false_share']:.0%} of the segments. The market is the "
            f"recommended one for {SEGMENTS} segments{but}.{more}"
        )

    def _label(self, number: int) -> str:
        point = self.points[number]
        return f"{RULES[int(point['rule'])]}, {'from fraud' if point['cheating'] > 0.5 else 'from honesty'}"

    def _in_time(self) -> Figure:
        from sim.figures import Line, lines

        series = []
        for number in range(len(self.points)):
            for name, values in self.shares.items():
                of = values[number]
                label = f"{name}, {self._label(number)}"
                epochs = np.arange(of.shape[1])
                series.append(Line(label, epochs, of.mean(axis=0), of.min(axis=0), of.max(axis=0)))
        return lines(series, x="epoch (band: all trajectories)", y="share")

    def _plane(self) -> Figure:
        from sim.figures import Line, lines

        series = []
        for number in range(len(self.points)):
            # Only the first trajectory is drawn: the mean of many has no shape.
            x, y = (self.shares[name][number][0] for name in ("cheating", "checking"))
            series.append(Line(self._label(number), x, y))
        at = ([self.rest.cheating], [self.rest.checking])
        series.append(Line("equilibrium of theory", *at, points=at[1]))
        return lines(series, x="x: share of solvers that cheat", y="y: share of verifiers that replay")


def behaviour(late: Shares, rest: Equilibrium) -> str:
    """Say in words how many trajectories circle, reach the equilibrium, or settle elsewhere in the end."""
    circling = np.ptp(late["cheating"], axis=2) > _SWING
    off = np.stack([np.abs(values.mean(axis=2) - getattr(rest, name)) for name, values in late.items()])
    near = ~circling & (off.max(axis=0) < _NEAR)
    counts = {
        "keep circling": circling.sum(),
        "go to the equilibrium": near.sum(),
        "settle elsewhere": (~circling & ~near).sum(),
    }
    said = {verb: count for verb, count in counts.items() if count}
    if len(said) == 1:
        return next(iter(said))
    return ", ".join(f"{verb} in {count} of {circling.size} trajectories" for verb, count in said.items())


def _market(point: Point) -> Point:
    """The values of a point, without the rule and the starting shares of its trajectories."""
    return {name: value for name, value in point.items() if name not in ("rule", "cheating", "checking")}
