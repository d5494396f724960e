"""The stories: who solves the task, who else plays, and how it has to end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from protocol.chain.parameters import TOKEN


@dataclass(frozen=True)
class Story:
    """One task of the demo: `example` names its file under examples/. `cheat` names the adversary that solves it, None
    is the production solver.

    `accuser` names an adversary that challenges it; `silent`: a verifier that never attests is drawn for it;
    `outsourced`: a seat has its digest computed by somebody who passes the salt on; `accomplice`: an adversary convicts
    it before the one seat, whose verifier looks at nothing else, has won; `stamped`: of two accounts that may be drawn
    the one in the seat attests what it did not compute, the other looks at it; `withheld`: of the accounts that may be
    drawn the one in the first seat is served by the solver, all others are not: they are the other seat and its jury.
    `verdict` and `judged` are how task and
    deciding game must end; `terms` are this task's own.
    """

    letter: str
    title: str
    verdict: str
    cheat: str | None = None
    example: str = "digits"
    accuser: str | None = None
    silent: bool = False
    accomplice: bool = False
    outsourced: bool = False
    stamped: bool = False
    withheld: bool = False
    judged: bool = False
    refused: bool = False
    terms: Mapping[str, int] = field(default_factory=dict)

    @property
    def solver(self) -> str:
        """The solver's name in the report."""
        return self.cheat or "honest"


SILENT_TERMS = {
    # The silent verifier has 64 of about 88 slots and no seat, so it sits in one of these but once in 5,000 demos.
    "verifiers": 5,
    "segments_per_verifier": 1,
    "seat_lock": 3 * TOKEN,
}
"""Most that the seats of the other stories bind: the silent verifier takes no seat that binds more."""

SEAT_TERMS = {
    # One seat that has every segment. No account but its verifier's covers the lock, and that takes no lower fee.
    "verifiers": 1,
    "segments_per_verifier": 8,
    "audit_fee": 3 * TOKEN,
    "seat_lock": 25 * TOKEN,
}

OUTSOURCED_TERMS = {
    # Anyone who outsources has 128 of about 151 slots and no seat, so it sits in one of these but once in 18,000
    # demos.
    "verifiers": 5,
    "segments_per_verifier": 1,
    "seat_lock": 4 * TOKEN,
}
"""More than the silent verifier's seats bind, and less than the lone seat pays, so neither of their accounts takes
one.
"""

STAMPED_TERMS = {
    # One seat, and one look at it. The accounts of these two alone cover the lock, and they take no lower fee.
    "verifiers": 1,
    "segments_per_verifier": 1,
    "audit_fee": 5 * TOKEN,
    "seat_lock": 30 * TOKEN,
    "look_chance": 10_000,
}

WITHHELD_TERMS = {
    # Two seats, and a jury. The accounts of these alone cover the lock, and they take no lower fee.
    "verifiers": 2,
    "segments_per_verifier": 4,
    "audit_fee": 6 * TOKEN,
    "seat_lock": 45 * TOKEN,
    "jurors": 3,
}

STORIES = (
    Story("a", "an honest solver", "settled"),
    Story("b", "one weight moved by one ulp in one step", "slashed", "one-ulp", judged=True),
    Story("c", "twice the learning rate from some step on", "slashed", "wrong-rate", judged=True),
    Story("d", "an old checkpoint resubmitted as a later one", "slashed", "skipper", judged=True),
    Story("e", "honest training from another initial state", "refunded", "other-start", refused=True),
    Story("f", "a cheat that serves nothing over HTTP", "slashed", "silent", judged=True),
    Story("g", "a challenger who accuses an honest solver", "settled", accuser="false-accuser"),
    Story("h", "an honest solver trains a GPT", "settled", example="gpt"),
    Story(
        "i", "one ulp in Adam's second moment, in one step", "slashed", "second-moment", "gpt", judged=True
    ),
    Story("j", "one wrong element of a dropout mask", "slashed", "dropout-mask", "gpt", judged=True),
    Story("k", "twice the denominator of one softmax", "slashed", "softmax", "gpt", judged=True),
    Story("l", "a silent seat is drawn again", "settled", silent=True, terms=SILENT_TERMS),
    Story(
        "m",
        "an accomplice convicts early; the honest seat is whole",
        "slashed",
        "wrong-rate",
        accomplice=True,
        judged=True,
        terms=SEAT_TERMS,
    ),
    Story(
        "n",
        "a seat that had its digest computed is informed on",
        "settled",
        outsourced=True,
        terms=OUTSOURCED_TERMS,
    ),
    Story(
        "o",
        "a rubber stamp is looked at",
        "settled",
        stamped=True,
        terms=STAMPED_TERMS,
    ),
    Story(
        "p",
        "data withheld from all but an accomplice come before a jury",
        "void",
        "withholder",
        withheld=True,
        terms=WITHHELD_TERMS,
    ),
)
"""In the order of the telling."""

POSTED = tuple(sorted(STORIES, key=lambda story: "fgahebcdijkompln".index(story.letter)))
"""In the order in which their tasks are posted; task ids count from 1. The longest games first, then what waits for
the end of a window; last those that their own verifiers register for, who are in the draws of no earlier task.
"""
