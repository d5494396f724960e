"""Compares the balances that the engine's ledger expects with the chain's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sim.errors import Disagreement

FREE: Final = "free"
OUTSIDE: Final = "outside"
REGISTRATION: Final = "registration"
ESCROW: Final = "escrow"
STAKE: Final = "stake"
BOND: Final = "bond"
LOCKS: Final = (REGISTRATION, ESCROW, STAKE, BOND)
"""Causes of locks. Other tokens are `FREE` (in the vault, unlocked) or `OUTSIDE` the vault."""
BURNED: Final = "burned"
HELD: Final = "held"
VAULT: Final = "vault"
"""Owner of the two places that are for the whole vault; the owner of every other place is an account.
`Place(VAULT, BURNED)` has the tokens that the vault has burned; they stay in the vault, out of reach.
`Place(VAULT, HELD)` has all tokens in the vault, including the burned ones.
"""


class Place(NamedTuple):
    """An owner of tokens, and where the owner's tokens are."""

    owner: str
    where: str


Balances = Mapping[Place, int]
"""Token units by place; a missing place holds none."""


class Line(NamedTuple):
    """The expected tokens and the chain's tokens in one place."""

    place: Place
    expected: int
    chain: int

    @property
    def difference(self) -> int:
        """The chain's amount minus the expected one."""
        return self.chain - self.expected

    def __str__(self) -> str:
        return (
            f"{self.place.owner}, {self.place.where}: expected {self.expected}, "
            f"chain {self.chain}, difference {self.difference:+}"
        )


@dataclass(frozen=True)
class Comparison:
    """All balances after an event. At the end of a replay, the object also summarises the replay."""

    scenario: str
    event: str
    lines: tuple[Line, ...]
    outcomes: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    compared: int = 0
    """Total number of balances compared."""
    judged: tuple[str, ...] = ()
    """Instructions for which the EVM recomputed an element of the result."""
    gains: Mapping[str, int] = field(default_factory=dict)
    """Each account's gain since the start, in token units."""

    @property
    def differing(self) -> tuple[Line, ...]:
        """Lines whose two amounts differ."""
        return tuple(line for line in self.lines if line.difference)


def compare(scenario: str, event: str, expected: Balances, chain: Balances) -> Comparison:
    """Compare every place that either side names. Raises Disagreement, with the comparison, if any place differs."""
    places = sorted({**expected, **chain})
    lines = tuple(Line(place, expected.get(place, 0), chain.get(place, 0)) for place in places)
    comparison = Comparison(scenario, event, lines)
    if comparison.differing:
        raise differs(comparison)
    return comparison


def differs(comparison: Comparison) -> Disagreement:
    """Return the error for a comparison with lines that differ."""
    lines = "; ".join(map(str, comparison.differing))
    return Disagreement(
        f"engine and contracts disagree after {comparison.event} (scenario {comparison.scenario}): {lines}; "
        f"one of the two books it wrongly: report this",
        comparison,
    )
