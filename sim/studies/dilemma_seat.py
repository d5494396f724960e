"""One seat of the study `dilemma` as the inspection game of `sim.theory`: the gain of replaying, and the
equilibrium.
"""

from __future__ import annotations

from sim.engine.simulate import Case
from sim.studies.cheaters import Disguised
from sim.studies.prices import expected_price
from sim.studies.study import Point
from sim.theory import Duty, Equilibrium, committee_equilibrium, gain_against_cheater, missed_probability


class Seat:
    """The inspection game of one seat at one point, with amounts in token units."""

    def __init__(self, case: Case, point: Point) -> None:
        self.parameters = parameters = case.parameters
        self.point = point
        self.looking = case.population.honest
        segments = parameters.segments_per_verifier
        self.replay = segments * parameters.replay_cost * parameters.training_cost / parameters.segments
        false = Disguised(point["false_share"]).false(parameters)
        self.hit = float(1 - missed_probability(parameters.segments, false, segments))
        self.duty = Duty(
            float(parameters.seat_fee),
            self.replay,
            float(parameters.reward),
            float(parameters.game_cost),
            segments / parameters.segments,
        )

    @property
    def against_cheater(self) -> float:
        """Gain of replaying over not replaying if the solver cheats and the other seats replay at the point's
        rate.
        """
        found = self.looking * self.hit
        return gain_against_cheater(self.duty, hit=self.hit, verifiers=self.parameters.verifiers, found=found)

    def gain(self) -> float:
        """Gain of replaying against the point's mixture of honest and false results. If the result is honest,
        replaying only costs.
        """
        x = self.point["false_rate"]
        return x * self.against_cheater - (1 - x) * self.replay

    def indifferent(self) -> float:
        """Rate x of false results at which replaying and rubber-stamping earn the same, given the other
        seats' behaviour.
        """
        cheater = self.against_cheater
        return self.replay / (self.replay + cheater) if cheater > 0 else 1.0

    def equilibrium(self) -> Equilibrium:
        """The equilibrium of all verifiers and the solver. The solver's gain, which is what a false result is
        worth to it, is paid only if the result is accepted. So a conviction costs the solver this gain in
        addition to its stake.
        """
        parameters = self.parameters
        return committee_equilibrium(
            self.duty,
            share=Disguised(self.point["false_share"]).false(parameters) / parameters.segments,
            hit=self.hit,
            verifiers=parameters.verifiers,
            honest=1.0,
            price=expected_price(parameters),
            gain=float(parameters.gain),
            stake=float(parameters.stake + parameters.gain),
            cost=float(parameters.training_cost),
        )

    def least_error(self, tasks: int) -> float:
        """The least error to assume for a mean over `tasks` tasks. The seats form two groups: those that
        replay and those that do not. The error is the amount by which one reward changes the mean of the
        smaller group.
        """
        rarer = min(self.looking, 1 - self.looking) * self.parameters.verifiers
        return self.parameters.reward / (rarer * tasks)
