"""Claims checked with both seeds. A claim holds if the measured value is within the tolerance of the expected
value in three evaluations: with each of the two seeds alone, and with both together.

The evaluation on the rows of both seeds gives a study's findings and claims. The evaluation on each seed's
rows gives the same claims again. Expected values may depend on measured ones (a price, for example), so each
evaluation computes its own expected values.
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
"""Largest tolerance of a claim that is not weak, as a share of the expected value. A claim whose tolerance is
within its absolute bound is not weak either.
"""


@dataclass(frozen=True)
class Check:
    """One claim, for both seeds together and for each seed. `seeds` has no entry for a seed that does not
    have this claim.
    """

    together: Claim
    seeds: Sequence[Claim]

    @property
    def text(self) -> str:
        """The claim's text."""
        return self.together.text

    @property
    def expected(self) -> float:
        """The expected value for the rows of both seeds."""
        return self.together.expected

    @property
    def measured(self) -> tuple[float, ...]:
        """The engine's value with each seed."""
        return tuple(claim.measured for claim in self.seeds)

    @property
    def draws(self) -> int:
        """Number of distinct draws behind the claim, for the seed with the fewest; 0 if no seed has the claim."""
        return min((claim.draws for claim in self.seeds), default=0)

    @property
    def tolerance(self) -> float:
        """The wider of the seeds' tolerances; infinite if no seed has the claim."""
        return max((claim.tolerance for claim in self.seeds), default=math.inf)

    @property
    def relative(self) -> float:
        """Tolerance divided by the size of the expected value; infinite if the expected value is 0."""
        return self.tolerance / abs(self.expected) if self.expected else math.inf

    @property
    def bounded(self) -> bool:
        """Whether the tolerance is within the absolute bound, which is narrow enough even near 0."""
        return self.tolerance <= self.together.bound

    @property
    def weak(self) -> bool:
        """Whether the tolerance is too wide to be useful, because it exceeds both a tenth of the expected
        value and the absolute bound.

        Deterministic counts and amounts are never weak.
        """
        return self.tolerance > _CERTAIN and not self.bounded and not self.relative <= WIDEST

    @property
    def holds(self) -> bool:
        """Whether the claim holds with each seed and with both together."""
        return len(self.seeds) == SEEDS and all(claim.holds for claim in (self.together, *self.seeds))

    @property
    def words(self) -> str:
        """The claim's numbers in one sentence."""
        played = " and ".join(f"{value:,.4g}" for value in self.measured) or "nothing"
        bound = f", bound {self.together.bound:.2g}" if self.together.bound else ""
        return (
            f"{self.expected:,.4g} ± {self.tolerance:.2g} expected ({self.share}{bound}), {played} played, "
            f"4 standard errors of {self.draws:,} distinct draws"
        )

    @property
    def share(self) -> str:
        """The relative tolerance in words; "of 0" if it is not finite."""
        return f"{self.relative:.1%}" if math.isfinite(self.relative) else "of 0"


_CERTAIN: Final = 4e-6 + 1e-9
"""Tolerance of deterministic values: amounts are whole units of 10^-6 token."""


@dataclass(frozen=True)
class Verdict:
    """The findings of a study, and its checked claims."""

    findings: Sequence[Finding]
    claims: Sequence[Check]

    @property
    def held(self) -> int:
        """Number of claims that hold."""
        return sum(claim.holds for claim in self.claims)

    @property
    def weak(self) -> int:
        """Number of claims that hold but are weak."""
        return sum(claim.holds and claim.weak for claim in self.claims)

    @property
    def ordered(self) -> list[Check]:
        """All claims: failed ones first, then weak ones, then the others, each group by relative tolerance,
        the widest first.
        """
        return sorted(self.claims, key=lambda claim: (claim.holds, not claim.weak, -_finite(claim.relative)))


def checked(study: Study, table: Table) -> Verdict:
    """Findings of all rows, and each claim with both seeds.

    Raises StudyError if a study makes claims although its points share their random numbers.
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
    """The claims by key. A claim's key is its text, and its position among the claims with this text."""
    seen: Counter[str] = Counter()
    found = {}
    for claim in claims:
        found[claim.text, seen[claim.text]] = claim
        seen[claim.text] += 1
    return found


def _finite(number: float) -> float:
    """A number for sorting. NaN, which has no order, is replaced by infinity."""
    return math.inf if math.isnan(number) else number
