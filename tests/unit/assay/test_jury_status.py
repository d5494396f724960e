"""What `assay status` says of an open jury."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from assay.status import awaited
from assay.task_status import JuryStatus, JuryStep
from protocol.chain.views import NOBODY, ItemClaim, JuryView
from protocol.tasks.task import Terms

DRAWN = JuryStatus(seat=1, state=4, jurors=3, yes=2, no=0, awaited=JuryStep.VOTES, seconds_left=70)
CLAIMS = "seat 1 claims that it cannot fetch state 4: "
VOTES = CLAIMS + "2 of 3 jurors have it, 0 do not; "
TERMS = cast(Terms, SimpleNamespace(jurors=3, move_time=20))
CLAIM = ItemClaim(NOBODY, bond=5, seat=1, item=4, until=0, tensor=0, walk=0, opened=0)
OBJECTED = replace(CLAIM, until=1_030)
YES = JuryView(1, pending=False, until=1_000, yes=0b11, no=0)
NO = replace(YES, yes=0b1, no=0b110)


@pytest.mark.parametrize(
    ("jury", "line"),
    [
        (replace(DRAWN, awaited=JuryStep.DRAW, seconds_left=None), CLAIMS + "a jury is to be drawn"),
        (DRAWN, VOTES + "1 min 10 s left to vote"),
        (replace(DRAWN, awaited=JuryStep.OBJECTION), VOTES + "1 min 10 s left for the claimant to object"),
        (replace(DRAWN, awaited=JuryStep.OPENINGS), VOTES + "1 min 10 s left to open a chunk"),
        (replace(DRAWN, awaited=JuryStep.VERDICT, seconds_left=None), VOTES + "the verdict is due"),
        (
            replace(DRAWN, seat=33, state=None, awaited=JuryStep.DRAW, seconds_left=None),
            "look 33 claims that it cannot fetch the constants: a jury is to be drawn",
        ),
    ],
)
def test_an_open_jury_is_told_in_one_line(jury: JuryStatus, line: str) -> None:
    assert jury.line() == line


@pytest.mark.parametrize(
    ("claim", "jury", "now", "expected"),
    [
        (CLAIM, replace(YES, pending=True, until=0), 900, (JuryStep.DRAW, None)),
        (CLAIM, YES, 1_000, (JuryStep.VOTES, 0)),
        (CLAIM, YES, 1_001, (JuryStep.OBJECTION, 19)),
        (CLAIM, YES, 1_021, (JuryStep.VERDICT, None)),
        (OBJECTED, YES, 1_021, (JuryStep.OPENINGS, 9)),
        (OBJECTED, YES, 1_031, (JuryStep.VERDICT, None)),
        (CLAIM, NO, 1_000, (JuryStep.VOTES, 0)),
        (CLAIM, NO, 1_001, (JuryStep.VERDICT, None)),
    ],
)
def test_what_a_jury_waits_for(
    claim: ItemClaim, jury: JuryView, now: int, expected: tuple[JuryStep, int | None]
) -> None:
    assert awaited(claim, jury, TERMS, now) == expected
