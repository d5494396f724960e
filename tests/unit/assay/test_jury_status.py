"""What `assay status` says of an open jury."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.status import JuryStatus

DRAWN = JuryStatus(seat=1, state=4, jurors=3, yes=2, no=0, objected=False, seconds_left=70)
CLAIMS = "seat 1 claims that it cannot fetch state 4: "


@pytest.mark.parametrize(
    ("jury", "line"),
    [
        (replace(DRAWN, seconds_left=None), CLAIMS + "a jury is to be drawn"),
        (DRAWN, CLAIMS + "2 of 3 jurors have it, 0 do not; 70 s left to vote"),
        (
            replace(DRAWN, objected=True, seconds_left=-1),
            CLAIMS + "2 of 3 jurors have it, 0 do not; 0 s left to open a chunk",
        ),
        (
            replace(DRAWN, seat=33, state=None, seconds_left=None),
            "look 33 claims that it cannot fetch the constants: a jury is to be drawn",
        ),
    ],
)
def test_an_open_jury_is_told_in_one_line(jury: JuryStatus, line: str) -> None:
    assert jury.line() == line
