"""Stake and audits: how large must the stake be so that the best cheater earns no more than honest work, and
what does a long task need?

At every point, honest work and several cheaters, each with a different share of false segments, are played
under the same seed. The figure shows the engine's measurements, and over them the zero-profit contour from
`sim.theory`. A second grid varies the length of a task that is played as a whole or split into milestones. In
the closed forms, as in the engine, a cheater gets the gain only if its result is accepted (`kept` is 0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from sim.agents.population import Population, population
from sim.agents.solvers import Solver
from sim.agents.verifiers import Trusting, Verifier
from sim.engine.simulate import Case, Columns, simulate
from sim.mechanism.arrays import Floats
from sim.parameters import MarketParameters
from sim.studies.cheaters import Disguised
from sim.studies.grids import within
from sim.studies.points import asked, grid, require, where
from sim.studies.prices import expected_price
from sim.studies.study import Answer, Claim, Extra, Finding, Point, Study, Table
from sim.studies.tables import by_point, draws, mean, points_of, standard_error
from sim.theory import advantage_at, caught_probability, stake_at
from sim.units import TOKEN, Unit

SHARES: Final = (0.0, 0.05, 0.3, 1.0)
"""The share of false segments of each cheater that is played. Each cheater has at least one false segment."""
MAP: Final = ("stake", "segments_per_verifier")
LENGTHS: Final = ("segments", "milestones")


class StakeAudits(Study):
    """A cheater that bids like an honest solver; some verifiers replay and the others do not."""

    name = "stake_audits"
    question = (
        "Which stake and how many audits take the best cheater's advantage, and what do long tasks need?"
    )
    runs = 1024
    rounds = 8

    def parameters(self) -> MarketParameters:
        """A market with equal devices. After a conviction, only verifiers are paid from the stake, so the
        stake can be small.
        """
        return MarketParameters(device_spread=0.0, restitution=0, retrain_reward=0)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """Axes of two grids: stake by audits at one length, and length by milestones at one stake."""
        stakes = (100, 200, 300, 500, 700, 1000, 1500, 2500, 5000)
        return {
            "stake": tuple(stake * TOKEN for stake in stakes),
            "segments_per_verifier": (1, 2, 3, 4, 6, 8),
            "segments": (50, 100, 200, 500, 1000, 2000),
            "milestones": (1, 10),
            "honest_share": (0.7,),
        }

    def extra(self) -> Mapping[str, Extra]:
        """The honest share, and the number of milestones."""
        return {
            "honest_share": Extra("share of the verifiers that replay; the others attest whatever is served"),
            "milestones": Extra(
                "equal tasks, one after the other, that a long one is split into", Unit.COUNT, 1, 1e4
            ),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Points of two grids: stakes by audits, and lengths by milestones."""
        return asked(self, given, (MAP, LENGTHS))

    def case(self, point: Point) -> Case:
        """The market of one part of the task. It has the part's segments and cost, but the gain of the whole task."""
        whole = super().case(point).parameters
        parts = int(point["milestones"])
        segments = -(-whole.segments // parts)
        part = whole.with_values(
            {
                "segments": segments,
                "training_cost": whole.training_cost // parts,
                "segments_per_verifier": min(whole.segments_per_verifier, segments),
            }
        )
        return Case(part, self.population(part, point))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """Honest solvers. Raises ParameterError if the closed forms do not apply."""
        require(self.parameters(), parameters)
        return population([(Solver(), parameters.solver_count)], _verifiers(parameters, point))

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """The advantage of each cheater over honest work under the same seed, and its rate of conviction."""
        case = self.case(point)
        parameters = case.parameters
        honest = simulate(case, runs=runs, rounds=rounds, seed=seed)["profit_solver_honest"]
        columns = {"profit_honest": honest}
        for share in SHARES:
            cheater = population([(Disguised(share), parameters.solver_count)], _verifiers(parameters, point))
            played = simulate(Case(parameters, cheater), runs=runs, rounds=rounds, seed=seed)
            columns[_column("advantage", share)] = played["profit_solver_disguised"] - honest
            columns[_column("convicted", share)] = played["convicted"]
        return columns

    def answer(self, table: Table) -> Answer:
        """Findings and claims on both grids: the map of stake and audits, and task lengths."""
        points = points_of(self, table)
        tasks = int(by_point(table, "run").shape[1] * table["rounds"][0])
        forms = [_Forms(self.case(point)) for point in points]
        advantage = np.stack([mean(table, _column("advantage", share)) for share in SHARES], axis=1)
        seen = np.stack([standard_error(table, _column("advantage", share)) for share in SHARES], axis=1)
        coin = np.stack([form.coin(tasks) * form.swing for form in forms])
        error = np.where(np.isfinite(seen), np.maximum(seen, coin), coin)
        findings, claims = _map(self, points, forms, advantage, error, table)
        convicted = np.stack([mean(table, _column("convicted", share)) for share in SHARES], axis=1)
        more, also = _lengths(self, points, forms, convicted, tasks, table)
        return Answer([*findings, *more], [*claims, *also])


def _verifiers(parameters: MarketParameters, point: Point) -> list[tuple[Verifier, int]]:
    honest = round(point["honest_share"] * parameters.verifier_count)
    return [(Verifier(), honest), (Trusting(), parameters.verifier_count - honest)]


def _tokens(amount: float) -> str:
    """A number of tokens as text. If the amount is infinite, the text is "none": without a chance of
    conviction, no stake is enough.
    """
    return f"{amount:,.0f} tokens" if np.isfinite(amount) else "none"


def _column(measure: str, share: float) -> str:
    """Name of the column that holds a measure for one false share. The name contains the share in percent."""
    return f"{measure}_{100 * share:g}"


class _Forms:
    """Closed forms at one point. The arrays have one value for each of `SHARES`: their shape is (shares,).
    Amounts are in token units.
    """

    def __init__(self, case: Case) -> None:
        self.parameters = parameters = case.parameters
        self.false = np.array([Disguised(share).false(parameters) for share in SHARES])
        price = expected_price(parameters)
        self.money: dict[str, Any] = {
            "price": price,
            "gain": parameters.gain,
            "cost": parameters.training_cost,
        }
        self.defence = parameters.gas_defence * parameters.gas_price * TOKEN
        """Gas for defending the lost game. Like the stake, it is part of the cost of a conviction."""
        self.honest = case.population.honest
        self.caught = self.chance(self.false)
        self.swing = parameters.stake + price + parameters.gain + self.defence

    def chance(self, false: Any) -> Floats:
        parameters = self.parameters
        return caught_probability(
            parameters.segments,
            false,
            parameters.segments_per_verifier,
            parameters.verifiers,
            self.honest,
            accounts=parameters.verifier_count,
        )

    def coin(self, tasks: int) -> Floats:
        """Standard error of each chance of conviction if it is measured over `tasks` tasks, but at least 1 /
        `tasks`.
        """
        return np.maximum(np.sqrt(self.caught * (1 - self.caught) / tasks), 1 / tasks)

    @property
    def advantage(self) -> Floats:
        """Advantage of a cheater over honest work, for each false share in `SHARES`."""
        share = self.false / self.parameters.segments
        return advantage_at(
            self.caught, share=share, stake=self.parameters.stake + self.defence, kept=0, **self.money
        )

    def zero_profit(self) -> float:
        """The least stake at which no number m of false segments earns more than honest work."""
        every = np.arange(1, self.parameters.segments + 1)
        return float(self.stakes(self.chance(every), every).max())

    def stakes(self, caught: Floats, false: Any) -> Floats:
        """Zero-profit stakes for given chances of conviction."""
        share = false / self.parameters.segments
        return stake_at(caught, share=share, kept=0, **self.money) - self.defence


def _map(
    study: Study,
    points: Sequence[Point],
    forms: Sequence[_Forms],
    advantage: Floats,
    error: Floats,
    table: Table,
) -> tuple[list[Finding], list[Claim]]:
    claims, agree, off = [], 0, 0
    for number, (point, form, seen, spread) in enumerate(zip(points, forms, advantage, error)):
        best = int(form.advantage.argmax())
        three = (form.advantage[best], seen[best], spread[best])
        text = f"best cheater's advantage in tokens ({form.false[best]} false) at {where(study, point)}"
        claims.append(Claim(text, *(float(amount) / TOKEN for amount in three), draws=draws(table, number)))
        measured = int(seen.argmax())
        if abs(seen[measured]) > 4 * spread[measured]:
            off += 1
            agree += (seen[measured] > 0) == (form.parameters.stake < form.zero_profit())
    text = "points off the contour where cheating pays on one side only"
    claims.append(Claim(text, off, agree, 0.0, draws=draws(table, *range(len(points)))))
    numbers = within(study, points, MAP)
    chosen = [points[i] for i in numbers]
    across, up, laid = grid(chosen, advantage[numbers].max(axis=1) / TOKEN, "stake", "segments_per_verifier")
    # The other grid has one point at the default stake, which need not be on the axis.
    whole = np.isfinite(laid).all(axis=0)
    across, laid = across[whole], laid[:, whole]
    contour = {
        point["segments_per_verifier"]: forms[i].zero_profit() / TOKEN for i, point in zip(numbers, chosen)
    }
    fewest, most = min(contour), max(contour)
    verb = "agrees" if agree == off else "does not agree"
    sentence = (
        f"Where cheating pays {verb} with the closed form at {agree:,} of {off:,} points off its contour: with "
        f"{chosen[0]['segments']:,} segments the stake that ends it is {_tokens(contour[fewest])} with {fewest:g} "
        f"drawn for each verifier, {_tokens(contour[most])} with {most:g}"
    )
    return [Finding(sentence, _heat(across / TOKEN, up, laid, contour))], claims


def _heat(across: Floats, up: Floats, laid: Floats, contour: Mapping[float, float]) -> Any:
    from sim.figures import heat_map

    most = max(float(np.nanmax(laid)), 1.0)
    figure = heat_map(
        across, up, np.clip(laid, -most, most), x="stake S, tokens (line: zero profit by the closed form)",
        y="audits q of each verifier", label="best advantage, tokens a task (losses cut off)",
        contours=(), log_x=True,
    )  # fmt: skip
    axes = figure.axes[0]
    inside = [
        (stake, audits) for audits, stake in sorted(contour.items()) if across[0] <= stake <= across[-1]
    ]
    if inside:
        axes.plot(*zip(*inside), "-o", color="black", markersize=3)
    return figure


def _lengths(
    study: Study,
    points: Sequence[Point],
    forms: Sequence[_Forms],
    convicted: Floats,
    tasks: int,
    table: Table,
) -> tuple[list[Finding], list[Claim]]:
    """Findings and claims on the stake that ends cheating, for each task length. The stake in theory is
    compared with the stake computed from the engine's conviction rate.
    """
    numbers = within(study, points, LENGTHS)
    price = forms[numbers[0]].money["price"]
    rows, claims = [], []
    for i in numbers:
        form = forms[i]
        needed = form.stakes(form.caught, form.false)
        worst = int(needed.argmax())
        if not np.isfinite(needed[worst]):
            continue  # If nobody replays, no stake is enough.
        seen = convicted[i, worst : worst + 1]
        measured = float(form.stakes(seen, form.false[worst])[0])
        # dS / dD of (f c + G) / D - ...
        share = form.false[worst] / form.parameters.segments
        error = (
            (share * form.money["cost"] + form.money["gain"])
            / form.caught[worst] ** 2
            * form.coin(tasks)[worst]
        )
        if np.isfinite(measured):
            text = f"zero-profit stake in tokens ({form.false[worst]} false) at {where(study, points[i])}"
            claims.append(
                Claim(
                    text, *(float(n) / TOKEN for n in (needed[worst], measured, error)), draws=draws(table, i)
                )
            )
        rows.append((points[i]["segments"], points[i]["milestones"], needed[worst], measured))
    if len({row[0] for row in rows}) < 2:
        return [], claims
    lengths = np.array(sorted(rows))
    parts = np.unique(lengths[:, 1])
    whole, split = (lengths[lengths[:, 1] == n] for n in (parts[0], parts[-1]))
    sentence = (
        f"From {whole[0, 0]:,.0f} to {whole[-1, 0]:,.0f} segments the stake that ends cheating grows "
        f"from {_tokens(whole[0, 3] / TOKEN)} to {_tokens(whole[-1, 3] / TOKEN)} "
        f"(theory {_tokens(whole[-1, 2] / TOKEN)})"
    )
    if len(parts) > 1:
        sentence += f"; {parts[-1]:.0f} milestones lower it to {_tokens(split[-1, 3] / TOKEN)}"
    note = f"Each milestone can be worth the whole gain, and the price of a whole task is {price / TOKEN:,.1f} tokens."
    return [Finding(sentence, _growth(parts, lengths), note)], claims


def _growth(parts: Floats, lengths: Floats) -> Any:
    from sim.figures import Line, lines

    series = []
    for n in parts:
        mine = lengths[lengths[:, 1] == n]
        stakes, seen = np.maximum(mine[:, 2] / TOKEN, 0.1), mine[:, 3] / TOKEN
        seen = np.where(np.isfinite(seen), seen, np.nan)
        series.append(Line("whole" if n == 1 else f"{n:.0f} milestones", mine[:, 0], stakes, points=seen))
    return lines(series, x="segments K of the whole task (lines: theory, dots: engine)",
                 y="stake that ends cheating, tokens", log_x=True, log_y=True)  # fmt: skip
