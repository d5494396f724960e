"""The members of a market: groups of solvers, of verifiers and of bystanders, and the submitter's strategy.

All members of a group have the same strategy. Their numbers are consecutive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np

from sim.agents.bystanders import Bystander, Forgetful, Griefer, Retrainer
from sim.agents.solvers import Crashing, Late, Lazy, Noisy, Skipper, Solver, Withholder
from sim.agents.submitters import Challenging, Insider, Shill, Submitter, Vanishing
from sim.agents.verifiers import (
    Absent,
    Accusing,
    Colluding,
    Copying,
    Hiding,
    LazyLooker,
    Mixing,
    SilentLooker,
    Slandering,
    Thrifty,
    Trusting,
    Verifier,
)
from sim.errors import ParameterError
from sim.mechanism.arrays import Indices

Strategy = TypeVar("Strategy", Solver, Verifier, Bystander)

SOLVERS: Final = {kind.name: kind for kind in (Solver, Lazy, Skipper, Withholder, Crashing, Noisy, Late)}
VERIFIERS: Final = {
    kind.name: kind
    for kind in (
        Verifier,
        Trusting,
        Copying,
        Colluding,
        Absent,
        Mixing,
        Accusing,
        Thrifty,
        Hiding,
        LazyLooker,
        SilentLooker,
        Slandering,
    )
}
BYSTANDERS: Final = {kind.name: kind for kind in (Bystander, Griefer, Forgetful, Retrainer)}
SUBMITTERS: Final = {kind.name: kind for kind in (Submitter, Shill, Vanishing, Challenging, Insider)}
HONEST_SUBMITTER: Final = Submitter()
MOST_SLOTS: Final = 1 << 15
"""Maximum number of slots of a verifier: those of a registration at the highest level."""


@dataclass(frozen=True)
class Group(Generic[Strategy]):
    """`size` members with one strategy; `first` is the number of the first member, counted from 0."""

    strategy: Strategy
    size: int
    first: int = 0
    slots: int = 1
    """Stake units of each member (verifiers only): 2^level."""

    @property
    def members(self) -> slice:
        """The members' positions among all agents of their kind."""
        return slice(self.first, self.first + self.size)


@dataclass(frozen=True)
class Population:
    """All solvers, verifiers and bystanders of a market."""

    solvers: tuple[Group[Solver], ...]
    verifiers: tuple[Group[Verifier], ...]
    bystanders: tuple[Group[Bystander], ...] = ()
    submitter: Submitter = HONEST_SUBMITTER

    @property
    def solver_count(self) -> int:
        """Number of solvers."""
        return sum(group.size for group in self.solvers)

    @property
    def verifier_count(self) -> int:
        """Number of verifiers."""
        return sum(group.size for group in self.verifiers)

    @property
    def bystander_count(self) -> int:
        """Number of bystanders."""
        return sum(group.size for group in self.bystanders)

    @property
    def slots(self) -> Indices:
        """Number of slots of each verifier, (verifiers,)."""
        return spread(self.verifiers, [group.slots for group in self.verifiers])

    @property
    def honest(self) -> float:
        """h: share of the verifiers' stake that belongs to verifiers with an honest strategy (`Verifier.honest`)."""
        return sum(g.size * g.slots for g in self.verifiers if g.strategy.honest) / int(self.slots.sum())


def spread(groups: Sequence[Group[Strategy]], values: Sequence[int]) -> Indices:
    """Expand one value per group to one value per member, (members,)."""
    return np.repeat(np.asarray(values, dtype=np.int64), [group.size for group in groups])


Members = Sequence[tuple[Strategy, int] | tuple[Strategy, int, int]]
"""Strategy, number of members and, for verifiers, slots per member."""


def population(
    solvers: Members[Solver],
    verifiers: Members[Verifier],
    bystanders: Members[Bystander] = (),
    submitter: Submitter = HONEST_SUBMITTER,
) -> Population:
    """Build a population from strategies and numbers of members. Empty groups are left out.

    Raises ParameterError if there are no solvers or no verifiers, or if a group has a negative number of
    members. Also raises it if a group's slots per member are not a power of two, or exceed `MOST_SLOTS`.
    """
    everybody = Population(
        _groups("solvers", solvers),
        _groups("verifiers", verifiers),
        _groups("bystanders", bystanders),
        submitter,
    )
    for kind, groups in (("solvers", everybody.solvers), ("verifiers", everybody.verifiers)):
        if not groups:
            raise ParameterError(f"{kind}: expected at least one member, got none; give a group a size")
    return everybody


def _groups(kind: str, members: Members[Strategy]) -> tuple[Group[Strategy], ...]:
    groups: list[Group[Strategy]] = []
    first = 0
    for strategy, size, *more in members:
        slots = more[0] if more else 1
        if size < 0 or not 1 <= slots <= MOST_SLOTS or slots & (slots - 1):
            raise ParameterError(
                f"{kind} {strategy.name!r}: expected 0 members or more with 1, 2, 4 ... {MOST_SLOTS} slots each, "
                f"got {size} with {slots}; correct it"
            )
        if size:
            groups.append(Group(strategy, size, first, slots))
        first += size
    return tuple(groups)
