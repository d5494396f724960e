"""Numbers of looks: audit.md section 2.

A look of level 1 repeats one segment of a seat, a look of level n + 1 a segment that a look of level n repeated. Its
slot names seat and segment: slot = seat x q + position of the segment among the seat's q. Board and salts know it by
one number, 32 x level + slot, instead of a seat's. Pure.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from protocol.dispute.errors import DisputeError

LEVELS: Final = 4
"""Looks of looks."""
MAX_LOOKS: Final = 32
"""V q of a task with looks: each segment of a seat is a bit of a word."""


class Look(NamedTuple):
    """A look by its level, 1 to 4, and its slot, 0 to 31."""

    level: int
    slot: int

    @classmethod
    def of(cls, number: int) -> Look:
        """The look of a number. Raises DisputeError for a seat's, or one too large."""
        return cls(*divmod(number, MAX_LOOKS))._checked()

    @property
    def number(self) -> int:
        """What board and salts call it. Raises DisputeError where there is no such look."""
        level, slot = self._checked()
        return MAX_LOOKS * level + slot

    @property
    def below(self) -> Look | None:
        """The look that it looks at; None where it looks at a seat."""
        return Look(self.level - 1, self.slot) if self.level > 1 else None

    def seat(self, each: int) -> int:
        """The seat whose segment it repeats, as do all looks of its slot; `each` is q."""
        return self.slot // each

    def position(self, each: int) -> int:
        """Position of its segment among those of the seat; `each` is q."""
        return self.slot % each

    def looked_at(self, each: int) -> int:
        """Number of the seat or the look that it looks at: whose secret is revealed; `each` is q."""
        below = self.below
        return self.seat(each) if below is None else below.number

    def leaf(self, each: int) -> tuple[int, int]:
        """Index of its segment's leaf in the looked-at digest, and the number of leaves there; `each` is q.

        A seat's digest ends in the result; a look's has its one segment alone.
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
    """Whether a number of the board is a look's, and not a seat's or a juror's."""
    return MAX_LOOKS <= number < MAX_LOOKS * (LEVELS + 1)
