"""Withholding: a cheater serves no data if an honest seat would convict it. A jury is then drawn to judge
whether data are withheld.

The engine is not used. For tasks with one false segment, this study simulates the seats, juries of distinct
accounts, claims, redraws and retrainers, and compares the results with `sim.theory.withholding`. The amounts
are those recommended for a task of 1,000 tokens on a rollup, as multiples of the budget. This study and the
recommended stake both assume that the cheater is also the submitter, challenger and retrainer. The stake thus
allows for the payments that the cheater recovers in these roles. Therefore, withholding pays no better than
honest work if juries find that data are withheld and somebody is sure to retrain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from protocol.chain.parameters import RECOMMENDED
from protocol.chain.recommendation import RULES
from sim.engine.simulate import Columns
from sim.errors import ParameterError
from sim.mechanism.arrays import Flags, Floats
from sim.studies.grids import Grid
from sim.studies.points import agreement, asked, where
from sim.studies.study import CHANCE, Answer, Claim, Extra, Finding, Point, Study, Table
from sim.studies.tables import draws, mean, points_of, standard_error
from sim.theory import (
    Verdict,
    Withheld,
    caught_probability,
    conviction_advantage,
    jury_verdict,
    least_retrained_stake,
    retrained_loss,
    retraining_chance,
    withheld_in_the_end,
    withholding_advantage,
)
from sim.theory.withholding import CLAIMS
from sim.trust_table import ROLLUP
from sim.units import Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JURORS: Final = RECOMMENDED.min_jurors
BURN: Final = 16
"""If a jury finds data withheld, the solver loses 1 / BURN of its stake (TaskMarket.withheld). Out of this
amount the claimant is paid; the rest burns.
"""
BUDGET: Final = 1_000
DAYS: Final = 3
JURIES: Final[Grid] = ("honest", "free")
RETRAINERS: Final[Grid] = ("retrained",)
GRIDS: Final[Sequence[Grid]] = (JURIES, RETRAINERS)


class Withholding(Study):
    """A cheater with one false segment. If an honest seat holds this segment, the cheater serves no data."""

    name = "withholding"
    question = "Does it pay to withhold data instead of being convicted?"
    runs = 256
    rounds = 512

    def axes(self) -> Mapping[str, Sequence[float]]:
        """The swept parameters: the share of accounts that are honest; the share of honest accounts that are
        free for a jury; the chance that somebody retrains; and the number of accounts.
        """
        return {
            "honest": (0.7, 0.55, 0.6, 0.9),
            "free": (1.0, 0.9, 0.8, 0.7, 0.6, 0.5),
            "retrained": (1.0, 0.9, 0.7, 0.4, 0.0),
            "accounts": (100,),
        }

    def extra(self) -> Mapping[str, Extra]:
        """This study's own parameters. The study uses no parameter of the market."""
        return {
            "honest": Extra(
                "share of the accounts that are honest; all others are in league with the solver"
            ),
            "free": Extra("share of the honest accounts that answer when they are drawn into a jury"),
            "retrained": Extra("chance that somebody trains a withheld task again"),
            "accounts": Extra("registered accounts", Unit.COUNT, 1, 10_000),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Points of both grids. Other parameters stay at their centre: the recommended honest share, all
        honest accounts free, and certain retraining. Raises `ParameterError` if a point has fewer accounts
        than seats, or if all its accounts are honest: a seat whose claims fail would then be drawn again
        without end.
        """
        seats = audit()[2]
        found = asked(self, given, GRIDS)
        for point in found:
            accounts, honest, _ = kinds(point)
            if accounts < seats:
                raise ParameterError(
                    f"accounts: expected one for each of {seats} seats, got {accounts}; raise it"
                )
            if honest == accounts:
                raise ParameterError(
                    f"honest: expected at least one of the accounts to be in league with the solver, got "
                    f"{honest} honest accounts of {accounts}; lower honest or raise accounts"
                )
        return found

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """Two measures. `found`: share of the tasks in which a jury would finally find the data withheld.
        `advantage`: gain over honest work per task, as a multiple of the budget.
        """
        rng, tasks = np.random.default_rng(seed), runs * rounds
        found = self._found(point, tasks, rng)
        terms, (k, q, v) = withheld(), audit()
        accounts = round(point["accounts"])
        honest = rng.hypergeometric(
            round(point["honest"] * accounts), accounts - round(point["honest"] * accounts), v, tasks
        )
        caught = rng.random(tasks) < 1 - (1 - q / k) ** honest
        again = rng.random(tasks) < point["retrained"]
        lost = np.where(again, terms.stake - terms.retrain_reward - terms.restitution, terms.burn)
        gained = terms.gain + terms.price / k - np.where(caught & found, lost, 0.0)
        return {
            "found": found.reshape(runs, rounds).mean(axis=1),
            "advantage": gained.reshape(runs, rounds).mean(axis=1),
        }

    def _found(self, point: Point, tasks: int, rng: np.random.Generator) -> Flags:
        """For each task, whether a jury finds the data withheld. If the claims for a seat fail, the seat is
        drawn again. The jury must find the data withheld before the seat goes to an account in league with
        the solver.
        """
        accounts, honest, free = kinds(point)
        found = np.zeros(tasks, dtype=bool)
        open_ = np.arange(tasks)
        while open_.size:
            left = open_
            for _ in range(CLAIMS):
                drawn = min(JURORS, accounts)
                no = rng.hypergeometric(free, accounts - free, drawn, left.size)
                # Of the jurors that do not say no, those in league say yes.
                rest = drawn - no
                yes = (
                    rng.hypergeometric(accounts - honest, honest - free, rest)
                    if accounts > free
                    else 0 * rest
                )
                found[left[2 * no > JURORS]] = True
                left = left[(2 * no <= JURORS) & (2 * yes <= JURORS)]
            open_ = open_[~found[open_]]
            open_ = open_[rng.random(open_.size) < honest / accounts]
        return found

    def answer(self, table: Table) -> Answer:
        """The study's claims and findings. There are two claims for each point, and in addition the claims
        that withholding gains nothing. There is one finding for each grid that was played.
        """
        points = points_of(self, table)
        found = [_found(point) for point in points]
        lost = [caught(point) * each for point, each in zip(points, found)]
        most = withheld().stake
        claims = self._claims(table, points, "found", found, [_coin(table, each) for each in found])
        least = [most * _coin(table, each) for each in lost]
        claims += self._claims(table, points, "advantage", _advantages(points), least)
        claims += self._no_gain(table, points)
        findings = [
            finding(points, mean(table, name))
            for axis, name, finding in (("free", "found", _juries), ("retrained", "advantage", _retrainers))
            if len({point[axis] for point in points}) > 1
        ]
        return Answer(findings or [agreement(claims)], claims)

    def _claims(
        self,
        table: Table,
        points: Sequence[Point],
        name: str,
        expected: Sequence[float],
        least: Sequence[float],
    ) -> list[Claim]:
        """A claim for each point. Each claim's standard error is at least the one that `least` has for the point."""
        seen, errors = mean(table, name), standard_error(table, name)
        return [
            Claim(
                f"{name} at {where(self, point)}",
                expected[n],
                float(seen[n]),
                max(float(errors[n]), least[n]),
                draws=draws(table, n),
                bound=CHANCE,
            )
            for n, point in enumerate(points)
        ]

    def _no_gain(self, table: Table, points: Sequence[Point]) -> list[Claim]:
        """Claims that withholding earns no more than honest work. The claims leave out what the cheater gains
        because some juries fail to find the data withheld.

        There is a claim for each point at which all honest accounts are free, somebody is sure to retrain,
        and at least as many accounts are honest as the stake assumes.
        """
        seen, errors = mean(table, "advantage"), standard_error(table, "advantage")
        claims = []
        for n, point in enumerate(points):
            if point["retrained"] < 1 or point["free"] < 1 or point["honest"] < float(RULES.honest_share):
                continue
            missed = caught(point) * (1 - _found(point)) * retrained_loss(withheld())
            claims.append(
                Claim(
                    f"gain by withholding what is found and trained again at {where(self, point)}",
                    0.0,
                    max(0.0, float(seen[n]) - missed),
                    max(float(errors[n]), withheld().stake * _coin(table, caught(point))),
                    draws=draws(table, n),
                    bound=CHANCE,
                )
            )
        return claims


def _coin(table: Table, chance: float) -> float:
    """Standard error of a chance over the tasks of one point, but at least 1 divided by the number of these
    tasks, because a rare event may not occur at all.
    """
    tasks = float(table["rounds"][0] * (table["run"].max() + 1))
    return max(math.sqrt(max(0.0, chance * (1 - chance)) / tasks), 1 / tasks)


def audit() -> tuple[int, int, int]:
    """K, q and V of the recommended terms."""
    priced = ROLLUP.price(BUDGET, DAYS)
    return priced.setting.segments, priced.amounts.segments_per_verifier, priced.amounts.verifiers


def withheld() -> Withheld:
    """The recommended terms, as multiples of the budget."""
    priced = ROLLUP.price(BUDGET, DAYS)
    amounts, budget = priced.amounts, priced.setting.budget
    return Withheld(
        stake=amounts.stake / budget,
        burn=amounts.stake / BURN / budget,
        reward=amounts.reward / budget,
        retrain_reward=amounts.retrain_reward / budget,
        restitution=amounts.restitution / budget,
        price=1.0,
        gain=float(RULES.gain),
    )


def kinds(point: Point) -> tuple[int, int, int]:
    """Numbers of all accounts, of honest accounts, and of free honest accounts."""
    accounts = round(point["accounts"])
    honest = round(point["honest"] * accounts)
    return accounts, honest, round(point["free"] * honest)


def verdict(point: Point) -> Verdict:
    """Chances of the verdicts of one jury."""
    accounts, honest, free = kinds(point)
    return jury_verdict(jurors=JURORS, accounts=accounts, honest=free, league=accounts - honest)


def _found(point: Point) -> float:
    accounts, honest, _ = kinds(point)
    return withheld_in_the_end(verdict(point), honest=honest / accounts)


def caught(point: Point) -> float:
    """Chance that an honest seat holds the one false segment."""
    (k, q, v), (accounts, honest, _) = audit(), kinds(point)
    return float(caught_probability(k, 1, q, v, honest / accounts, accounts=accounts))


def _advantages(points: Sequence[Point], terms: Withheld | None = None) -> list[float]:
    terms = terms or withheld()
    return [
        withholding_advantage(
            terms,
            caught=caught(point),
            found=_found(point),
            retrained=point["retrained"],
            saved=terms.price / audit()[0],
        )
        for point in points
    ]


def _centre(points: Sequence[Point]) -> Point:
    """The recommended honest share with all honest accounts free, whether or not it is among the points.
    There are as many accounts as at the first point.
    """
    return {**points[0], "honest": float(RULES.honest_share), "free": 1.0}


def _juries(points: Sequence[Point], seen: Floats) -> Finding:
    """A finding on how often juries find that data are withheld. It compares points by two shares: the share
    of accounts that are honest, and the share of honest accounts that are free for a jury.
    """
    from sim.figures import Line, lines

    series = []
    for honest in sorted({point["honest"] for point in points}, reverse=True):
        at = [n for n, point in enumerate(points) if point["honest"] == honest and point["retrained"] == 1]
        at.sort(key=lambda n: points[n]["free"])
        series.append(
            Line(
                f"{honest:.0%} honest",
                [100 * points[n]["free"] for n in at],
                [100 * _found(points[n]) for n in at],
                points=[100 * seen[n] for n in at],
            )
        )
    base = _centre(points)
    one = verdict(base)
    enough = [free for free in np.arange(0.01, 1.001, 0.01) if _found({**base, "free": float(free)}) >= 0.99]
    needed = f"take {enough[0]:.0%} of the honest accounts free" if enough else "are out of reach"
    return Finding(
        f"With {base['honest']:.0%} honest accounts, all free, one jury of {JURORS} finds withheld data with chance "
        f"{one.withheld:.2%}, and the claims of a seat with {_found(base):.3%}; 99% {needed}",
        lines(
            series,
            x="honest accounts that are free for a jury, %",
            y="found withheld, % (lines: theory, dots: played)",
        ),
        note="Where too few are free no verdict comes, honest seats are silent and drawn again, and the solver's own "
        "accounts attest.",
    )


def _retrainers(points: Sequence[Point], seen: Floats) -> Finding:
    """A finding on the advantage of withholding, for several chances that somebody retrains."""
    base = _centre(points)
    terms, d, saved = withheld(), caught(base), 1 / audit()[0]
    least = least_retrained_stake(terms, caught=d, saved=saved)
    chance = retraining_chance(cost=float(RULES.replay), reward=terms.retrain_reward)
    entered = least_retrained_stake(terms, caught=d, saved=saved, retrained=chance)
    served = conviction_advantage(terms, caught=d, saved=saved)
    never, entry, always = _advantages([{**base, "retrained": share} for share in (0.0, chance, 1.0)])
    others = _advantages([{**base, "retrained": 1.0}], terms._replace(shared=False))[0]
    return Finding(
        f"At the recommended stake of {terms.stake:.2f} budgets one false segment that is withheld where it would be "
        f"found earns {always:+.3f} budgets beside honest work where somebody surely trains again, all of it where "
        f"juries do not find it; {entry:+.3f} where {chance:.1%} are trained again, and {never:+.3f} where nobody "
        f"does; served, it earns {served:+.3f}",
        _drawn(points, seen, terms, served),
        note="A cheater that withholds sees the commitment of who trained again, convicts itself first, and has the "
        f"reward of {terms.retrain_reward:.2f} budgets. The stake counts on none of that reward, so {least:.2f} "
        f"budgets suffice where juries find what is withheld. Where {chance:.1%} are trained again it would take "
        f"{entered:.2f}: so many are where all come that are paid for a work of {float(RULES.replay):g} budgets and "
        "fear no accomplice. Where the submitter is not the cheater's, who loses the price too and gets no "
        f"restitution, it is {others:+.3f} where somebody surely trains again. Where nobody does it would take a burn "
        f"of {(saved + terms.gain) / d / terms.stake:.0%} of the stake; a jury, which may err, burns S/{BURN}.",
    )


def _drawn(points: Sequence[Point], seen: Floats, terms: Withheld, served: float) -> Figure:
    from sim.figures import Line, lines

    at = [
        n
        for n, point in enumerate(points)
        if point["honest"] == float(RULES.honest_share) and point["free"] == 1
    ]
    at.sort(key=lambda n: points[n]["retrained"])
    chances = [100 * points[n]["retrained"] for n in at]
    own = [points[n] for n in at]
    return lines(
        [
            Line("withheld, as played", chances, _advantages(own), points=[seen[n] for n in at]),
            Line("submitter not its own", chances, _advantages(own, terms._replace(shared=False))),
            Line("served", chances, [served for _ in at]),
        ],
        x="chance that somebody trains again, %",
        y="advantage over honest work, budgets a task",
        level=0.0,
    )
