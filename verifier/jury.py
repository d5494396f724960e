"""A jury as the chain shows it, and what may be done about it at a given time. Pure: no clock, chain or
database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from protocol.chain.views import ItemClaim, JuryView, Seat
from protocol.dispute.juries import Objection, juror_number, may_object
from protocol.tasks.task import Terms


@dataclass(frozen=True, slots=True)
class Jury:
    """A task's claim, and the jury that judges the claim. `claim` is None if the claim was dropped; `view` is
    None if the jury's draw has lapsed. `jurors` are those drawn so far.
    """

    claim: ItemClaim | None
    view: JuryView | None
    jurors: Sequence[Seat] = ()

    @property
    def objection(self) -> Objection | None:
        """The chunk that jurors must open; None without an objection."""
        if self.claim is None or not self.claim.until:
            return None
        return Objection(self.claim.tensor, self.claim.walk)

    def may_object(self, terms: Terms, now: int) -> bool:
        """Whether the claimant may object now. At least one juror must have voted yes, at most half of all
        jurors may have voted no, and there must be no objection yet. `now` must be in the second half of the
        time for objections.
        """
        if self.view is None or self.view.pending or self.objection is not None:
            return False
        until, yes, no = self.view.until, self.view.yes.bit_count(), self.view.no.bit_count()
        return (
            may_object(yes, no, terms.jurors)
            and until + terms.move_time // 2 < now <= until + terms.move_time
        )

    def has_voted(self, juror: Seat) -> bool:
        """Whether a juror has voted, yes or no."""
        return self.view is not None and _has(self.view.yes | self.view.no, juror)

    def has_voted_yes(self, juror: Seat) -> bool:
        """Whether a juror has voted yes."""
        return self.view is not None and _has(self.view.yes, juror)

    def owes_opening(self, juror: Seat) -> bool:
        """Whether a juror must open a chunk: it voted yes, there is an objection, and it has not opened
        yet.
        """
        if self.claim is None or self.view is None or self.objection is None:
            return False
        return _has(self.view.yes & ~self.claim.opened, juror)


def _has(bits: int, juror: Seat) -> bool:
    return bool(bits >> (juror.number - juror_number(0)) & 1)
