"""Claims and findings of the study of capital: draws, sales and prices compared with their closed forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from protocol.chain.parameters import TOKEN as CHAIN_TOKEN
from protocol.chain.recommendation import RULES
from protocol.tasks.amounts import Amounts, TrustPrice, task_capital, trust_price
from protocol.tasks.task import ESCROW_DRAWS
from sim.parameters import MarketParameters
from sim.recommendation import setting_of
from sim.studies.grids import Grid, within
from sim.studies.points import where
from sim.studies.study import CHANCE, Claim, Finding, Study, Table
from sim.studies.tables import by_point, draws, mean, points_of, standard_error
from sim.theory import Draws, draws_in_flight, least_accounts, sold_in_flight
from sim.units import TOKEN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEATS: Final = ("overlap", "accounts_per_seat")
STAKES: Final = ("overlap", "solver_capital")
PRICES: Final = ("capital_rate", "segments")
GRIDS: Final[Sequence[Grid]] = (SEATS, STAKES, PRICES)
BEARABLE: Final = 0.01
"""Tolerated share of tasks with an empty seat after the first draw."""
_SCALE: Final = CHAIN_TOKEN // TOKEN
_NEVER: Final = 1e-9
"""A number of redraws, or a chance, that is below this value is treated as 0."""
_UNIT: Final = 1 / TOKEN
"""Error, in tokens, of amounts that are deterministic but rounded to whole units."""


_AMOUNTS: Final = (
    "stake",
    "restitution",
    "reward",
    "audit_fee",
    "game_cost",
    "delay_penalty",
    "bond",
    "retrain_reward",
)


class Prices(NamedTuple):
    """Cost of one task's locks, in tokens."""

    solver: float
    seats: float
    escrow: float
    """Cost of the whole escrow."""
    trust: float
    """`TrustPrice.stake` plus `TrustPrice.locks`. Of the escrow, only the fees count here; the budget does not."""


def prices(parameters: MarketParameters) -> Prices:
    """The cost of capital with these terms, in tokens. `protocol.tasks.trust` computes it in the chain's
    units.
    """
    amounts = Amounts(
        **{name: getattr(parameters, name) * _SCALE for name in _AMOUNTS},
        verifiers=parameters.verifiers,
        segments_per_verifier=parameters.segments_per_verifier,
        seat_lock=parameters.lock * _SCALE,
    )
    rate = Fraction(parameters.capital_rate)
    capital = task_capital(
        rate,
        training=parameters.training_time,
        audit=parameters.audit_time,
        stake=amounts.stake,
        delay_penalty=amounts.delay_penalty,
        seat_lock=amounts.seat_lock,
        escrow=parameters.escrow * _SCALE,
    )
    trust = _trust(parameters, amounts, rate)
    parts = (
        capital.stake + capital.delay_penalty,
        amounts.verifiers * capital.seat,
        capital.escrow,
        trust.stake + trust.locks,
    )
    return Prices(*(float(part / CHAIN_TOKEN) for part in parts))


def _trust(parameters: MarketParameters, amounts: Amounts, rate: Fraction) -> TrustPrice:
    setting = replace(
        setting_of(parameters.segments, parameters.budget * _SCALE),
        training=parameters.training_time,
        audit=parameters.audit_time,
    )
    return trust_price(setting, replace(RULES, capital_rate=rate), amounts)


