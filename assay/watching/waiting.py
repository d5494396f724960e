"""What a task waits for next, and until when. Pure: takes a report and the chain's time, and returns
words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from assay.task_status import JuryStep, TaskStatusReport
from protocol.node.words import duration

_JURY: Final = {
    JuryStep.VOTES: "the jury's votes are due",
    JuryStep.OBJECTION: "the claimant may object",
    JuryStep.OPENINGS: "the jurors' openings are due",
}
_OVER: Final = {
    "bidding": "bidding is over: anyone may assign the task",
    "training": "the solver is late: anyone may end the task, which refunds it",
    "submitted": "nothing is awaited: anyone may settle the task",
    "unpaid": "anyone may close the task",
}
"""Maps a status to what can be done once no deadline is left."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Something that happens, or is due, by second `until` of the chain's time."""

    what: str
    until: int


def deadlines(report: TaskStatusReport, read_at: int, round_time: int | None) -> Iterator[Deadline]:
    """Everything that a task waits for and that has a known time. `report` was read at second `read_at`. The
    round of a pending draw is published at `round_time`.
    """
    status, left = report.status, report.seconds_left
    if left is not None:
        what = {
            "bidding": "bidding ends",
            "training": "the solver must have submitted",
            "submitted": "challenges end",
            "unpaid": "challenges of the unpaid task end",
        }[status]
        yield Deadline(what, read_at + left)
    if status not in ("submitted", "unpaid"):
        return
    if report.awaited_round is not None and round_time is not None:
        yield Deadline(f"round {report.awaited_round} of the beacon, for a draw, is published", round_time)
    for seat in (*report.seats, *report.looks):
        if seat.seconds_left is not None and seat.account is not None:
            yield Deadline(f"{seat.name} must attest", read_at + seat.seconds_left)
    for game in report.games:
        if game.seconds_left is not None:
            yield Deadline(f"a move in game {game.game} is due", read_at + game.seconds_left)
    jury = report.jury
    if jury is not None and jury.seconds_left is not None:
        yield Deadline(_JURY[jury.awaited], read_at + jury.seconds_left)


def waiting(found: Iterator[Deadline], status: str, awaits_draw: bool, now: int) -> tuple[str, int | None]:
    """What comes next after second `now`, in words, and the seconds until then. The seconds are None if there
    is no deadline.
    """
    ahead = sorted((each for each in found if each.until >= now), key=lambda each: each.until)
    if ahead:
        left = ahead[0].until - now
        return f"{ahead[0].what} in {duration(left)}", left
    if awaits_draw:
        return "a draw is due: anyone may execute it", None
    return _OVER.get(status, "it is over"), None
