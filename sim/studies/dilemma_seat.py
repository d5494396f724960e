"""One seat of the study `dilemma` as the inspection game of `sim.theory`: what replaying earns, and where it pays."""

from __future__ import annotations

from sim.engine.simulate import Case
from sim.studies.cheaters import Disguised
from sim.studies.prices import expected_price
from sim.studies.study import Point
from sim.theory import (
    Duty,
    Equilibrium,
    committee_equilibrium,
    expected_duties,
    gain_against_cheater,
    least_forced_rate,
    missed_probability,
    most_copied,
    verifier_payoffs,
)


class Seat:
    """The inspection game of one seat at one point; amounts in token units."""

    def __init__(self, case: Case, point: Point) -> None:
        self.parameters = parameters = case.parameters
        self.point = point
        self.looking = case.population.honest
        self.duties = float(
            expected_duties(
                segments=parameters.segments,
                segments_per_verifier=parameters.segments_per_verifier,
                verifiers=parameters.verifiers,
                share=1.0,
                accounts=parameters.verifier_count,
            )
            / parameters.verifiers
        )
        """A verifier that is drawn twice holds a duty once."""
        self.replay = self.duties * parameters.replay_cost * parameters.training_cost / parameters.segments
        false = Disguised(point["false_share"]).false(parameters)
        self.hit = float(1 - missed_probability(parameters.segments, false, parameters.segments_per_verifier))
        self.found = self.looking * self.hit
        """Chance that another seat finds a false segment."""

    def duty(self, forced: float | None = None) -> Duty:
        """A seat with all its segments as one duty; `forced` in place of the market's rate for each.

        One penalty, however many of its roots were flagged; a jackpot for each. The engine pays whatever is attested,
        where `Duty` has no fee for a flagged root: the lock is less by it.
        """
        parameters = self.parameters
        rate = parameters.forced_error_rate if forced is None else forced
        some = 1 - (1 - rate) ** self.duties
        fee = self.duties * parameters.audit_fee
        return Duty(
            audit_fee=fee,
            cost=self.replay,
            reward=float(parameters.reward_cap),
            lock=max(0.0, parameters.stake_unit - fee) if rate else 0.0,
            jackpot=parameters.jackpot * self.duties * rate / some if some else 0.0,
            forced=some,
            copied=self.point["copied"],
        )

    @property
    def covered(self) -> bool:
        """The closed forms reach it: of fraud, forced errors and secret roots, one at a time."""
        parameters, point = self.parameters, self.point
        remedies = (parameters.forced_error_rate > 0) + (point["copied"] < 1) + (point["false_rate"] > 0)
        return remedies <= 1 and (
            not parameters.forced_error_rate or parameters.stake_unit >= self.duties * parameters.audit_fee
        )

    @property
    def against_honest(self) -> float:
        """Replaying less not replaying when nobody cheats: fees are paid where all other seats attest."""
        duty = self.duty()
        attests = self.looking + (1 - self.looking) * self.point["copied"]
        pay = verifier_payoffs(
            duty._replace(audit_fee=duty.audit_fee * attests ** (self.parameters.verifiers - 1))
        )
        return pay.verify_honest - pay.skip_honest

    @property
    def against_cheater(self) -> float:
        """The same when everybody cheats."""
        return gain_against_cheater(
            self.duty(), hit=self.hit, verifiers=self.parameters.verifiers, found=self.found
        )

    def gain(self) -> float:
        """Against the mixture of honest and false results."""
        x = self.point["false_rate"]
        return (1 - x) * self.against_honest + x * self.against_cheater

    def indifferent(self) -> float:
        """x at which replaying and rubber-stamping earn the same, as others do what they do here."""
        honest, cheater = self.against_honest, self.against_cheater
        return honest / (honest - cheater) if cheater > 0 > honest else float(honest < 0)

    def equilibrium(self) -> Equilibrium:
        """Of all verifiers and a solver whose gain comes with acceptance, so that conviction takes it too."""
        parameters = self.parameters
        return committee_equilibrium(
            self.duty(),
            share=Disguised(self.point["false_share"]).false(parameters) / parameters.segments,
            hit=self.hit,
            verifiers=parameters.verifiers,
            honest=1.0,
            price=expected_price(parameters),
            gain=float(parameters.gain),
            stake=float(parameters.stake + parameters.gain),
            cost=float(parameters.training_cost),
        )

    def least_forced(self) -> float:
        """e_min for each duty: `least_forced_rate` is that of a seat, and its jackpots depend on it in turn."""
        rate = 0.01
        for _ in range(50):
            duty = self.duty(rate)
            some = least_forced_rate(
                cost=duty.cost, jackpot=duty.jackpot, lock=duty.lock, audit_fee=duty.audit_fee
            )
            rate = 1 - (1 - min(some, 1.0)) ** (1 / self.duties)
        return rate

    def most_known(self) -> float:
        """The largest share of roots that skippers may learn; where fees are paid depends on it in turn."""
        copied, duty = 1.0, self.duty(0.0)
        for _ in range(50):
            paid = (self.looking + (1 - self.looking) * copied) ** (self.parameters.verifiers - 1)
            copied = most_copied(duty._replace(audit_fee=duty.audit_fee * paid))
        return copied

    def least_looking(self) -> float:
        """d from which replaying pays where no root can be copied: all other seats must attest for any to be paid."""
        others = self.parameters.verifiers - 1
        fee = self.duties * self.parameters.audit_fee
        return float((self.replay / fee) ** (1 / others)) if others and fee >= self.replay else 1.0

    def least_error(self, tasks: int) -> float:
        """Of a mean over `tasks`: that of one event among the seats of the rarer kind."""
        rarer = min(self.looking, 1 - self.looking) * self.parameters.verifiers
        most = max(
            self.parameters.reward_cap, self.parameters.stake_unit * (self.parameters.forced_error_rate > 0)
        )
        return most / (rarer * tasks)
