"""Who is in a market: groups of solvers and verifiers, each of one strategy. Members of a group lie side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sim.agents.solvers import Crashing, Lazy, Noisy, Skipper, Solver, Withholder
from sim.agents.verifiers import Absent, Colluding, Copying, Mixing, Trusting, Verifier
from sim.errors import SettingError

Strategy = TypeVar("Strategy", Solver, Verifier)

SOLVERS = {kind.name: kind for kind in (Solver, Lazy, Skipper, Withholder, Crashing, Noisy)}
VERIFIERS = {kind.name: kind for kind in (Verifier, Trusting, Copying, Colluding, Absent, Mixing)}


@dataclass(frozen=True)
class Group(Generic[Strategy]):
    """`size` members with one strategy; `first` is the number of the first one, counted from 0."""

    strategy: Strategy
    size: int
    first: int = 0

    @property
    def members(self) -> slice:
        """Where they lie among their kind."""
        return slice(self.first, self.first + self.size)


@dataclass(frozen=True)
class Population:
    """All solvers and all verifiers of a market."""

    solvers: tuple[Group[Solver], ...]
    verifiers: tuple[Group[Verifier], ...]

    @property
    def solver_count(self) -> int:
        """All solvers."""
        return sum(group.size for group in self.solvers)

    @property
    def verifier_count(self) -> int:
        """All verifiers."""
        return sum(group.size for group in self.verifiers)

    @property
    def honest(self) -> float:
        """h: share of the slots whose holders replay and challenge."""
        return sum(g.size for g in self.verifiers if g.strategy.honest) / self.verifier_count


def population(
    solvers: Sequence[tuple[Solver, int]], verifiers: Sequence[tuple[Verifier, int]]
) -> Population:
    """A population from strategies and numbers of members; groups of nobody are left out.

    Raises SettingError when a kind has no members or a group fewer than none.
    """
    return Population(_groups("solvers", solvers), _groups("verifiers", verifiers))


def _groups(kind: str, members: Sequence[tuple[Strategy, int]]) -> tuple[Group[Strategy], ...]:
    groups: list[Group[Strategy]] = []
    first = 0
    for strategy, size in members:
        if size < 0:
            raise SettingError(
                f"{kind} {strategy.name!r}: expected 0 members or more, got {size}; correct it"
            )
        if size:
            groups.append(Group(strategy, size, first))
        first += size
    if not groups:
        raise SettingError(f"{kind}: expected at least one member, got none; give a group a size")
    return tuple(groups)
