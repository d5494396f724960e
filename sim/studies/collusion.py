"""Collusion and Sybils: from which share of the slots do a cheater and its accomplices win, and does splitting help?

Accomplices attest every result of their cheater and challenge none. Its profit, and theirs together, is measured over
honest work of all of them under the same seed, and compared with the closed forms. A second grid splits their slots
into more accounts. The gain comes with acceptance, as the engine plays it: conviction takes it beside the stake.
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
from sim.studies.points import ALIKE, agreement, asked, crossing, require, where
from sim.studies.prices import expected_price
from sim.studies.study import Answer, Claim, Extra, Finding, Point, Study, Table
from sim.studies.tables import by_point, mean, points_of, standard_error
from sim.theory import (
    advantage_at,
    caught_probability,
    collusion_threshold,
    expected_duties,
    missed_probability,
)
from sim.units import TOKEN, Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES: Final = (0.0, 0.1, 1.0)
"""False shares of the cheaters that are played; at least one segment each."""
SEATS: Final = ("colluding", "verifiers")
SPLITS: Final = ("accounts",)


@dataclass(frozen=True)
class Accomplice(Verifier):
    """A colluder with nothing to cover up: it does honest work."""

    name: ClassVar[str] = "accomplice"


class Collusion(Study):
    """A cheater that bids like an honest solver, its accomplices, and honest verifiers."""

    name = "collusion"
    question = "From which share of the slots do colluders win, and does splitting their stake change it?"
    runs = 1000
    rounds = 4

    def parameters(self) -> MarketParameters:
        """Devices alike."""
        return MarketParameters(device_spread=0.0)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """Share by seats, and accounts."""
        return {
            "colluding": (0.2, 0.0, 0.1, 0.35, 0.5, 0.65, 0.8, 0.95),
            "verifiers": (2, 3, 4, 8, 16),
            "accounts": (0, 1, 2, 5, 10, 40),
        }

    def extra(self) -> Mapping[str, Extra]:
        """What the colluders hold."""
        return {
            "colluding": Extra("share of the slots whose holders are the cheater's accomplices"),
            "accounts": Extra(
                "accounts that hold the colluders' slots, as equal as can be; 0: one for each slot",
                Unit.COUNT,
                0,
                1e5,
            ),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Share by seats, and accounts for one share."""
        return asked(self, given, (SEATS, SPLITS))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """Honest work of all. Raises ParameterError where theory has no term."""
        require(self.parameters(), parameters, (*ALIKE, "forced_error_rate"))
        return _people(parameters, point, Solver(), Accomplice())

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """What cheating earns over honest work: the cheater `alone`, and `joint` with its accomplices."""
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
        """Profit by share and seats, the threshold, and what splitting changes."""
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
            claims.append(Claim(text, *(float(number) / TOKEN for number in numbers)))
        seats, also = _seats(self, points, forms, means, errors)
        splits, more = _splits(self, points, forms, table)
        claims = [*also, *more, *claims]
        return Answer([*seats, *splits] or [agreement(claims)], claims)


def _accounts(parameters: MarketParameters, point: Point) -> list[tuple[int, int]]:
    """How many accounts the colluders' slots are in, and slots of each, as equal as can be."""
    slots = round(point["colluding"] * parameters.verifier_count)
    accounts = min(int(point["accounts"]) or slots, slots)
    if not slots:
        return []
    each, more = divmod(slots, accounts)
    return [(count, held) for count, held in ((more, each + 1), (accounts - more, each)) if count]


def _people(parameters: MarketParameters, point: Point, solver: Solver, theirs: Verifier) -> Population:
    """Colluders come first, so that a larger share of them holds the same seats and more."""
    colluders = _accounts(parameters, point)
    honest = parameters.verifier_count - sum(count * held for count, held in colluders)
    return population(
        [(solver, parameters.solver_count)],
        [*((theirs, count, held) for count, held in colluders), (Verifier(), honest)],
    )


def _column(measure: str, share: float) -> str:
    """By false share in percent."""
    return f"{measure}_{100 * share:g}"


class Forms:
    """Closed forms at one point for the false shares that are played, (shares,); amounts in token units."""

    def __init__(self, case: Case, point: Point) -> None:
        self.parameters = parameters = case.parameters
        self.share = round(point["colluding"] * parameters.verifier_count) / parameters.verifier_count
        held = _accounts(parameters, point)
        self.accounts = sum(count for count, _ in held)
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
        self.duties, self.duties_of_one = (
            sum(
                count * float(expected_duties(share=slots / parameters.verifier_count, **self.audit))
                for count, slots in split
            )
            for split in (held, [(1, sum(count * slots for count, slots in held))])
        )
        """Paid duties of the colluders together, and if they were one account (`theory.split_advantage`)."""
        self.lost = parameters.stake + parameters.gas_defence * parameters.gas_price * TOKEN
        """By one conviction, beside price and gain."""
        self.caught = caught_probability(false=self.false, honest=1 - self.share, rerolls=0, **self.audit)
        self.replay = parameters.replay_cost * parameters.training_cost / parameters.segments

    def coin(self, tasks: int) -> Floats:
        """Least standard error of a mean profit: each task is convicted or not."""
        chance = np.maximum(np.sqrt(self.caught * (1 - self.caught) / tasks), 1 / tasks)
        swing = float(self.lost + self.money["price"] + self.money["gain"])
        return np.asarray(chance * swing)

    @property
    def alone(self) -> Floats:
        """The cheater's advantage."""
        share = self.false / self.parameters.segments
        return np.asarray(
            advantage_at(self.caught, share=share, stake=self.lost, kept=0, **self.money), dtype=np.float64
        )

    @property
    def joint(self) -> Floats:
        """With its accomplices, who save their replays and lose their fees where it is convicted.

        A seat of theirs finds nothing; so its fee is paid where none of the other V - 1 seats finds anything.
        """
        hit = 1 - missed_probability(
            self.parameters.segments, self.false, self.parameters.segments_per_verifier
        )
        paid = (1 - (1 - self.share) * hit) ** (self.parameters.verifiers - 1)
        return np.asarray(self.alone + self.duties * (self.replay - (1 - paid) * self.parameters.audit_fee))

    def threshold(self) -> float:
        """The share of the slots from which some m pays, of all."""
        return collusion_threshold(
            rerolls=0, stake=self.lost + self.money["gain"], **self.audit, **self.money
        )

    def split(self) -> float:
        """What the accounts earn more than one would, all of them doing honest work."""
        parameters = self.parameters
        gas = parameters.gas_attest * parameters.gas_price * TOKEN
        return (self.duties - self.duties_of_one) * (parameters.audit_fee - self.replay - gas)


