"""Dynamics: solvers and verifiers move towards better strategies, epoch by epoch, by payoffs from the engine.

Two shares move: the share x of solvers that cheat, and the share y of verifiers that replay. Replicator
dynamics (Taylor and Jonker, 1978) in discrete time multiply each strategy's share by the exponential of its
payoff. Best-response dynamics (Gilboa and Matsui, 1991) move a tenth of the way to the better strategy. The
end of each trajectory is compared with `sim.theory.inspection`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from sim.agents.population import Population, population
from sim.agents.verifiers import Trusting, Verifier
from sim.engine.simulate import Case, Columns, simulate
from sim.mechanism.arrays import Floats
from sim.parameters import MarketParameters
from sim.studies.cheaters import Disguised
from sim.studies.dynamics_reading import BEST_RESPONSE, FEWEST, REPLICATOR, REST, SEGMENTS, Trajectories
from sim.studies.points import of_both
from sim.studies.prices import expected_price
from sim.studies.recommended import parameters_for
from sim.studies.study import Answer, Claim, Extra, Point, Study, Table
from sim.studies.tables import by_point, draws, points_of
from sim.theory import (
    Duty,
    Equilibrium,
    cheating_advantage,
    committee_equilibrium,
    gain_against_cheater,
    missed_probability,
)
from sim.units import TOKEN, Unit

EPOCHS: Final = 48
_STEP: Final = 0.1
"""Best response: share of a population that changes to the better strategy in an epoch."""
_MOST_TURN: Final = 2.0
"""Replicator: largest change of a strategy's log odds in an epoch. Below this limit, the change is the
strategy's gain over the other one, in units of a false result's value (for solvers) or of the reward (for
verifiers).
"""


class Gains(NamedTuple):
    """What a solver gains by cheating instead of working honestly (tokens per task), and what a verifier
    gains by replaying instead of not replaying (tokens per seat).
    """

    solver: float
    verifier: float


class _Game(NamedTuple):
    """A market in the terms of `sim.theory.inspection`, with amounts in token units."""

    parameters: MarketParameters
    duty: Duty
    false: int
    hit: float
    price: float


class Dynamics(Study):
    """Plays trajectories of the two shares, from two opposite starting points, by two rules: replicator
    dynamics and best response.
    """

    name = "dynamics"
    question = (
        "Where do the shares of cheating solvers and replaying verifiers go when everybody follows profit?"
    )
    runs = 4
    rounds = 256
    """Number of tasks from which an epoch's payoffs are computed. Each run is one trajectory."""

    def parameters(self) -> MarketParameters:
        """The recommended market with free gas, because theory does not model who pays for later games."""
        return parameters_for(SEGMENTS).with_values({"gas_price": 0.0, "solver_count": 5})

    def axes(self) -> Mapping[str, Sequence[float]]:
        """The rules, the shares at a trajectory's start, and the share of segments that a cheater invents."""
        return {
            "rule": (REPLICATOR, BEST_RESPONSE),
            "cheating": (0.1, 0.9),
            "checking": (0.2, 0.8),
            "false_share": (0.5,),
        }

    def extra(self) -> Mapping[str, Extra]:
        """Parameters of the dynamics, which the engine does not have."""
        return {
            "rule": Extra("0: shares stay, 1: replicator, 2: best response", Unit.COUNT, 0, 2),
            "cheating": Extra("x: share of cheating solvers at first"),
            "checking": Extra("y: share of replaying verifiers at first"),
            "false_share": Extra("share of the segments that a cheater invents"),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Trajectories from two opposite corners; if the operator gives start shares, these replace the
        corners. If the operator gives no axes, there is also a trajectory that is held at theory's
        equilibrium.
        """
        points = super().points(given)
        if not {"cheating", "checking"} & {self.known(name) for name in given}:
            corners = {(0.1, 0.8), (0.9, 0.2)}
            points = [point for point in points if (point["cheating"], point["checking"]) in corners]
        if not given:
            rest = self.equilibrium(points[0])
            points.append(
                {
                    **points[0],
                    "rule": REST,
                    "cheating": rest.cheating,
                    "checking": _counted(rest.checking, self.parameters()),
                }
            )
        return points

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """All solvers cheat at the rate x; the share y of the verifiers replays."""
        return _people(parameters, point["false_share"], point["cheating"], point["checking"])

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """Shares and gains of every epoch: `cheating_00`, `checking_00`, `solver_00`, ...; a row is a trajectory."""
        parameters = self.case(point).parameters
        columns: dict[str, Floats] = {}
        for run in range(runs):
            x, y = point["cheating"], point["checking"]
            for epoch in range(EPOCHS):
                own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, run, epoch))
                gains = payoffs(parameters, point["false_share"], x, y, rounds, own)
                for name, value in (("cheating", x), ("checking", y), *gains._asdict().items()):
                    columns.setdefault(f"{name}_{epoch:02}", np.empty(runs))[run] = value
                scale = Gains(parameters.gain / TOKEN, parameters.reward / TOKEN)
                x = _moved(x, gains.solver / scale.solver, int(point["rule"]))
                y = _moved(y, gains.verifier / scale.verifier, int(point["rule"]))
        return columns

    def equilibrium(self, point: Point) -> Equilibrium:
        """The equilibrium of the inspection game with a committee of V verifiers. In the engine, the gain G
        comes only with the payment, so a conviction costs the solver G in addition to its stake.
        """
        game = self._game(point)
        return committee_equilibrium(
            game.duty,
            share=game.false / game.parameters.segments,
            hit=game.hit,
            verifiers=game.parameters.verifiers,
            honest=1.0,
            price=game.price,
            gain=game.parameters.gain,
            stake=game.parameters.stake + game.parameters.gain,
            cost=game.parameters.training_cost,
        )

    def expected(self, point: Point) -> Gains:
        """The gains that theory expects at the shares of a point, in tokens."""
        game = self._game(point)
        parameters = game.parameters
        found = _counted(point["checking"], parameters) * game.hit
        solver = cheating_advantage(
            segments=parameters.segments,
            false=game.false,
            segments_per_verifier=parameters.segments_per_verifier,
            verifiers=parameters.verifiers,
            honest=_counted(point["checking"], parameters),
            price=game.price,
            gain=parameters.gain,
            stake=parameters.stake,
            cost=parameters.training_cost,
            kept=0.0,
            accounts=parameters.verifier_count,
        )
        # If no replay can differ, the gain against a cheater equals the gain against an honest solver.
        against = [
            gain_against_cheater(game.duty, hit=hit, verifiers=parameters.verifiers, found=chance)
            for hit, chance in ((0.0, 0.0), (game.hit, found))
        ]
        x = point["cheating"]
        return Gains(float(solver) / TOKEN, ((1 - x) * against[0] + x * against[1]) / TOKEN)

    def _game(self, point: Point) -> _Game:
        """The engine's market in theory's terms. It does not depend on the point's shares x and y."""
        parameters = self.case({**point, "cheating": 0.5, "checking": 0.5}).parameters
        k, q = parameters.segments, parameters.segments_per_verifier
        false = Disguised(share=point["false_share"]).false(parameters)
        replays = parameters.replay_cost * parameters.training_cost / k * q
        duty = Duty(
            float(parameters.seat_fee), replays, float(parameters.reward), float(parameters.game_cost), q / k
        )
        price = expected_price(parameters)
        return _Game(parameters, duty, false, 1 - float(missed_probability(k, false, q)), price)

    def answer(self, table: Table) -> Answer:
        """Findings and claims. The findings show the trajectories that are not held at the equilibrium, over
        time and in the plane of shares. The claims are about the equilibrium.
        """
        points = points_of(self, table)
        shares = {name: _series(table, name) for name in ("cheating", "checking")}
        moving = [n for n, point in enumerate(points) if point["rule"] != REST]
        findings = Trajectories(self, points, shares, moving, self.equilibrium).findings() if moving else []
        return Answer(findings, self._claims(points, table))

    def _claims(self, points: Sequence[Point], table: Table) -> list[Claim]:
        """Claims on the gains at theory's equilibrium. Neither side gains there by deviating, apart from the
        effect of rounding to whole verifiers.
        """
        found = []
        for number, point in enumerate(points):
            if point["rule"] != REST:
                continue
            expected = self.expected(point)
            for name, text in (("solver", "cheating"), ("verifier", "replaying")):
                gains = _series(table, name)[number].ravel()
                error = float(gains.std(ddof=1) / np.sqrt(gains.size))
                found.append(
                    Claim(
                        f"what {text} earns at the equilibrium, tokens",
                        getattr(expected, name),
                        float(gains.mean()),
                        error,
                        draws=draws(table, number, each=EPOCHS * int(table["rounds"][0])),
                    )
                )
        return found


def payoffs(
    parameters: MarketParameters,
    false_share: float,
    x: float,
    y: float,
    tasks: int,
    seed: np.random.SeedSequence,
) -> Gains:
    """Gains if a share x of solvers cheats and a share y of verifiers replays. They come from two markets
    with the same seed: all solvers are honest in one and cheat in the other.

    The solver's gain is its profit in the cheating market minus its profit in the honest one. The verifier's
    gain is the mean of its gains in the honest and the cheating market, with the weights 1 - x and x: a task
    has one solver, so verifiers' earnings are linear in x.
    """
    honest, cheating = (
        simulate(Case(parameters, _people(parameters, false_share, rate, y)), runs=tasks, rounds=1, seed=seed)
        for rate in (0.0, 1.0)
    )
    looks = round(_counted(y, parameters) * parameters.verifier_count)
    sizes = {"honest": looks, "lazy": parameters.verifier_count - looks}

    def seat(columns: Columns, kind: str) -> float:
        """Profit of a seat of one kind, in tokens."""
        seats = parameters.verifiers * sizes[kind] / parameters.verifier_count
        return float(columns[f"profit_verifier_{kind}"].mean()) / TOKEN / seats

    return Gains(
        float((cheating["profit_solver_disguised"] - honest["profit_solver_disguised"]).mean()) / TOKEN,
        sum(
            share * (seat(columns, "honest") - seat(columns, "lazy"))
            for share, columns in ((1 - x, honest), (x, cheating))
        ),
    )


def _people(parameters: MarketParameters, false_share: float, x: float, y: float) -> Population:
    looks = round(_counted(y, parameters) * parameters.verifier_count)
    return population(
        [(Disguised(share=false_share, rate=x), parameters.solver_count)],
        [(Verifier(), looks), (Trusting(), parameters.verifier_count - looks)],
    )


def _counted(y: float, parameters: MarketParameters) -> float:
    """The share of replaying verifiers nearest to `y` that is a whole number of verifiers and leaves at least
    one verifier that replays and one that does not.
    """
    return of_both(_inner(y), parameters) / parameters.verifier_count


def _inner(share: float) -> float:
    return min(max(share, FEWEST), 1 - FEWEST)


def _moved(share: float, gain: float, rule: int) -> float:
    """The share of a strategy after an epoch in which it gained `gain` more than the other strategy did."""
    if rule == REPLICATOR:
        odds = share / (1 - share) * np.exp(np.clip(gain, -_MOST_TURN, _MOST_TURN))
        share = float(odds / (1 + odds))
    elif rule == BEST_RESPONSE:
        share += _STEP * ((gain > 0) - share)
    else:
        return share
    return _inner(share)


def _series(table: Table, name: str) -> Floats:
    """The values of one measure in all epochs, as an array (points, runs, epochs)."""
    return np.stack([by_point(table, f"{name}_{epoch:02}") for epoch in range(EPOCHS)], axis=2)