class Seen:
    """The table, and the values that theory expects at each of its points."""

    def __init__(self, study: Study, table: Table) -> None:
        self.study, self.table = study, table
        self.points = points_of(study, table)
        self.cases = [study.case(point).parameters for point in self.points]
        self.rounds = int(table["rounds"][0])
        self.tasks = by_point(table, "run").shape[1] * self.rounds
        self.drawn = [self._drawn(parameters) for parameters in self.cases]
        self.means = {
            name: mean(table, name)
            for name in (
                "redrawn",
                "unfilled",
                "sold",
                "capital_submitter",
                "capital_solver",
                "capital_seats",
            )
        }

    def _drawn(self, parameters: MarketParameters) -> Draws:
        return draws_in_flight(
            verifiers=parameters.verifiers,
            accounts=parameters.verifier_count,
            overlap=parameters.overlap,
            tasks=self.rounds,
            draws=min(ESCROW_DRAWS, parameters.redraws + 1),
        )

    # ------------------------------------------------------------------ claims

    def claims(self) -> list[Claim]:
        """Claims at each point. If the point limits solvers' capital, they are claims on sales. At all other
        points, every task is sold, and the claims are on the prices of capital or on draws: on prices if
        capital has a cost and the first draw fills all seats, otherwise on draws.
        """
        claims = []
        for number, parameters in enumerate(self.cases):
            if parameters.solver_capital:
                claims += self._sales(number)
            elif parameters.capital_rate and self.drawn[number].redraws < _NEVER:
                claims += self._prices(number)
            else:
                claims += self._draws(number)
        return claims

    def _draws(self, number: int) -> list[Claim]:
        """Claims on redraws and on empty seats. The error is the largest of three values: the standard error
        over runs, the standard error of a Poisson count, and one event in all tasks. The first is taken over
        runs because the draws of a run are not independent.
        """
        claims = []
        for name, text, expected in (
            ("redrawn", "redraws a task", self.drawn[number].redraws),
            ("unfilled", "tasks with an empty seat in the end", self.drawn[number].unfilled),
        ):
            seen = float(standard_error(self.table, name)[number])
            least = max(1.0, float(np.sqrt(expected * self.tasks))) / self.tasks
            error = max(seen, least) if np.isfinite(seen) else least
            expected = expected if expected >= _NEVER else 0.0
            claims.append(self._claim(text, number, expected, float(self.means[name][number]), error, CHANCE))
        return claims

    def _sales(self, number: int) -> list[Claim]:
        """Claims about the share of tasks sold. There are none if a solver could earn enough during the run
        to pay for another stake.
        """
        parameters = self.cases[number]
        if self.rounds * parameters.budget >= parameters.stake:
            return []
        expected = self.sold(parameters)
        return [self._claim("sold", number, expected, float(self.means["sold"][number]), 0.0, CHANCE)]

    def sold(self, parameters: MarketParameters) -> float:
        """The share of sold tasks that theory expects."""
        stakes = parameters.solver_capital * parameters.solver_count
        return sold_in_flight(stakes=stakes, overlap=parameters.overlap, tasks=self.rounds)

    def _prices(self, number: int) -> list[Claim]:
        """Claims on the cost of capital. It is deterministic except that each party's cost is rounded to units."""
        parameters = self.cases[number]
        expected = prices(parameters)
        solver, seats, escrow = (
            float(self.means[f"capital_{name}"][number]) / TOKEN for name in ("solver", "seats", "submitter")
        )
        fees = parameters.verifiers * parameters.seat_fee / parameters.escrow
        numbers = (
            ("the solver's capital", expected.solver, solver),
            ("the seats' capital", expected.seats, seats),
            ("the escrow's capital", expected.escrow, escrow),
            ("capital in the price of trust", expected.trust, solver + seats + fees * escrow),
        )
        return [
            self._claim(f"{text}, tokens a task", number, due, found, _UNIT) for text, due, found in numbers
        ]

    def _claim(
        self, text: str, number: int, expected: float, measured: float, error: float, bound: float = 0.0
    ) -> Claim:
        at = where(self.study, self.points[number])
        return Claim(
            f"{text} at {at}", expected, measured, error, draws=draws(self.table, number), bound=bound
        )

    # ------------------------------------------------------------------ findings

    def findings(self) -> list[Finding]:
        """A finding for each grid in which every parameter has several values."""
        made = []
        for grid, finding in ((SEATS, self._seats), (STAKES, self._stakes), (PRICES, self._price)):
            here = within(self.study, self.points, grid)
            if all(len({self.points[n][name] for n in here}) > 1 for name in grid):
                made.append(finding(here))
        return made

    def _seats(self, here: Sequence[int]) -> Finding:
        verifiers = self.cases[here[0]].verifiers
        needed = [
            f"{least_accounts(verifiers=verifiers, overlap=overlap, redrawn=BEARABLE):,} at {overlap}"
            for overlap in (1, 4, 16, 64)
        ]
        most = max(self.points[n]["overlap"] for n in here)
        crowded = sorted(
            (n for n in here if self.points[n]["overlap"] == most),
            key=lambda n: self.cases[n].verifier_count,
        )
        words = [
            f"{self.means['redrawn'][n]:.2g} times with {self.cases[n].verifier_count}" for n in crowded[:4]
        ]
        return Finding(
            f"Draws find their seats with few more accounts than tasks in flight have seats: for at most "
            f"{BEARABLE:.0%} of the tasks to be drawn again, {verifiers} seats each, it takes {', '.join(needed)} "
            f"tasks at a time by theory; with {most:.0f} at a time a task is redrawn {', '.join(words)} accounts",
            self._figure(
                here,
                "accounts_per_seat",
                "overlap",
                "redrawn",
                [drawn.redraws for drawn in self.drawn],
                "redraws a task",
                "accounts for each seat of the tasks in flight",
                log_y=True,
            ),
            note=f"With {self.cases[crowded[0]].verifier_count} accounts "
            f"{self.means['unfilled'][crowded[0]]:.0%} of the tasks end void. The escrow pays each further draw, "
            f"{ESCROW_DRAWS} draws of a task at most. Accounts are of one stake unit each.",
        )

    def _stakes(self, here: Sequence[int]) -> Finding:
        count = self.cases[here[0]].solver_count
        short = [n for n in here if self.cases[n].solver_capital and self.sold(self.cases[n]) < 1]
        words = [
            f"{self.means['sold'][n]:.0%} with {self.cases[n].solver_capital * count} stakes for "
            f"{self.cases[n].overlap} tasks at a time"
            for n in sorted(short, key=lambda n: (self.cases[n].overlap, self.cases[n].solver_capital))
        ]
        shown = [n for n in here if self.cases[n].solver_capital]
        return Finding(
            f"Solvers sell as many tasks at a time as they own stakes, and no more: of the tasks posted are sold "
            f"{', '.join(words) or 'all'}",
            self._figure(
                shown,
                "overlap",
                "solver_capital",
                "sold",
                [self.sold(parameters) for parameters in self.cases],
                "share of tasks that is sold",
                "tasks at a time",
            ),
            note=f"{count} solvers. What they earn during a run buys no further stake.",
        )

    def _price(self, here: Sequence[int]) -> Finding:
        rate = float(RULES.capital_rate)
        rates = {self.points[n]["capital_rate"] for n in here}
        rate = rate if rate in rates else max(rates)
        words = []
        for n in sorted(here, key=lambda n: self.points[n]["segments"]):
            if self.points[n]["capital_rate"] == rate:
                parts = prices(self.cases[n])
                words.append(
                    f"{self._whole(n):.2g} tokens at K = {self.points[n]['segments']:.0f} "
                    f"({parts.trust:.2g} of them in the price of trust)"
                )
        budget = self.cases[here[0]].budget / TOKEN
        return Finding(
            f"At {rate:.0%} a year the capital of all locks costs, at a budget of {budget:g} tokens, "
            f"{', '.join(words)}; most of it is the stake's",
            self._figure(
                here,
                "capital_rate",
                "segments",
                "capital_solver",
                [prices(parameters).solver for parameters in self.cases],
                "solver's cost, tokens",
                "what capital costs a year",
                scale=TOKEN,
            ),
            note="Beyond the price of trust there is the rest of the escrow: budget and draws, while the task lasts.",
        )

    def _whole(self, number: int) -> float:
        """Total cost of all parties' locks, in tokens per task."""
        return sum(
            float(self.means[f"capital_{name}"][number]) / TOKEN for name in ("solver", "seats", "submitter")
        )

    def _figure(
        self,
        here: Sequence[int],
        x: str,
        by: str,
        column: str,
        expected: Sequence[float],
        label: str,
        across: str,
        *,
        scale: float = 1,
        log_y: bool = False,
    ) -> Figure:
        """A plot of one column over a parameter, with a line for each value of another parameter.

        On a logarithmic axis, values that amount to less than one event in all tasks are omitted.
        """
        from sim.figures import Line, lines

        least = 1 / self.tasks if log_y else -np.inf

        def shown(value: float) -> float:
            return value if value >= least else np.nan

        series = []
        for value in sorted({self.points[n][by] for n in here}):
            numbers = sorted(
                (n for n in here if self.points[n][by] == value), key=lambda n: self.points[n][x]
            )
            series.append(
                Line(
                    f"{by} {self.study.unit(by).format(value)}",
                    [self.points[n][x] for n in numbers],
                    [shown(expected[n]) for n in numbers],
                    points=[shown(self.means[column][n] / scale) for n in numbers],
                )
            )
        y = f"{label} (lines: theory, dots: engine)"
        return lines(series, x=across, y=y, log_y=log_y and max(self.means[column][list(here)]) >= least)
