"""The scenarios of `sim replay` with second looks (audit.md section 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sim.agents.bystanders import Bystander
from sim.agents.solvers import Lazy, Skipper, Solver
from sim.agents.verifiers import (
    Accusing,
    Check,
    Hiding,
    Mixing,
    Seats,
    SilentLooker,
    Slandering,
    Trusting,
    Verifier,
)
from sim.mechanism.arrays import Flags
from sim.replay.scenario import Scenario, market_of, story
from sim.units import TOKEN

_LOOKERS: Final = 14
"""Enough verifiers that a draw fills every look."""
_TWO_LOOKS: Final = {"verifiers": 2, "segments_per_verifier": 1}
_HONEST_SOLVER: Final = Solver()


@dataclass(frozen=True)
class Careless(Trusting):
    """A verifier that attests in its seat without a replay, but replays as a looker."""

    name = "careless"

    def look(self, looks: Seats) -> Check:
        """Act as an honest looker."""
        return Verifier.check(self, looks)


@dataclass(frozen=True)
class Drowsy(Careless):
    """A careless verifier that is silent as the looker of slot 0 on each level."""

    name = "drowsy"

    def look(self, looks: Seats) -> Check:
        """Act as an honest looker, except in slot 0."""
        return super().look(looks).where(_not_first(looks))


@dataclass(frozen=True)
class Dozing(Verifier):
    """An honest verifier that is silent as the looker of slot 0 on each level."""

    name = "dozing"

    def look(self, looks: Seats) -> Check:
        """Act as an honest looker, except in slot 0."""
        return super().look(looks).where(_not_first(looks))


@dataclass(frozen=True)
class Patient(Slandering):
    """Replays its seat, but attests any result. It challenges or accuses only in looks."""

    name = "patient"

    def check(self, seats: Seats) -> Check:
        """Replay what is served, and attest it whatever the replay shows."""
        return Check(seats.served, seats.served, np.zeros_like(seats.served))

    def look(self, looks: Seats) -> Check:
        """Act as an honest looker."""
        return Verifier.check(self, looks)


def _not_first(looks: Seats) -> Flags:
    """All looks but that of slot 0."""
    slots: Flags = np.arange(len(looks.served))[:, None] > 0
    return slots


def _looked(
    name: str, text: str, verifier: Verifier, *, solver: Solver = _HONEST_SOLVER, **more: Any
) -> Scenario:
    """A scenario with identical verifiers. Looks check every segment, unless `terms` say otherwise."""
    end = more.pop("end", "settled")
    terms = {"look_chance": 1.0, "seat_lock": 20 * TOKEN} | more.pop("terms", {})
    return story(name, text, end, solver, (verifier,) * more.pop("verifiers", _LOOKERS), terms=terms, **more)


LOOKED: Final = (
    _looked(
        "looked",
        "every segment of both seats is looked at: all attest and are paid, digests are opened, the task settles",
        Verifier(),
    ),
    _looked(
        "levels",
        "looks at looks, on four levels: all attest and are paid",
        Verifier(),
        picked=((1, 2), (1,), (1,), (1,)),
        terms={"look_chance": 0.5, "segments": 3, "segments_per_verifier": 3},
    ),
    _looked(
        "unopened",
        "a seat does not open its digest, at which two look: one has half of its lock, the rest burns",
        Hiding(),
        terms={"verifiers": 1},
    ),
    _looked(
        "stamped",
        "a rubber stamp opens a digest of nothing and cannot answer: half of its lock is the looker's",
        Careless(),
        terms={"verifiers": 1},
    ),
    _looked(
        "slandered",
        "a seat that has replayed answers for a chunk: the bond of the accusation is its own",
        Slandering(),
        terms=_TWO_LOOKS,
    ),
    _looked(
        "given_up",
        "lookers are silent, three times: the first of them pays the next draw, at last nobody looks",
        SilentLooker(),
        terms={"verifiers": 1},
    ),
    _looked(
        "nobody_looks",
        "there are fewer verifiers than looks: one is attested, the other is given up at once",
        Verifier(),
        verifiers=2,
        terms={"verifiers": 1},
    ),
    _looked(
        "nobody_looks_again",
        "a looker is silent and nobody is left for its look, so the draw that finds nobody asks for the next level",
        Dozing(),
        verifiers=6,
        picked=((0, 1, 2, 3, 4), (2,)),
        terms={"verifiers": 1, "look_chance": 0.5, "segments": 8, "segments_per_verifier": 8},
    ),
    _looked(
        "moot",
        "a look convicts the solver while an accusation is open: its bond is the accused seat's",
        Patient(),
        solver=Skipper(),
        end="convicted",
        drawn=((1,), (2,)),
        moot=True,
        terms=_TWO_LOOKS,
    ),
    _looked(
        "accused_late",
        "a look is given up, then a rubber stamp loses its lock, and at last another look convicts the solver",
        Drowsy(),
        solver=Skipper(),
        end="convicted",
        drawn=((3,), (2,), (1,)),
        terms={"verifiers": 3, "segments": 3, "segments_per_verifier": 1},
    ),
    _looked(
        "looked_late",
        "a bystander convicts what all seats have attested: the draw of looks is paid when it is executed at last",
        Trusting(),
        solver=Lazy(1.0),
        end="convicted",
        bystanders=(Bystander(chance=1.0),),
    ),
    market_of(
        "looked_market",
        "the same with looks, where every segment of a seat is looked at",
        8,
        1,
        [
            (Verifier(), 4),
            (Mixing(0.5), 1, 4),
            (Accusing(rate=0.3), 1),
            (Careless(), 2),
            (Hiding(), 2),
            (SilentLooker(), 2),
            (Slandering(), 2),
            (Patient(), 1),
        ],
        verifiers=2,
        look_chance=1.0,
        # Odd, so that half of it is rounded in the engine's units too.
        seat_lock=20 * TOKEN + 1,
    ),
)
