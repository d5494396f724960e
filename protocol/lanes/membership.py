"""Which lane trains and counts in which round. In a network the chain says so; here a table does."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from protocol.lanes.errors import MembershipError


class Part(enum.Enum):
    """What a lane does in a round: it trains and counts, trains too late to count, or is not there."""

    COUNTS = "counts"
    LATE = "late"
    AWAY = "away"


@dataclass(frozen=True)
class Membership:
    """`rows[t][w]` is the part of lane w in round t, from 0 on. Raises `MembershipError` for a table that contradicts
    itself: rows of unequal length, none at all, a round that nobody trains in.

    A lane that was away and is there again joins: it begins with the state of a lane that trained the round before.
    One that stays away has left, or was evicted.
    """

    rows: tuple[tuple[Part, ...], ...]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Part | str]]) -> Membership:
        """From parts or their names."""
        try:
            return cls(tuple(tuple(map(Part, row)) for row in rows))
        except ValueError as error:
            names = ", ".join(part.value for part in Part)
            raise MembershipError("membership", expected=f"parts out of {names}", got=str(error)) from None

    @classmethod
    def full(cls, rounds: int, width: int) -> Membership:
        """Every lane counts in every round."""
        return cls(((Part.COUNTS,) * width,) * rounds)

    def __post_init__(self) -> None:
        if not self.rows or not self.rows[0]:
            raise MembershipError(
                "membership", expected="at least one round of at least one lane", got="none"
            )
        for number, row in enumerate(self.rows):
            if len(row) != self.width:
                expected = f"{self.width} lanes in round {number}, as in round 0"
                raise MembershipError("membership", expected=expected, got=str(len(row)))
            if not any(part is not Part.AWAY for part in row):
                raise MembershipError(
                    "membership",
                    expected=f"a lane that trains in round {number}",
                    got="none",
                    remedy="end the job before it, or let a lane train",
                )

    @property
    def width(self) -> int:
        """The number of lanes."""
        return len(self.rows[0])

    def member(self, number: int) -> int:
        """The first lane that trains in a round: a lane that joins in the next round takes its state."""
        return next(lane for lane, part in enumerate(self.rows[number]) if part is not Part.AWAY)

    def joins(self, number: int, lane: int) -> bool:
        """Whether a lane joins in this round: it is there and was away the round before."""
        there = self.rows[number][lane] is not Part.AWAY
        return there and number > 0 and self.rows[number - 1][lane] is Part.AWAY
