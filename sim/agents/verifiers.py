"""Strategies of verifiers in a seat. A strategy decides whether to replay, to attest and to challenge.

A strategy is a frozen dataclass. Its method `check` takes arrays and decides for all seats at once. Its
method `look` decides for all looks; by default, it calls `check`. The engine uses the decisions only for the
seats that the strategy's members were drawn for. To add a strategy, subclass `Verifier`
(docs/guide/studies.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from sim.mechanism.arrays import Flags, Floats
from sim.parameters import MarketParameters


class Seats(NamedTuple):
    """What the seats' holders see; each array is (V, rows) unless stated."""

    parameters: MarketParameters
    served: Flags
    """Whether the solver gives out its checkpoints."""
    hit: Flags
    """Whether a replay of the seat's segments would differ from the result. Only agents that replay may use
    this value.
    """
    others: Flags
    """Whether somebody has already attested this task (attestations are visible). Only agents that watch may
    use this value.
    """
    uniform: Floats
    """A uniform random number from 0 to 1."""
    gas: Floats
    """Token units per gas, (rows,)."""
    work: Floats
    """Present price, in tokens, of work that initially cost one token, (rows,)."""


class Check(NamedTuple):
    """The actions in each seat."""

    replays: Flags
    attests: Flags
    challenges: Flags

    @classmethod
    def nothing(cls, shape: tuple[int, ...]) -> Check:
        """No actions in any seat."""
        return cls(*(np.zeros(shape, dtype=np.bool_) for _ in range(3)))

    def where(self, seats: Flags) -> Check:
        """Keep the actions in the given seats and remove the others."""
        return Check(*(done & seats for done in self))

    def __or__(self, other: Check) -> Check:
        """Combine two sets of actions: each seat takes the actions of both."""
        return Check(*(mine | done for mine, done in zip(self, other)))


@dataclass(frozen=True)
class Verifier:
    """An honest verifier, and the base class of all verifiers. It replays, attests right results and
    challenges wrong ones.
    """

    name: ClassVar[str] = "honest"
    honest: ClassVar[bool] = True
    """Whether the verifier counts towards the honest share h of the closed forms."""
    watches: ClassVar[bool] = False
    """Whether the verifier decides after seeing what others attested."""
    reveals: ClassVar[bool] = True
    """Whether the verifier reveals its secret when a second look asks for it."""
    accuses: ClassVar[bool] = False
    """Whether the verifier, as a looker, also accuses accounts that have replayed and can answer."""

    def check(self, seats: Seats) -> Check:
        """Replay whatever is served, then attest or challenge; challenge without a replay if nothing is served."""
        return Check(seats.served, seats.served & ~seats.hit, seats.hit | ~seats.served)

    def look(self, looks: Seats) -> Check:
        """Act as a looker at one segment. Unless this method is overridden, a looker acts as in a seat of one
        segment.
        """
        return self.check(looks)


@dataclass(frozen=True)
class Trusting(Verifier):
    """A rubber stamp: attests whatever is served, without a replay."""

    name: ClassVar[str] = "lazy"
    honest: ClassVar[bool] = False

    def check(self, seats: Seats) -> Check:
        """Attest whatever is served, without a replay; never challenge."""
        nothing = np.zeros_like(seats.served)
        return Check(nothing, seats.served, nothing)


@dataclass(frozen=True)
class Hiding(Trusting):
    """Rubber-stamps, and does not reveal its secret when a second look asks for it."""

    name: ClassVar[str] = "hiding"
    reveals: ClassVar[bool] = False


@dataclass(frozen=True)
class LazyLooker(Verifier):
    """Honest in a seat; as a looker, attests whatever is served, without a replay."""

    name: ClassVar[str] = "lazy_looker"
    honest: ClassVar[bool] = False

    def look(self, looks: Seats) -> Check:
        """Attest whatever is served, without a replay, and accuse nobody."""
        nothing = np.zeros_like(looks.served)
        return Check(nothing, looks.served, nothing)


@dataclass(frozen=True)
class SilentLooker(Verifier):
    """Honest in a seat; never attests a look."""

    name: ClassVar[str] = "silent_looker"
    honest: ClassVar[bool] = False

    def look(self, looks: Seats) -> Check:
        """Do nothing."""
        return Check.nothing(looks.served.shape)


@dataclass(frozen=True)
class Slandering(Verifier):
    """Honest in a seat. As a looker, accuses every target, even a target whose segment it has found right."""

    name: ClassVar[str] = "slandering"
    honest: ClassVar[bool] = False
    accuses: ClassVar[bool] = True


@dataclass(frozen=True)
class Copying(Verifier):
    """Attests only after somebody else has attested."""

    name: ClassVar[str] = "copying"
    honest: ClassVar[bool] = False
    watches: ClassVar[bool] = True

    def check(self, seats: Seats) -> Check:
        """Attest if somebody else has attested."""
        nothing = np.zeros_like(seats.served)
        return Check(nothing, seats.others, nothing)


@dataclass(frozen=True)
class Colluding(Verifier):
    """The cheater's accomplice: attests every result, whether it is true or false, and whether or not it is
    served.
    """

    name: ClassVar[str] = "colluding"
    honest: ClassVar[bool] = False

    def check(self, seats: Seats) -> Check:
        """Attest everything."""
        nothing = np.zeros_like(seats.served)
        return Check(nothing, np.ones_like(seats.served), nothing)


@dataclass(frozen=True)
class Absent(Verifier):
    """Registered but never online."""

    name: ClassVar[str] = "absent"
    honest: ClassVar[bool] = False

    def check(self, seats: Seats) -> Check:
        """Do nothing."""
        nothing = np.zeros_like(seats.served)
        return Check(nothing, nothing, nothing)


@dataclass(frozen=True)
class Mixing(Verifier):
    """Replays with chance `diligence` and otherwise rubber-stamps, which is the mixed strategy of the
    verifier's dilemma.
    """

    name: ClassVar[str] = "mixing"
    honest: ClassVar[bool] = False
    diligence: float = 0.5

    def check(self, seats: Seats) -> Check:
        """Decide at random for each seat whether to replay it."""
        looks = seats.uniform < self.diligence
        return Check(
            seats.served & looks,
            seats.served & ~(looks & seats.hit),
            looks & (seats.hit | ~seats.served),
        )


@dataclass(frozen=True)
class Accusing(Verifier):
    """A griefer with seats: challenges at the given rate without a replay, and otherwise rubber-stamps."""

    name: ClassVar[str] = "accusing"
    honest: ClassVar[bool] = False
    rate: float = 1.0

    def check(self, seats: Seats) -> Check:
        """Decide at random for each seat: challenge, or attest if the data are served. Never do both."""
        accuses = seats.uniform < self.rate
        return Check(np.zeros_like(seats.served), seats.served & ~accuses, accuses)


@dataclass(frozen=True)
class Thrifty(Verifier):
    """Acts honestly in the rounds in which this pays, and does nothing in all other rounds. Acting pays if
    gas and replays cost less than the fee plus the cost of silence, which is what a silent account loses.
    """

    name: ClassVar[str] = "thrifty"
    honest: ClassVar[bool] = False

    def check(self, seats: Seats) -> Check:
        """Act honestly if the fee plus the cost of silence exceeds the cost of replays and gas."""
        parameters = seats.parameters
        replay = parameters.replay_cost * parameters.training_cost / parameters.segments * seats.work
        spent = parameters.segments_per_verifier * replay + parameters.gas_attest * seats.gas
        pays = parameters.seat_fee + parameters.silence_costs > spent
        return super().check(seats).where(pays)
