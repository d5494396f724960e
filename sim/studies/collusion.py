"""Collusion and Sybils: above which share of the stake do a cheater and its accomplices win, and does
splitting help?

Accomplices attest every result of their cheater and challenge none. The profit of the cheater alone, and of
the whole coalition, is measured relative to honest work under the same seed, and compared with the closed
forms. One grid varies the coalition's share of the stake and the number of seats. The other grid puts the
coalition's stake into fewer, larger accounts, each of which has at most one seat in a task. As in the engine,
a cheater has the gain only if its result is accepted. So a conviction costs it the gain as well as the stake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.verifiers import Colluding, Verifier
from sim.engine.simulate import Case, Columns, simulate
from sim.mechanism.arrays import Floats
from sim.parameters import MarketParameters
from sim.studies.cheaters import Disguised
from sim.studies.grids import within
from sim.studies.points import agreement, asked, crossing, require, where
from sim.studies.prices import expected_price
from sim.studies.study import CHANCE, Answer, Claim, Extra, Finding, Point, Study, Table
from sim.studies.tables import by_point, draws, mean, points_of, standard_error
from sim.theory import advantage_at, caught_by_others, collusion_threshold, missed_probability, seats_law
from sim.units import TOKEN, Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES: Final = (0.0, 0.1, 1.0)
"""The false shares with which cheaters are played. Even a cheater with share 0 has one false segment."""
SEATS: Final = ("colluding", "verifiers")
SPLITS: Final = ("level",)


@dataclass(frozen=True)
class Accomplice(Verifier):
    """A member of the coalition, in the market with which cheating is compared. In this market the
    coalition's solver is honest, and its verifiers work honestly too.
    """

    name: ClassVar[str] = "accomplice"


class Collusion(Study):
    """A cheater that bids like an honest solver, its accomplices, and honest verifiers."""

    name = "collusion"
    question = "From which share of the stake do colluders win, and does splitting it change that?"
    runs = 1024
    rounds = 8

    def parameters(self) -> MarketParameters:
        """A market with equal devices."""
        return MarketParameters(device_spread=0.0)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """Axes of two grids: colluding share by seats, and account levels."""
        return {
            "colluding": (0.32, 0.0, 0.1, 0.2, 0.5, 0.65, 0.8, 0.95),
            "verifiers": (3, 2, 4, 8, 16),
            "level": (0, 2, 4, 5, 6),
        }

    def extra(self) -> Mapping[str, Extra]:
        """The colluders' share of the stake, and the size of their accounts."""
        return {
            "colluding": Extra("share of the stake whose holders are the cheater's accomplices"),
            "level": Extra("colluders' accounts have 2^level stake units each", Unit.COUNT, 0, 15),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Points of two grids: colluding shares by seats, and account levels at one share."""
        return asked(self, given, (SEATS, SPLITS))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """The population in which everybody works honestly. Raises ParameterError for a parameter that theory
        has no term for.
        """
        require(self.parameters(), parameters)
        return _people(parameters, point, Solver(), Accomplice())

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """How much more cheating earns than honest work: for the cheater (`alone`), and for the cheater and
        its accomplices together (`joint`).
        """
        case = self.case(point)
        honest = simulate(case, runs=runs, rounds=rounds, seed=seed)
        nobody = np.zeros(runs)
        columns = {"accomplices": honest.get("profit_verifier_accomplice", nobody)}
        for share in SHARES:
            people = _people(case.parameters, point, Disguised(share), Colluding())
            played = simulate(Case(case.parameters, people), runs=runs, rounds=rounds, seed=seed)
            alone = played["profit_solver_disguised"] - honest["profit_solver_honest"]
            theirs = played.get("profit_verifier_colluding", nobody) - columns["accomplices"]
            columns[_column("alone", share)] = alone
            columns[_column("joint", share)] = alone + theirs
            columns[_column("convicted", share)] = played["convicted"]
        return columns

    def answer(self, table: Table) -> Answer:
        """Findings and claims on the profit by share and seats, on the threshold, and on the effect of splitting."""
        points = points_of(self, table)
        forms = [Forms(self.case(point), point) for point in points]
        tasks = int(by_point(table, "run").shape[1] * table["rounds"][0])
        means, errors = {}, {}
        for measure in ("alone", "joint"):
            names = [_column(measure, share) for share in SHARES]
            means[measure] = np.stack([mean(table, name) for name in names], axis=1)
            seen = np.stack([standard_error(table, name) for name in names], axis=1)
            coin = np.stack([form.coin(tasks) for form in forms])
            errors[measure] = np.where(np.isfinite(seen), np.maximum(seen, coin), coin)
        claims = []
        for i in within(self, points, SEATS):
            expected = forms[i].joint
            best = int(expected.argmax())
            numbers = (expected[best], means["joint"][i, best], errors["joint"][i, best])
            text = f"joint advantage in tokens ({forms[i].false[best]} false) at {where(self, points[i])}"
            claims.append(Claim(text, *(float(number) / TOKEN for number in numbers), draws=draws(table, i)))
        seats, also = _seats(self, points, forms, means, errors, table)
        splits, more = _splits(self, points, forms, table)
        claims = [*also, *more, *claims]
        return Answer([*seats, *splits] or [agreement(claims)], claims)


def _accounts(parameters: MarketParameters, point: Point) -> tuple[int, int]:
    """Number of the colluders' accounts, and number of stake units of each account. If the colluders' stake
    does not divide into whole accounts, the rest of this stake is honest.
    """
    units = 1 << int(point["level"])
    return round(point["colluding"] * parameters.verifier_count) // units, units


def _people(parameters: MarketParameters, point: Point, solver: Solver, theirs: Verifier) -> Population:
    """The population. Colluders come first. So, with the same random numbers, a larger coalition holds at
    least the seats that a smaller one holds.
    """
    accounts, units = _accounts(parameters, point)
    honest = parameters.verifier_count - accounts * units
    return population([(solver, parameters.solver_count)], [(theirs, accounts, units), (Verifier(), honest)])


def _column(measure: str, share: float) -> str:
    """The name of the column that has a measure at a false share. The name gives the share in percent."""
    return f"{measure}_{100 * share:g}"


class Forms:
    """Closed forms at one point, with amounts in token units. Forms that depend on the false share are arrays
    of shape (shares,), with one value for each of `SHARES`.
    """

    def __init__(self, case: Case, point: Point) -> None:
        self.parameters = parameters = case.parameters
        self.accounts, self.units = _accounts(parameters, point)
        self.share = self.accounts * self.units / parameters.verifier_count
        self.law = seats_law(
            verifiers=parameters.verifiers,
            accounts=self.accounts,
            others=parameters.verifier_count - self.accounts * self.units,
            slots=self.units,
        )
        """Distribution of the number of the colluders' seats."""
        self.false = np.array([Disguised(share).false(parameters) for share in SHARES])
        price = expected_price(parameters)
        self.money: dict[str, Any] = {
            "price": price,
            "gain": parameters.gain,
            "cost": parameters.training_cost,
        }
        self.audit: dict[str, Any] = {
            "segments": parameters.segments,
            "segments_per_verifier": parameters.segments_per_verifier,
            "verifiers": parameters.verifiers,
        }
        self.seats = float(self.law @ np.arange(len(self.law)))
        """Mean number of the colluders' seats."""
        self.missed = missed_probability(parameters.segments, self.false, parameters.segments_per_verifier)
        self.lost = parameters.stake + parameters.gas_defence * parameters.gas_price * TOKEN
        """Loss from a conviction, in addition to the price and the gain."""
        self.caught = caught_by_others(self.law, self.missed)
        self.replay = parameters.replay_cost * parameters.training_cost / parameters.segments

    def coin(self, tasks: int) -> Floats:
        """Lower bound on the standard error of a mean profit over `tasks` tasks: the error that convictions
        alone cause.

        A conviction lowers the profit from its task by the price, the gain and `lost`. The result is never
        less than the effect of one conviction on the mean.
        """
        chance = np.maximum(np.sqrt(self.caught * (1 - self.caught) / tasks), 1 / tasks)
        swing = float(self.lost + self.money["price"] + self.money["gain"])
        return np.asarray(chance * swing)

    @property
    def alone(self) -> Floats:
        """The cheater's advantage over honest work."""
        share = self.false / self.parameters.segments
        return np.asarray(
            advantage_at(self.caught, share=share, stake=self.lost, kept=0, **self.money), dtype=np.float64
        )

    @property
    def joint(self) -> Floats:
        """The coalition's advantage. Accomplices save replays, and lose fees if the cheater is convicted.

        Their j seats are paid if none of the other V - j seats finds a false segment.
        """
        held = np.arange(len(self.law))
        paid = (self.law * held * self.missed[:, None] ** held[::-1]).sum(axis=1)
        parameters = self.parameters
        saved = self.seats * parameters.segments_per_verifier * self.replay
        return np.asarray(self.alone + saved - (self.seats - paid) * parameters.seat_fee)

    def threshold(self) -> float:
        """The share of the stake above which cheating pays for some number of false segments, if every
        account has one unit.
        """
        return collusion_threshold(
            stake=self.lost + self.money["gain"],
            accounts=self.parameters.verifier_count,
            **self.audit,
            **self.money,
        )

    @property
    def fees(self) -> float:
        """What the colluders' accounts earn by honest work."""
        parameters = self.parameters
        gas = parameters.gas_attest * parameters.gas_price * TOKEN
        each = parameters.seat_fee - parameters.segments_per_verifier * self.replay - gas
        return self.seats * each


Part = tuple[list[Finding], list[Claim]]


def _seats(
    study: Study,
    points: Sequence[Point],
    forms: Sequence[Forms],
    means: Mapping[str, Floats],
    errors: Mapping[str, Floats],
    table: Table,
) -> Part:
    """Findings and claims on the share of the stake at which the profit changes its sign, by number of seats."""
    chosen = within(study, points, SEATS)
    claims, found, series = [], [], []
    for seats in sorted({points[n]["verifiers"] for n in chosen}):
        numbers = sorted(
            (n for n in chosen if points[n]["verifiers"] == seats), key=lambda n: points[n]["colluding"]
        )
        share = np.array([forms[n].share for n in numbers])
        series.append((seats, numbers))
        zeros = {}
        for measure in ("alone", "joint"):
            rows, spread = means[measure][numbers], errors[measure][numbers]
            best = rows.argmax(axis=1)[:, None]
            zeros[measure] = crossing(
                share, np.take_along_axis(rows, best, 1)[:, 0], np.take_along_axis(spread, best, 1)[:, 0]
            )
        expected = forms[numbers[0]].threshold()
        if zeros["alone"] is not None and expected > 0:
            claims.append(
                Claim(
                    f"colluding share from which {seats:g} seats let a cheater win",
                    expected,
                    *zeros["alone"],
                    draws=draws(table, *numbers),
                )
            )
            found.append(
                (seats, expected, zeros["alone"][0], zeros["joint"][0] if zeros["joint"] else np.nan)
            )
    if not found:
        return [], claims
    sentence = (
        f"Colluders win from {found[0][2]:.0%} of the stake with {found[0][0]:g} seats a task, "
        f"from {found[-1][2]:.0%} with {found[-1][0]:g} (theory {found[0][1]:.0%}, {found[-1][1]:.0%})"
    )
    moved = float(np.nanmean([together - alone for _, _, alone, together in found]))
    note = (
        f"With the accomplices' fees and the replays that they save the threshold moves by {moved:+.1%} of the stake "
        f"on average."
    )
    return [
        Finding(sentence, _thresholds(found)),
        Finding(_profit(series, points, means), _joint(series, forms, means), note),
    ], claims


def _profit(
    series: Sequence[tuple[float, list[int]]], points: Sequence[Point], means: Mapping[str, Floats]
) -> str:
    """The profit of the grid's largest coalition with the fewest and with the most seats, in words."""
    said = []
    for seats, numbers in (series[0], series[-1]):
        best = float(means["joint"][numbers[-1]].max()) / TOKEN
        said.append(f"{best:,.0f} tokens a task with {seats:g} seats")
    share = points[series[0][1][-1]]["colluding"]
    return f"With {share:.0%} of the stake a cheater and its accomplices earn {' and '.join(said)} over honest work"


def _thresholds(found: Sequence[tuple[float, float, float, float]]) -> Figure:
    from sim.figures import Line, lines

    seats, theory, alone, joint = (list(column) for column in zip(*found))
    return lines(
        [Line("cheater alone", seats, theory, points=alone), Line("with its accomplices", seats, joint)],
        x="seats V of a task (line: theory, dots: engine)",
        y="share of the stake from which cheating pays",
    )


def _joint(
    series: Sequence[tuple[float, list[int]]], forms: Sequence[Forms], means: Mapping[str, Floats]
) -> Figure:
    from sim.figures import Line, lines

    return lines(
        [
            Line(
                f"V = {seats:g}",
                [forms[n].share for n in numbers],
                np.array([forms[n].joint.max() for n in numbers]) / TOKEN,
                points=means["joint"][numbers].max(axis=1) / TOKEN,
            )
            for seats, numbers in series
        ],
        x="colluding share of the stake (lines: theory, dots: engine)",
        y="best joint profit over honest work, tokens a task",
        level=0.0,
    )


def _splits(study: Study, points: Sequence[Point], forms: Sequence[Forms], table: Table) -> Part:
    """Findings and claims on seats, fees and convictions, by the number of the colluders' accounts."""
    numbers = [n for n in within(study, points, SPLITS) if forms[n].accounts]
    numbers.sort(key=lambda n: forms[n].accounts)
    if len(numbers) < 2:
        return [], []
    claims, fees = [], []
    tasks = int(by_point(table, "run").shape[1] * table["rounds"][0])
    seen = {
        name: (mean(table, name), standard_error(table, name))
        for name in ("accomplices", *map(_convicted, SHARES))
    }
    for n in numbers:
        form, accounts = forms[n], f"{forms[n].accounts:,} accounts of {forms[n].units} units"
        for caught, share in zip(form.caught, SHARES):
            means, errors = seen[_convicted(share)]
            error = max(float(errors[n]), float(np.sqrt(caught * (1 - caught) / tasks)), 1 / tasks)
            text = f"convictions ({share:.0%} false) where colluders have {accounts}"
            claims.append(
                Claim(text, float(caught), float(means[n]), error, draws=draws(table, n), bound=CHANCE)
            )
        means, errors = seen["accomplices"]
        fees.append((form.accounts, form.fees / TOKEN, means[n] / TOKEN, max(errors[n], 1.0) / TOKEN))
        claims.append(
            Claim(f"tokens a task that {accounts} earn", *map(float, fees[-1][1:]), draws=draws(table, n))
        )
    first, last = numbers[0], numbers[-1]
    convicted = seen[_convicted(SHARES[1])][0]
    sentence = (
        f"An account has one seat of a task at most: {forms[last].share:.0%} of the stake earns {fees[0][2]:.2f} "
        f"tokens a task in {forms[first].accounts} account{'s' * (forms[first].accounts > 1)}, {fees[-1][2]:.2f} in "
        f"{forms[last].accounts} (theory {fees[0][1]:.2f}, {fees[-1][1]:.2f}); a cheater with {SHARES[1]:.0%} false is "
        f"convicted in {convicted[first]:.1%} and {convicted[last]:.1%} of its tasks"
    )
    from sim.figures import Line, lines

    count, expected, measured, spread = (np.array(column) for column in zip(*fees))
    figure = lines(
        [Line("", count, expected, measured - 4 * spread, measured + 4 * spread, measured)],
        x="accounts (line: theory, dots: engine with 4 standard errors)",
        y="earned by honest work, tokens a task",
        log_x=True,
    )
    return [Finding(sentence, figure)], claims


def _convicted(share: float) -> str:
    return _column("convicted", share)
