"""Griefing: what false challengers, silent verifiers and late solvers cost others for each token that the
attackers themselves lose.

Each attack is compared with a calm market with the same seed; harm is the honest parties' loss relative to
that market. The engine has no clocks, so the cost of waiting is computed here: the engine counts the waits,
and the study sets how long each wait takes. A submitter whose task ends late posts it again, so the unpaid
price is not a gain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from protocol.chain.parameters import RECOMMENDED
from sim.agents.bystanders import Griefer
from sim.agents.population import Group, Population, population
from sim.agents.solvers import Late, Solver
from sim.agents.verifiers import Absent, Verifier
from sim.engine.simulate import Columns, simulate
from sim.parameters import MarketParameters
from sim.studies.griefing_reading import ATTACKS, BONDS, FEES, PENALTIES, Seen
from sim.studies.points import asked, require
from sim.studies.prices import expected_price
from sim.studies.study import Answer, Extra, Finding, Point, Study, Table
from sim.studies.tables import mean, points_of
from sim.theory import (
    expected_redraws,
    expected_silences,
    false_challenge,
    held_seconds,
    late_solver,
    least_bond,
    least_delay_penalty,
    silent_verifier,
    waiting_cost,
)
from sim.units import TOKEN, Unit

DAY: Final = 86_400
HELD: Final = held_seconds(game_time=RECOMMENDED.max_clock, solver=0) / DAY
"""Days for which one challenger can hold a payout. This assumes that the solver answers at once, and that the
terms have no replay allowance.
"""
_LARGE_BONDS: Final = tuple(amount * TOKEN for amount in (20, 50, 100))
"""Bonds above the recommended one."""
REDRAW: Final = (RECOMMENDED.draw_delay + DAY) / DAY
"""Days that a redraw takes: the draw delay, and a day to attest."""


class Reformed(Verifier):
    """A verifier that is silent in the attack, but honest in the calm market."""

    name: ClassVar[str] = "reformed"


class Griefing(Study):
    """Three attacks that only aim at harm."""

    name = "griefing"
    question = (
        "What do false challengers, silent verifiers and late solvers cost others for each token they lose?"
    )
    runs = 1024
    rounds = 2

    def parameters(self) -> MarketParameters:
        """A market in which all devices have equal costs, because the closed forms have no term for a spread
        of costs.
        """
        return MarketParameters(device_spread=0.0)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """Axes of three grids: bonds, with three yearly rates; delay penalties, with the same rates; and fees."""
        return {
            "bond": (*(amount * TOKEN for amount in (1, 2, 5)), self.parameters().bond, *_LARGE_BONDS),
            "audit_fee": tuple(amount * TOKEN for amount in (1, 2, 4, 8, 16)),
            "delay_penalty": tuple(amount * TOKEN for amount in (1, 2, 5, 10, 20, 50, 100)),
            "yearly_rate": (0.2, 0.05, 1.0),
            "held_days": (HELD,),
            "redraw_days": (REDRAW,),
            "deadline_days": (30.0,),
            "worth": (1000 * TOKEN,),
            "silent_share": (0.05,),
        }

    def extra(self) -> Mapping[str, Extra]:
        """Parameters of this study that the market does not have: how long each wait takes, what waiting
        costs, what a result is worth to its submitter, and the share of silent verifiers.
        """
        return {
            "yearly_rate": Extra(
                "what it costs to wait for an amount for a year, as a share", Unit.FACTOR, 0, 100
            ),
            "held_days": Extra("days that a false challenge holds price and stake", Unit.FACTOR, 0, 1e4),
            "redraw_days": Extra("days that a draw and an attestation take", Unit.FACTOR, 0, 1e4),
            "deadline_days": Extra("days after which a task is posted again", Unit.FACTOR, 0, 1e4),
            "worth": Extra("what a result is worth to its submitter", Unit.TOKENS, 0, 10**9 * TOKEN),
            "silent_share": Extra("share of the verifiers that are silent", Unit.SHARE, 0.0, 0.5),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """Points of three grids, one grid for each attack."""
        return asked(self, given, (BONDS, FEES, PENALTIES))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """The population of the calm market, in which silent verifiers are `Reformed`. Raises ParameterError
        if the closed forms do not apply.
        """
        require(self.parameters(), parameters)
        silent = _silent(parameters, point)
        return population(
            [(Solver(), parameters.solver_count)],
            [(Verifier(), parameters.verifier_count - silent), (Reformed(), silent)],
        )

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """Harm and loss of each attack in token units per task, the price in the calm market, and the
        redraws caused by silence.
        """
        case = self.case(point)
        parameters, people = case.parameters, case.population
        honest, reformed = people.verifiers

        def played(**changed: Any) -> Columns:
            market = replace(case, population=replace(people, **changed))
            return simulate(market, runs=runs, rounds=rounds, seed=seed)

        calm = played()
        accused = played(bystanders=(Group(Griefer(chance=1.0), 1),))
        dumb = played(verifiers=(honest, replace(reformed, strategy=Absent())))
        late = played(solvers=(*people.solvers, Group(Late(), 1, parameters.solver_count)))
        redone = parameters.training_cost / parameters.segments
        return {
            "price": calm["price"],
            "redrawn": dumb["redrawn"],
            "challenge_harm": calm["profit_solver_honest"]
            - accused["profit_solver_honest"]
            + accused["dismissed"]
            * (redone + _waited(point, "held_days", 1.0) * (calm["price"] + parameters.stake)),
            "challenge_loss": -accused["profit_bystander_griefer"],
            "silence_harm": dumb["redrawn"]
            * _waited(point, "redraw_days", 1.0)
            * (calm["price"] + parameters.stake + point["worth"]),
            "silence_loss": calm["profit_verifier_reformed"] - dumb["profit_verifier_absent"],
            # The submitter of a late task has paid nothing, but has waited and received half of the penalty.
            "late_harm": late["expired"] * _delay(point) - late["profit_submitter"],
            "late_loss": -late["profit_solver_late"],
        }

    def answer(self, table: Table) -> Answer:
        """Findings on each attack, and on the attack that is cheapest for the attacker. The factor of an
        attack is the harm to others for each token that the attacker loses. The claims include the least bond
        and the least delay penalty at which the factor is at most 1.
        """
        points = points_of(self, table)
        forms = [self.forms(point) for point in points]
        expected = {name: np.array([form[name] for form in forms]) for name in forms[0]}
        seen = Seen(self, points, table, expected)
        claims = [
            *seen.claims(BONDS, ("challenge_harm", "challenge_loss")),
            *seen.claims(FEES, ("silence_harm", "silence_loss")),
            *seen.claims(PENALTIES, ("late_harm", "late_loss")),
        ]
        bond, bonds = seen.least(BONDS, "challenge", "least_bond", slope=1.5)
        penalty, penalties = seen.least(PENALTIES, "late", "least_penalty", slope=1.5)
        findings = [
            self._worst(seen),
            self._silence(seen),
            Finding(
                f"A false challenge takes more from others than from its challenger below a bond of {bond}; at the "
                f"bond of {seen.at('bond')} it takes {seen.factor('challenge'):.2g} tokens for each lost",
                seen.figure(BONDS, "challenge", "challenge bond, tokens"),
            ),
            Finding(
                f"A late solver takes more from its submitter than from itself below a delay penalty of {penalty}; at "
                f"the penalty of {seen.at('delay_penalty')} it takes {seen.factor('late'):.2g} tokens for each lost",
                seen.figure(PENALTIES, "late", "delay penalty, tokens"),
                note="Half of the penalty pays the submitter.",
            ),
        ]
        return Answer(findings, [*claims, *bonds, *penalties])

    def _worst(self, seen: Seen) -> Finding:
        """A finding on the attack that is cheapest for the attacker."""
        factors = {text: seen.factor(attack) for attack, text in ATTACKS.items()}
        first, *others = sorted(factors, key=lambda text: -factors[text])
        return Finding(
            f"{first.capitalize()} are the cheapest way to harm: {_times(factors[first])} tokens for each lost, "
            f"against {' and '.join(f'{_times(factors[text])} by {text}' for text in others)}"
        )

    def _silence(self, seen: Seen) -> Finding:
        """A finding on what silence costs the silent verifier and others."""
        middle = seen.middle
        redraws = float(mean(seen.table, "redrawn")[middle])
        return Finding(
            f"A silent verifier loses the fee of its seat and the draw's, and what the seat would earn: at the fee of "
            f"{seen.at('audit_fee')} others lose {seen.factor('silence'):.2g} tokens by waiting for each that it loses",
            seen.figure(FEES, "silence", "audit fee, tokens"),
            note=f"Where {seen.points[middle]['silent_share']:.0%} are silent, a task is drawn again {redraws:.2g} "
            f"times on average, each for {REDRAW:.2g} days; nothing ends void, and nobody else is paid less.",
        )

    def forms(self, point: Point) -> Mapping[str, float]:
        """The values that theory expects for the harms and losses of `play`; also the least bond and the
        least delay penalty at which harm is at most loss (a factor of at most 1).
        """
        parameters = self.case(point).parameters
        gas, cost = parameters.gas_price * TOKEN, parameters.training_cost
        price = expected_price(parameters)
        waiting = _waited(point, "held_days", price + parameters.stake)
        defence = gas * parameters.gas_defence + cost / parameters.segments
        challenge = false_challenge(
            bond=parameters.bond,
            defence=defence,
            delay=waiting,
            gas=gas * parameters.gas_dispute,
        )
        share = _silent(parameters, point) / parameters.verifier_count
        replays = parameters.replay_cost * cost / parameters.segments * parameters.segments_per_verifier
        redraw = _waited(point, "redraw_days", price + parameters.stake + point["worth"])
        one = silent_verifier(
            seat_fee=parameters.seat_fee,
            seat_cost=replays + gas * parameters.gas_attest,
            draw_fee=parameters.draw_fee,
            delay=redraw,
        )
        drawn: dict[str, Any] = {
            "verifiers": parameters.verifiers,
            "up": 1 - share,
            "redraws": parameters.redraws,
        }
        forgone = one.loss - parameters.silence_costs
        late = late_solver(
            delay_penalty=parameters.delay_penalty,
            delay=_delay(point),
            capital_cost=gas * parameters.gas_task,
        )
        return {
            "challenge_harm": challenge.harm,
            "challenge_loss": challenge.loss,
            "silence_harm": expected_redraws(**drawn) * redraw,
            # They forgo a seat's earnings only if the first draw hit them, but every draw penalises them.
            "silence_loss": expected_silences(**drawn) * parameters.silence_costs
            + parameters.verifiers * share * forgone,
            "late_harm": late.harm,
            "late_loss": late.loss,
            "least_bond": least_bond(
                defence=defence, delay=waiting, factor=1, gas=gas * parameters.gas_dispute
            ),
            "least_penalty": least_delay_penalty(
                delay=_delay(point), factor=1, capital_cost=gas * parameters.gas_task
            ),
        }


def _silent(parameters: MarketParameters, point: Point) -> int:
    return max(1, round(point["silent_share"] * parameters.verifier_count))


def _waited(point: Point, days: str, amount: float) -> float:
    """Cost of having an amount later than due. `days` names the parameter of the point that gives the delay
    in days.
    """
    return waiting_cost(amount=amount, seconds=point[days] * DAY, yearly_rate=point["yearly_rate"])


def _delay(point: Point) -> float:
    """The submitter's cost of waiting once more for its result."""
    return waiting_cost(
        amount=point["worth"], seconds=point["deadline_days"] * DAY, yearly_rate=point["yearly_rate"]
    )


def _times(factor: float) -> str:
    return f"{factor:.2g}" if np.isfinite(factor) else "endless"
