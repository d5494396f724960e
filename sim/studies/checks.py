"""Claims as both seeds have them: a claim holds when each seed alone and both together are within their tolerance.

A study is asked three times: of all rows, for its findings and claims, and of each seed's rows, for the same claims
again. What is expected may depend on what was played (a price, say), so each reading has its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sim.errors import StudyError
from sim.studies.study import SEEDS, Claim, Finding, Study, Table
from sim.studies.tables import OfSeed

WIDEST: Final = 0.1
"""Of what is expected: a claim with a wider tolerance is weak, unless its absolute bound is met."""


@dataclass(frozen=True)
class Check:
    """One claim: of both seeds together, and of each. `seeds` lacks one where a seed has no such number."""

    together: Claim
    seeds: Sequence[Claim]

    @property
    def text(self) -> str:
        """What is claimed."""
        return self.together.text

    @property
    def expected(self) -> float:
        """By theory, given all that was played."""
        return self.together.expected

    @property
    def measured(self) -> tuple[float, ...]:
        """By the engine with each seed."""
        return tuple(claim.measured for claim in self.seeds)

    @property
    def draws(self) -> int:
        """Distinct ones behind the seed that has the fewest."""
        return min((claim.draws for claim in self.seeds), default=0)

    @property
    def tolerance(self) -> float:
        """The wider one of the seeds'."""
        return max((claim.tolerance for claim in self.seeds), default=math.inf)

    @property
    def relative(self) -> float:
        """Tolerance over what is expected."""
        return self.tolerance / abs(self.expected) if self.expected else math.inf

    @property
    def bounded(self) -> bool:
        """The tolerance is within an absolute bound that stands for all chances, near 0 too."""
        return self.tolerance <= self.together.bound

    @property
    def weak(self) -> bool:
        """The tolerance is too wide to say much: more than a tenth of the value, and no bound is met.

        Counts and amounts that nothing random moves have none.
        """
        return self.tolerance > _CERTAIN and not self.bounded and not self.relative <= WIDEST

    @property
    def holds(self) -> bool:
        """With each seed, and together."""
        return len(self.seeds) == SEEDS and all(claim.holds for claim in (self.together, *self.seeds))

    @property
    def words(self) -> str:
        """All numbers in one sentence."""
        played = " and ".join(f"{value:,.4g}" for value in self.measured) or "nothing"
        bound = f", bound {self.together.bound:.2g}" if self.together.bound else ""
        return (
            f"{self.expected:,.4g} ± {self.tolerance:.2g} expected ({self.share}{bound}), {played} played, "
            f"4 standard errors of {self.draws:,} distinct draws"
        )

    @property
    def share(self) -> str:
        """The relative tolerance in words."""
        return f"{self.relative:.1%}" if math.isfinite(self.relative) else "of 0"


_CERTAIN: Final = 4e-6 + 1e-9
"""Tolerance of what is certain: amounts are whole units of 10^-6 token."""


@dataclass(frozen=True)
class Verdict:
    """What a study found, and its claims, checked."""

    findings: Sequence[Finding]
    claims: Sequence[Check]

    @property
    def held(self) -> int:
        """How many claims hold."""
        return sum(claim.holds for claim in self.claims)

    @property
    def weak(self) -> int:
        """How many of those that hold have a tolerance too wide to say much."""
        return sum(claim.holds and claim.weak for claim in self.claims)

    @property
    def ordered(self) -> list[Check]:
        """Those that do not hold first, then by their tolerance over what is expected, the widest first."""
        return sorted(self.claims, key=lambda claim: (claim.holds, not claim.weak, -_finite(claim.relative)))


def checked(study: Study, table: Table) -> Verdict:
    """Findings of all rows, and each claim with both seeds.

    Raises StudyError for claims of a study whose points share their random numbers.
    """
    answer = study.answer(table)
    if answer.claims and study.common:
        raise StudyError(
            f"study {study.name!r}: expected no claims of points with common random numbers, got {len(answer.claims)}; "
            f"leave `common` out"
        )
    seeds = [_numbered(study.claims(OfSeed(table, seed))) for seed in range(SEEDS)] if answer.claims else []
    claims = [
        Check(claim, [of[key] for of in seeds if key in of])
        for key, claim in _numbered(answer.claims).items()
    ]
    return Verdict(answer.findings, claims)


def _numbered(claims: Sequence[Claim]) -> dict[tuple[str, int], Claim]:
    """By text, and number among those with the same text."""
    seen: Counter[str] = Counter()
    found = {}
    for claim in claims:
        found[claim.text, seen[claim.text]] = claim
        seen[claim.text] += 1
    return found


def _finite(number: float) -> float:
    """NaN has no order; here it comes before all numbers."""
    return math.inf if math.isnan(number) else number
