"""Claims and findings of the study of looks: earnings and lost locks compared with their closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from protocol.chain.recommendation import RULES
from protocol.tasks.amounts import derive, lock_capital, look_fees
from sim.parameters import MarketParameters
from sim.studies.grids import Grid, within
from sim.studies.points import where
from sim.studies.study import CHANCE, Claim, Finding, Study, Table
from sim.studies.tables import by_point, draws, mean, points_of, standard_error
from sim.theory import (
    Earned,
    Looking,
    earned,
    gain_of_skipping,
    looks_by_level,
    skipping_by_level,
    tipping_share,
)
from sim.trust_table import ROLLUP
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOCKS: Final = ("skip_share", "lock_share")
LOOKERS: Final = ("skip_share", "in_seats")
SIZES: Final = ("segments",)
GRIDS: Final[Sequence[Grid]] = (LOCKS, LOOKERS, SIZES)
BEARABLE: Final = 0.1
"""Tolerated share of replays that are skipped in equilibrium."""
_BUDGET: Final = 1_000
"""Budget of the task whose looks are priced, in tokens."""
_DAYS: Final = 3
_UTILISATIONS: Final = tuple(Fraction(n, 100) for n in (10, 20, 30, 40, 50, 70, 100))


def looking(parameters: MarketParameters) -> Looking:
    """The terms and costs of looks for `sim.theory.looks`, with amounts in token units. An accusation begins
    as a game that the accuser drops, so `accuse` includes the game's cost, which the accuser pays to the
    solver.
    """
    gas = parameters.gas_price * TOKEN
    return Looking(
        verifiers=parameters.verifiers,
        segments=parameters.segments_per_verifier,
        chance=parameters.look_chance,
        fee=float(parameters.audit_fee),
        replay=parameters.replay_cost * parameters.training_cost / parameters.segments,
        lock=float(parameters.lock),
        attest=parameters.gas_attest * gas,
        reveal=parameters.gas_reveal * gas,
        accuse=parameters.gas_accuse * gas + parameters.game_cost,
    )


class Seen:
    """The table, and the values that theory expects at each of its points."""

    def __init__(self, study: Study, table: Table) -> None:
        self.study, self.table = study, table
        self.points = points_of(study, table)
        self.cases = [study.case(point) for point in self.points]
        self.terms = [looking(case.parameters) for case in self.cases]
        self.skippers = [case.population.verifiers[1].size for case in self.cases]
        self.accounts = [case.parameters.verifier_count for case in self.cases]
        self.tasks = by_point(table, "run").shape[1] * int(table["rounds"][0])
        self.means = {name: mean(table, name) for name in ("looks", "caught", "replaying", "skipping")}

    def _in_seats(self, number: int) -> bool:
        return bool(self.points[number]["in_seats"])

    def _earned(self, number: int) -> Earned:
        return earned(
            self.terms[number],
            accounts=self.accounts[number],
            skippers=self.skippers[number],
            in_seats=self._in_seats(number),
        )

    # ------------------------------------------------------------------ claims

    def claims(self) -> list[Claim]:
        """Claims at each point: on the number of looks, on the number of lost locks, on the earnings of
        accounts that replay, and on the earnings of accounts that skip.
        """
        claims = []
        for number, terms in enumerate(self.terms):
            expected = self._earned(number)
            looks = float(looks_by_level(slots=terms.slots, chance=terms.chance).sum())
            # Each look or lost lock is a coin toss. One lost lock is allowed even if fewer are expected.
            locks = float(np.sqrt(max(expected.caught * self.tasks, 1.0))) / self.tasks
            for name, text, due, scale, least, bound in (
                ("looks", "looks a task", looks, 1, float(np.sqrt(looks / self.tasks)), CHANCE),
                ("caught", "lost locks a task", expected.caught, 1, locks, CHANCE),
                (
                    "replaying",
                    "tokens a task of who replays",
                    expected.replaying,
                    TOKEN,
                    terms.lock / 2 * locks,
                    0.0,
                ),
                ("skipping", "tokens a task of who skips", expected.skipping, TOKEN, terms.lock * locks, 0.0),
            ):
                error = max(float(standard_error(self.table, name)[number]), least)
                measured = float(self.means[name][number])
                claims.append(
                    Claim(
                        f"{text} at {where(self.study, self.points[number])}",
                        due / scale,
                        measured / scale,
                        error / scale,
                        draws=draws(self.table, number),
                        bound=bound,
                    )
                )
        return claims

    # ------------------------------------------------------------------ findings

    def findings(self) -> list[Finding]:
        """A finding for each grid in which every parameter has several values, followed by `price`. Without
        such a grid, there are no findings.
        """
        made = []
        for grid, finding in ((LOCKS, self._locks), (LOOKERS, self._lookers), (SIZES, self._sizes)):
            here = within(self.study, self.points, grid)
            if all(len({self.points[n][name] for n in here}) > 1 for name in grid):
                made.append(finding(here))
        return [*made, price()] if made else []

    def gain(self, number: int) -> float:
        """How much more a skipper has earned than a verifier that replays, in tokens per seat."""
        skippers, accounts = self.skippers[number], self.accounts[number]
        each = self.terms[number].verifiers / accounts * TOKEN
        skipping, replaying = (float(self.means[name][number]) for name in ("skipping", "replaying"))
        return (skipping / skippers - replaying / (accounts - skippers)) / each

    def _due(self, number: int) -> float:
        gain = gain_of_skipping(
            self.terms[number],
            accounts=self.accounts[number],
            skippers=self.skippers[number],
            in_seats=self._in_seats(number),
        )
        return gain / TOKEN

    def _locks(self, here: Sequence[int]) -> Finding:
        most = max(self.points[n]["lock_share"] for n in here)
        whole = sorted((n for n in here if self.points[n]["lock_share"] == most), key=self._share)
        gains = [self.gain(n) for n in whole]
        terms = self.terms[whole[0]]
        tips = []
        for value in sorted({self.points[n]["lock_share"] for n in here} - {most}, reverse=True):
            one = next(n for n in here if self.points[n]["lock_share"] == value)
            tip = tipping_share(self.terms[one], accounts=self.accounts[one])
            words = f"from a share of {tip:.0%} on" if np.isfinite(tip) else "at no share"
            tips.append(f"{words} at {value:g} of that lock")
        lose = "less" if max(gains) < 0 else "not always less"
        return Finding(
            f"A rubber stamp earns {lose} than who replays, at shares of stamps from {self._share(whole[0]):.0%} to "
            f"{self._share(whole[-1]):.0%}, with a lock of {terms.lock / TOKEN:.3g} tokens and a look chance of "
            f"{terms.chance:.0%}: {_span(gains)} tokens more a seat, whose fee is "
            f"{terms.fee * terms.segments / TOKEN:.3g}; by theory stamping pays {', '.join(tips) or 'nowhere else'}",
            self._figure(here, "lock_share"),
            note="Copying another's attestation is the same: a digest under another salt answers no accusation. "
            "Training costs the whole budget here, so a replay costs all that its fee is derived from.",
        )

    def _lookers(self, here: Sequence[int]) -> Finding:
        lazy = sorted((n for n in here if not self.points[n]["in_seats"]), key=self._share)
        gains = [self.gain(n) for n in lazy]
        lose = "less" if max(gains) < 0 else "not always less"
        return Finding(
            f"A lazy looker, which replays its seats and no looks, earns {lose} than who replays all: {_span(gains)} "
            f"tokens more for each seat that it has, at shares from {self._share(lazy[0]):.0%} to "
            f"{self._share(lazy[-1]):.0%}",
            self._figure(here, "in_seats"),
        )

    def _sizes(self, here: Sequence[int]) -> Finding:
        """A finding on the equilibrium of accounts that decide separately for each level (seats, looks at
        seats, looks at looks, …) whether to replay. For each number of segments of the task, it gives the
        share of looks that are skipped on the last level but one, and on the last level.
        """
        words, most = [], 0.0
        for n in sorted(here, key=lambda n: self.points[n]["segments"]):
            found = skipping_by_level(self.terms[n])
            most = max(most, found.overall)
            *_, below, last = found.by_level
            words.append(f"{below:.1%} and {last:.0%} at K = {self.points[n]['segments']:.0f}")
        bearable = "at most" if most <= BEARABLE else "more than"
        return Finding(
            f"Where accounts choose for each level by itself, no seat is skipped in equilibrium, and of the looks of "
            f"the last level but one and of the last {', '.join(words)}: {most:.2g} of all replays, {bearable} "
            f"{BEARABLE:.0%}",
            note="By theory. Nobody looks at the last level, the fourth or with three segments of all seats the third, "
            "so it replays just enough for the one below to fear it. A look of a lower level that is the last of V q "
            "is left out. With all accounts alike nobody skips, as above.",
        )

    def _share(self, number: int) -> float:
        return float(self.points[number]["skip_share"])

    def _figure(self, here: Sequence[int], by: str) -> Figure:
        """A plot of what skipping gains, in tokens per seat (y axis), against the share of accounts that skip
        (x axis). It has one line for each value of the parameter `by`.
        """
        from sim.figures import Line, lines

        series = []
        for value in sorted({self.points[n][by] for n in here}):
            numbers = sorted((n for n in here if self.points[n][by] == value), key=self._share)
            series.append(
                Line(
                    f"{by} {self.study.unit(by).format(value)}",
                    [self._share(n) for n in numbers],
                    [self._due(n) for n in numbers],
                    points=[self.gain(n) for n in numbers],
                )
            )
        return lines(
            series,
            x="share of the accounts that skips",
            y="gain of skipping, tokens a seat (lines: theory, dots: engine)",
            level=0.0,
        )


def price() -> Finding:
    """A finding on the cost of looks and locks, for several utilisations. The utilisation is the share of the
    time for which tokens reserved for a lock are actually locked.
    """
    from sim.figures import Line, lines

    made = ROLLUP.setting(_BUDGET, _DAYS)
    fees, locks = [], []
    for utilisation in _UTILISATIONS:
        setting = replace(made, utilisation=utilisation)
        amounts = derive(setting, RULES)
        fees.append(100 * float(look_fees(setting, amounts) / setting.budget))
        locks.append(100 * float(lock_capital(setting, RULES, amounts) / setting.budget))
    whole = [fee + lock for fee, lock in zip(fees, locks)]
    words = [
        f"{whole[n]:.2f}% of the price where locks have a seat {float(_UTILISATIONS[n]):.0%} of the time"
        for n in (0, 2, len(whole) - 1)
    ]
    shares = [float(each) for each in _UTILISATIONS]
    return Finding(
        f"Looks and the capital of locks cost {', '.join(words)}",
        lines(
            [
                Line("looks and locks", shares, whole),
                Line("looks", shares, fees),
                Line("locks", shares, locks),
            ],
            x="share of the time in which a lock has a seat",
            y="% of the price",
        ),
        note=f"By `protocol.tasks.amounts`, for a budget of {_BUDGET:,} tokens at K = {made.segments} on a rollup; "
        "look chance and lock are chosen again for each.",
    )


def _span(gains: Sequence[float]) -> str:
    return f"{min(gains):.2f} to {max(gains):.2f}"
