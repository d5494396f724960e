"""Numbering of looks (audit.md section 2).

A look of level 1 replays a segment that a seat has replayed. A look of level n + 1 replays the segment of a
look of level n. Each seat has q segments, and a look's slot determines the seat and the segment: slot = seat
x q + position, where `position` is the segment's place among those of the seat. The audit board and the salts
identify a seat by its number, and a look by the number 32 x level + slot. Pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.dispute.errors import DisputeError

LEVELS: Final = 4
"""Number of levels of looks."""
MAX_LOOKS: Final = 32
"""Maximum of V q, the number of seats times the segments per seat, in a task with looks. The contracts keep
one bit of a word for each segment of each seat.
"""


class Look(NamedTuple):
    """A look by its level, 1 to 4, and its slot, 0 to 31."""

    level: int
    slot: int

    @classmethod
    def of(cls, number: int) -> Look:
        """The look with this number. Raises DisputeError if the number is a seat's or too large."""
        return cls(*divmod(number, MAX_LOOKS))._checked()

    @property
    def number(self) -> int:
        """The number that the board and the salts use. Raises DisputeError for an invalid look."""
        level, slot = self._checked()
        return MAX_LOOKS * level + slot

    @property
    def below(self) -> Look | None:
        """The look that this look checks; None if it checks a seat."""
        return Look(self.level - 1, self.slot) if self.level > 1 else None

    def seat(self, each: int) -> int:
        """The seat whose segment this look replays. All looks of the slot have the same seat. `each` is q,
        the number of segments per seat.
        """
        return self.slot // each

    def position(self, each: int) -> int:
        """Position of this look's segment among the segments of the seat. `each` is q, the number of segments
        per seat.
        """
        return self.slot % each

    def looked_at(self, each: int) -> int:
        """Number of the seat or look that this look checks, and that must reveal its secret. `each` is q, the
        number of segments per seat.
        """
        below = self.below
        return self.seat(each) if below is None else below.number

    def leaf(self, each: int) -> tuple[int, int]:
        """The index of the segment's leaf in the digest that this look checks, and the number of leaves of
        that digest.

        The digest of a seat has `each` (q) segments and the result; the digest of a look has only its
        segment.
        """
        return (self.position(each), each + 1) if self.below is None else (0, 1)

    def _checked(self) -> Look:
        if not 1 <= self.level <= LEVELS or not 0 <= self.slot < MAX_LOOKS:
            raise DisputeError(
                "look",
                expected=f"level 1 to {LEVELS}, slot 0 to {MAX_LOOKS - 1}",
                got=f"level {self.level}, slot {self.slot}",
                remedy=f"pass the number of a look, {MAX_LOOKS} or more; smaller ones are seats",
            )
        return self


def is_look(number: int) -> bool:
    """Whether one of the board's numbers is that of a look, rather than of a seat or a juror."""
    return MAX_LOOKS <= number < MAX_LOOKS * (LEVELS + 1)
