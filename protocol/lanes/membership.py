"""A table that says, for each round and lane, whether the lane trains in the round, and if so, whether its
message counts.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from protocol.lanes.errors import MembershipError


class Part(enum.Enum):
    """A lane's part in a round: it trains and counts, trains too late to count, or is away."""

    COUNTS = "counts"
    LATE = "late"
    AWAY = "away"


@dataclass(frozen=True)
class Membership:
    """`rows[t][w]` is the part of lane w in round t; both count from 0.

    Raises `MembershipError` for rows of unequal length, for no rows, and for a round in which no lane trains.

    A lane joins in a round if it trains in that round and was away in the round before. It then starts from
    the state of a lane that trained in the round before. A lane that stays away has left, or was evicted.
    """

    rows: tuple[tuple[Part, ...], ...]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Part | str]]) -> Membership:
        """Make a table from parts or their names. Raises `MembershipError`."""
        try:
            return cls(tuple(tuple(map(Part, row)) for row in rows))
        except ValueError as error:
            names = ", ".join(part.value for part in Part)
            raise MembershipError("membership", expected=f"parts out of {names}", got=str(error)) from None

    @classmethod
    def full(cls, rounds: int, width: int) -> Membership:
        """A table in which every lane counts in every round."""
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
        """The first lane that trains in a round. A lane that joins in the next round starts from the state of
        this first lane.
        """
        return next(lane for lane, part in enumerate(self.rows[number]) if part is not Part.AWAY)

    def joins(self, number: int, lane: int) -> bool:
        """Whether a lane joins in this round: it trains, and was away in the round before."""
        there = self.rows[number][lane] is not Part.AWAY
        return there and number > 0 and self.rows[number - 1][lane] is Part.AWAY