Part = tuple[list[Finding], list[Claim]]


def _seats(
    study: Study,
    points: Sequence[Point],
    forms: Sequence[Forms],
    means: Mapping[str, Floats],
    errors: Mapping[str, Floats],
) -> Part:
    """Where profit changes its sign, by the number of seats."""
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
                    f"colluding share from which {seats:g} seats let a cheater win", expected, *zeros["alone"]
                )
            )
            found.append(
                (seats, expected, zeros["alone"][0], zeros["joint"][0] if zeros["joint"] else np.nan)
            )
    if not found:
        return [], claims
    sentence = (
        f"Colluders win from {found[0][2]:.0%} of the slots with {found[0][0]:g} seats a task, "
        f"from {found[-1][2]:.0%} with {found[-1][0]:g} (theory {found[0][1]:.0%}, {found[-1][1]:.0%})"
    )
    moved = float(np.nanmean([together - alone for _, _, alone, together in found]))
    note = (
        f"With the accomplices' fees and the replays that they save the threshold moves by {moved:+.1%} of the slots "
        f"on average."
    )
    return [
        Finding(sentence, _thresholds(found)),
        Finding(_profit(series, points, means), _joint(series, forms, means), note),
    ], claims


def _profit(
    series: Sequence[tuple[float, list[int]]], points: Sequence[Point], means: Mapping[str, Floats]
) -> str:
    """How much the largest coalition of the grid makes, with the fewest and the most seats."""
    said = []
    for seats, numbers in (series[0], series[-1]):
        best = float(means["joint"][numbers[-1]].max()) / TOKEN
        said.append(f"{best:,.0f} tokens a task with {seats:g} seats")
    share = points[series[0][1][-1]]["colluding"]
    return f"With {share:.0%} of the slots a cheater and its accomplices earn {' and '.join(said)} over honest work"


def _thresholds(found: Sequence[tuple[float, float, float, float]]) -> Figure:
    from sim.figures import Line, lines

    seats, theory, alone, joint = (list(column) for column in zip(*found))
    return lines(
        [Line("cheater alone", seats, theory, points=alone), Line("with its accomplices", seats, joint)],
        x="seats V of a task (line: theory, dots: engine)",
        y="share of the slots from which cheating pays",
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
        x="colluding share of the slots (lines: theory, dots: engine)",
        y="best joint profit over honest work, tokens a task",
        level=0.0,
    )


def _splits(study: Study, points: Sequence[Point], forms: Sequence[Forms], table: Table) -> Part:
    """Conviction and fees by the number of accounts, less those of the fewest."""
    numbers = [n for n in within(study, points, SPLITS) if points[n]["accounts"] and forms[n].share]
    numbers.sort(key=lambda n: forms[n].accounts)
    if len(numbers) < 2:
        return [], []
    whole, claims = numbers[0], []
    fees: list[tuple[float, float, float, float]] = []
    rows = by_point(table, "accomplices")
    for n in numbers[1:]:
        count = forms[n].accounts
        for share in SHARES:
            name = _column("convicted", share)
            convicted = mean(table, name)
            apart = float(np.hypot(*standard_error(table, name)[[n, whole]]))
            text = f"convictions ({share:.0%} false) that {count:,} accounts change, not {forms[whole].accounts:,}"
            claims.append(Claim(text, 0.0, float(convicted[n] - convicted[whole]), apart))
        more = (rows[n] - rows[whole]) / TOKEN
        # No task in which two accounts were drawn for one duty is no contradiction to a rare one.
        error = max(
            float(more.std() / np.sqrt(len(more))), study.parameters().audit_fee / TOKEN / rows.shape[1]
        )
        fees.append((count, (forms[n].split() - forms[whole].split()) / TOKEN, float(more.mean()), error))
        claims.append(
            Claim(
                f"tokens a task that {count:,} accounts earn more than {forms[whole].accounts:,}",
                *fees[-1][1:],
            )
        )
    changed = max(abs(claim.measured) for claim in claims if claim.text.startswith("convictions"))
    sentence = (
        f"Splitting {forms[whole].share:.0%} of the slots into up to {forms[numbers[-1]].accounts:,} accounts changes "
        f"{'no conviction' if changed == 0 else f'convictions by {changed:.2%} at most'} and earns "
        f"{fees[-1][2]:.3f} tokens a task more in fees (theory {fees[-1][1]:.3f})"
    )
    from sim.figures import Line, lines

    accounts, expected, measured, spread = (np.array(column) for column in zip(*fees))
    figure = lines(
        [Line("", accounts, expected, measured - 4 * spread, measured + 4 * spread, measured)],
        x="accounts (line: theory, dots: engine with 4 standard errors)",
        y="fees over those of one account, tokens a task",
        log_x=True,
    )
    return [Finding(sentence, figure)], claims
