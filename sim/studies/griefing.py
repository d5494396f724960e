"""Griefing: what false challengers, silent verifiers and late solvers cost others for each token that they lose.

Each attack is played beside a calm market with the same seed; harm is what honest parties have less of. The engine has
no clocks, so what waiting costs is counted here: how often somebody waits is the engine's, for how long the study's.
A submitter whose task ends void or late posts it anew: what it did not pay is no gain.
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
from sim.studies.griefing_reading import ATTACKS, BONDS, FEES, PENALTIES, VICTIMS, Seen
from sim.studies.points import ALIKE, asked, require
from sim.studies.prices import expected_price
from sim.studies.study import Answer, Extra, Finding, Point, Study, Table
from sim.studies.tables import points_of
from sim.theory import (
    false_challenge,
    held_seconds,
    late_solver,
    least_bond,
    least_delay_penalty,
    silent_verifier,
    void_probability,
    waiting_cost,
)
from sim.units import TOKEN, Unit

DAY: Final = 86_400
HELD: Final = held_seconds(game_time=RECOMMENDED.max_clock, solver=0) / DAY
"""Days that a challenger alone can hold a payout: the solver answers at once, and nothing is allowed for replays."""
_WITHOUT_TERM: Final = (*ALIKE, "forced_error_rate", "draw_missed", "device_range")


class Reformed(Verifier):
    """Who is silent in the attack, as it would be without one."""

    name: ClassVar[str] = "reformed"


class Griefing(Study):
    """Three attackers that want nothing but harm."""

    name = "griefing"
    question = (
        "What do false challengers, silent verifiers and late solvers cost others for each token they lose?"
    )
    runs = 512
    rounds = 2

    def parameters(self) -> MarketParameters:
        """Devices alike: the closed forms have no term for their spread."""
        return MarketParameters(device_spread=0.0)

    def axes(self) -> Mapping[str, Sequence[float]]:
        """Three grids: bonds and penalties for three rates, and fees."""
        return {
            "challenge_bond": tuple(amount * TOKEN for amount in (1, 2, 5, 10, 20, 50, 100)),
            "audit_fee": tuple(amount * TOKEN for amount in (1, 2, 4, 8, 16)),
            "delay_penalty": tuple(amount * TOKEN for amount in (1, 2, 5, 10, 20, 50, 100)),
            "yearly_rate": (0.2, 0.05, 1.0),
            "held_days": (HELD,),
            "deadline_days": (30.0,),
            "worth": (1000 * TOKEN,),
            "silent_share": (0.05,),
        }

    def extra(self) -> Mapping[str, Extra]:
        """What waiting costs."""
        return {
            "yearly_rate": Extra(
                "what it costs to wait for an amount for a year, as a share", Unit.FACTOR, 0, 100
            ),
            "held_days": Extra("days that a false challenge holds price and stake", Unit.FACTOR, 0, 1e4),
            "deadline_days": Extra("days after which a task is posted anew", Unit.FACTOR, 0, 1e4),
            "worth": Extra("what a result is worth to its submitter", Unit.TOKENS, 0, 10**9 * TOKEN),
            "silent_share": Extra("share of the verifiers that are silent", Unit.SHARE, 0.0, 0.5),
        }

    def points(self, given: Mapping[str, Sequence[float]]) -> list[Point]:
        """A grid for each attack."""
        return asked(self, given, (BONDS, FEES, PENALTIES))

    def population(self, parameters: MarketParameters, point: Point) -> Population:
        """The calm market: who is silent in the attack is `Reformed`. Raises ParameterError beyond the closed forms."""
        require(self.parameters(), parameters, _WITHOUT_TERM)
        silent = _silent(parameters, point)
        return population(
            [(Solver(), parameters.solver_count)],
            [(Verifier(), parameters.verifier_count - silent), (Reformed(), silent)],
        )

    def play(self, point: Point, *, runs: int, rounds: int, seed: np.random.SeedSequence) -> Columns:
        """Harm and loss by attack, token units for each task."""
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
        delay = _delay(point)
        redone = parameters.training_cost / parameters.segments
        return {
            "price": calm["price"],
            "challenge_harm": calm["profit_solver_honest"]
            - accused["profit_solver_honest"]
            + accused["dismissed"] * (redone + _held(point, 1.0) * (calm["price"] + parameters.stake)),
            "challenge_loss": -accused["profit_bystander_griefer"],
            "silence_solver": calm["profit_solver_honest"] - dumb["profit_solver_honest"],
            "silence_verifiers": calm["profit_verifier_honest"] - dumb["profit_verifier_honest"],
            "silence_submitter": dumb["void"] * (parameters.draw_fee + delay),
            "silence_loss": calm["profit_verifier_reformed"] - dumb["profit_verifier_absent"],
            "late_harm": late["expired"] * delay,
            "late_loss": -late["profit_solver_late"],
        }

    def answer(self, table: Table) -> Answer:
        """A finding for each attack, and what holds its factor at 1."""
        points = points_of(self, table)
        forms = [self.forms(point) for point in points]
        expected = {name: np.array([form[name] for form in forms]) for name in forms[0]}
        seen = Seen(self, points, table, expected)
        claims = [
            *seen.claims(BONDS, ("challenge_harm", "challenge_loss")),
            *seen.claims(FEES, ("silence_solver", "silence_verifiers", "silence_submitter", "silence_loss")),
            *seen.claims(PENALTIES, ("late_harm", "late_loss")),
        ]
        bond, bonds = seen.least(BONDS, "challenge", "least_bond", slope=1.5)
        penalty, penalties = seen.least(PENALTIES, "late", "least_penalty", slope=1.0)
        findings = [
            self._worst(seen),
            self._silence(seen),
            Finding(
                f"A false challenge takes more from others than from its challenger below a bond of {bond}; at the "
                f"bond of {seen.at('challenge_bond')} it takes {seen.factor('challenge'):.2g} tokens for each lost",
                seen.figure(BONDS, "challenge", "challenge bond, tokens"),
            ),
            Finding(
                f"A late solver takes more from its submitter than from itself below a delay penalty of {penalty}; at "
                f"the penalty of {seen.at('delay_penalty')} it takes {seen.factor('late'):.2g} tokens for each lost",
                seen.figure(PENALTIES, "late", "delay penalty, tokens"),
                note=_idle(self.case(points[0]).parameters, points[0]),
            ),
        ]
        return Answer(findings, [*claims, *bonds, *penalties])

    def _worst(self, seen: Seen) -> Finding:
        """Which attack is the cheapest for whoever harms, and who bears it."""
        factors = {text: seen.factor(attack) for attack, text in ATTACKS.items()}
        first, *others = sorted(factors, key=lambda text: -factors[text])
        harms = {victim: seen.centre(f"silence_{victim}") for victim in VICTIMS}
        bearer = max(harms, key=lambda victim: harms[victim])
        share = harms[bearer] / (sum(harms.values()) or 1.0)
        return Finding(
            f"{first.capitalize()} are the cheapest way to harm: {_times(factors[first])} tokens for each lost, "
            f"against {' and '.join(f'{_times(factors[text])} by {text}' for text in others)}; of what silence costs "
            f"others the {bearer} bears most, {share:.0%}",
            seen.parties(),
        )

    def _silence(self, seen: Seen) -> Finding:
        """Whether a fee can hold silence, and the lock that would."""
        numbers = seen.grid(FEES)
        factors = seen.factors("silence")[numbers]
        fees = [seen.points[number]["audit_fee"] / TOKEN for number in numbers]
        best = int(np.argmin(factors))
        held = f"brings a silent verifier's factor to {factors[best]:.2g}" + (
            "" if factors[best] <= 1 else ", still above 1"
        )
        parameters = self.case(seen.points[seen.middle]).parameters
        duties = (
            parameters.verifiers * _silent(parameters, seen.points[seen.middle]) / parameters.verifier_count
        )
        duties *= parameters.segments_per_verifier + 1
        lock = (seen.harm("silence") - seen.loss("silence"))[seen.middle] / duties / TOKEN
        return Finding(
            f"The best audit fee tried, {fees[best]:g} of {min(fees):g} to {max(fees):g} tokens, {held}; at the fee of "
            f"{seen.at('audit_fee')} a lock of {max(0.0, lock):.3g} tokens for each duty would hold it at 1",
            seen.figure(FEES, "silence", "audit fee, tokens"),
            note="Locks for duties are dispute.md section 3, as are redraws: by theory one redraw, in which the silent "
            f"must be drawn again, brings the factor to {self._redrawn(parameters, seen.points[seen.middle]):.2g}. The "
            "contracts have neither.",
        )

    def _redrawn(self, parameters: MarketParameters, point: Point) -> float:
        """The factor of one silent seat after one redraw."""
        replay = parameters.replay_cost * parameters.training_cost / parameters.segments
        duties = parameters.segments_per_verifier + 1
        return silent_verifier(
            price=expected_price(parameters),
            audit_fee=parameters.audit_fee,
            duties=duties,
            other_duties=duties * (parameters.verifiers - 1),
            replay_cost=replay + parameters.gas_attest * parameters.gas_price * TOKEN,
            draw_fee=parameters.draw_fee,
            delay=_delay(point),
            redraws=1,
            seated_again=_silent(parameters, point) / parameters.verifier_count,
        ).factor

    def forms(self, point: Point) -> Mapping[str, float]:
        """What theory expects of the columns of `play`; harm of a challenge before it is cut off at 0.

        A seat has segment K and q others, of
        which K is one with chance q / K. Seats overlap too seldom to matter where q V is far below K.
        """
        parameters = self.case(point).parameters
        gas, cost = parameters.gas_price * TOKEN, parameters.training_cost
        price = expected_price(parameters)
        waiting = _held(point, price + parameters.stake)
        defence = gas * parameters.gas_defence + cost / parameters.segments
        bond = parameters.challenge_bond
        challenge = false_challenge(
            bond=bond, defence=defence, delay=waiting, gas=gas * parameters.gas_dispute
        )
        share = _silent(parameters, point) / parameters.verifier_count
        void = void_probability(
            segments=parameters.segments,
            segments_per_verifier=parameters.segments_per_verifier,
            verifiers=parameters.verifiers,
            matches=parameters.matches,
            up=1 - share,
        )
        one = silent_verifier(
            price=price,
            audit_fee=parameters.audit_fee,
            duties=1,
            other_duties=0,
            replay_cost=parameters.replay_cost * cost / parameters.segments + gas * parameters.gas_attest,
            draw_fee=parameters.draw_fee,
            delay=_delay(point),
        )
        seats = parameters.verifiers
        each = 1 + parameters.segments_per_verifier * (1 - 1 / parameters.segments)
        unpaid = seats * each * ((1 - share) - (1 - void))
        late = late_solver(
            delay_penalty=parameters.delay_penalty,
            delay=_delay(point),
            stake=parameters.stake,
            capital_cost=gas * parameters.gas_task,
        )
        return {
            "challenge_harm": challenge.harm,
            "challenge_loss": challenge.loss,
            "silence_solver": void * price,
            "silence_verifiers": unpaid * parameters.audit_fee,
            "silence_submitter": void * (one.harm - price),
            "silence_loss": seats * share * each * one.loss,
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


def _held(point: Point, amount: float) -> float:
    """What it costs to have an amount after a game instead of before it."""
    return waiting_cost(amount=amount, seconds=point["held_days"] * DAY, yearly_rate=point["yearly_rate"])


def _delay(point: Point) -> float:
    """What it costs a submitter to wait for its result once more."""
    return waiting_cost(
        amount=point["worth"], seconds=point["deadline_days"] * DAY, yearly_rate=point["yearly_rate"]
    )


def _idle(parameters: MarketParameters, point: Point) -> str:
    cost = waiting_cost(
        amount=parameters.stake, seconds=point["deadline_days"] * DAY, yearly_rate=point["yearly_rate"]
    )
    return (
        f"The stake is taken to lie idle otherwise. At the same rate its lock would cost the late solver another "
        f"{cost / TOKEN:.3g} tokens."
    )


def _times(factor: float) -> str:
    return f"{factor:.2g}" if np.isfinite(factor) else "endless"
