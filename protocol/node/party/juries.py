"""When a task's claim can be ended, and by which call (audit.md section 7). Pure.

Any account may end a claim, so races are harmless: the contract refuses the later call.
"""

from __future__ import annotations

from enum import StrEnum

from protocol.chain.views import ItemClaim, JuryView, TaskStatus
from protocol.dispute.juries import may_object
from protocol.tasks.task import Terms


class Ending(StrEnum):
    """A call that ends a claim. The value is the name of the contract's function."""

    CLOSE = "close"
    """End the claim with the jury's verdict."""
    DROP = "drop"
    """End the claim without a verdict, because the task is over or the jury's draw has lapsed."""


def closable(claim: ItemClaim | None, jury: JuryView | None, terms: Terms) -> int | None:
    """The last second at which the verdict on the claim can still change. After this second, the claim can be
    closed. None if there is no claim, or no jury, or if the jury is not drawn yet.
    """
    if claim is None or jury is None or jury.pending:
        return None
    if not may_object(jury.yes.bit_count(), jury.no.bit_count(), terms.jurors):
        return jury.until
    return claim.until or jury.until + terms.move_time


def ending_due(
    claim: ItemClaim | None, jury: JuryView | None, terms: Terms, status: TaskStatus, now: int
) -> Ending | None:
    """The call that can end the task's claim now, if any."""
    if claim is None:
        return None
    if status is not TaskStatus.SUBMITTED or jury is None:
        return Ending.DROP
    due = closable(claim, jury, terms)
    return Ending.CLOSE if due is not None and now > due else None
