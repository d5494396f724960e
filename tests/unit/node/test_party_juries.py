"""When any party may end the open claim of a task, and by which call."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.chain.views import NOBODY, ItemClaim, JuryView, TaskStatus
from protocol.node.party.juries import Ending, closable, ending_due
from protocol.tasks.task import Terms

TERMS = cast(Terms, SimpleNamespace(jurors=3, move_time=20))
VOTED = 1_000
CLAIM = ItemClaim(NOBODY, bond=5, seat=1, item=2, until=0, tensor=0, walk=0, opened=0)
OBJECTED = replace(CLAIM, until=VOTED + 15)
YES = JuryView(1, pending=False, until=VOTED, yes=0b101, no=0)
PENDING = replace(YES, pending=True, yes=0)


@pytest.mark.parametrize(
    ("claim", "jury", "due"),
    [
        (None, None, None),
        (CLAIM, None, None),
        (CLAIM, PENDING, None),
        (CLAIM, replace(YES, yes=0b001, no=0b110), VOTED),
        (CLAIM, replace(YES, yes=0b000, no=0b010), VOTED),
        (CLAIM, replace(YES, yes=0b001, no=0b010), VOTED + 20),
        (CLAIM, YES, VOTED + 20),
        (OBJECTED, YES, VOTED + 15),
        (OBJECTED, replace(YES, yes=0b001), VOTED + 15),
    ],
)
def test_a_verdict_is_due_when_nothing_can_change_it(
    claim: ItemClaim | None, jury: JuryView | None, due: int | None
) -> None:
    assert closable(claim, jury, TERMS) == due


@pytest.mark.parametrize(
    ("claim", "jury", "status", "now", "due"),
    [
        (None, None, TaskStatus.SUBMITTED, VOTED, None),
        (None, None, TaskStatus.SLASHED, VOTED, None),
        (CLAIM, None, TaskStatus.SUBMITTED, VOTED, Ending.DROP),
        (CLAIM, PENDING, TaskStatus.SUBMITTED, VOTED, None),
        (CLAIM, YES, TaskStatus.SUBMITTED, VOTED + 20, None),
        (CLAIM, YES, TaskStatus.SUBMITTED, VOTED + 21, Ending.CLOSE),
        (CLAIM, YES, TaskStatus.SLASHED, VOTED - 1, Ending.DROP),
        (CLAIM, PENDING, TaskStatus.UNPAID, VOTED - 1, Ending.DROP),
    ],
)
def test_a_claim_is_closed_for_its_verdict_or_dropped(
    claim: ItemClaim | None, jury: JuryView | None, status: TaskStatus, now: int, due: Ending | None
) -> None:
    assert ending_due(claim, jury, TERMS, status, now) is due
