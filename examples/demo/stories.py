"""The stories: who solves each task, who else plays, and how the task must end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from protocol.chain.parameters import TOKEN


@dataclass(frozen=True)
class Story:
    """One task of the demo. `example` names its file under examples/.

    `cheat` names the adversary that solves the task; None means the production solver. `accuser` names an
    adversary that challenges the task. `verdict` is how the task must end. `judged`: the deciding game must
    end with a judgment. `refused`: the market must refuse the run. `terms` override the example's terms.

    `silent`: the draw gives a seat to a verifier that never attests. `outsourced`: a seat gives its salt to a
    service that computes its digest, and the service passes the salt on to the verifier. `accomplice`: the
    task has only one seat, and an adversary convicts the solver before this seat wins its game. The verifier
    of this seat watches only this task. `stamped`: two accounts may be drawn. One of them gets the seat and
    attests without computing. The other one gets the look that checks this seat. `withheld`: the solver
    serves the account in the first seat, but neither the other seat nor the jury.
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
    # The silent verifier has 128 of about 152 slots and no seat yet, so it misses all five only once in 15,000
    # demos.
    "verifiers": 5,
    "segments_per_verifier": 1,
    "seat_lock": 3 * TOKEN,
}
"""Terms of the silent verifier's story. That verifier takes no seat with a larger lock."""

SEAT_TERMS = {
    # One seat with every segment. Only its verifier has a stake that covers the lock, and accepts no lower fee.
    "verifiers": 1,
    "segments_per_verifier": 8,
    "audit_fee": 3 * TOKEN,
    "seat_lock": 25 * TOKEN,
}

OUTSOURCED_TERMS = {
    # The outsourcer has 128 of about 151 slots and no seat yet, so it misses all five only once in 18,000
    # demos.
    "verifiers": 5,
    "segments_per_verifier": 1,
    "seat_lock": 4 * TOKEN,
}
"""Terms of the outsourcing seat's story. The silent verifier takes no seat here, because the lock is too
large for it. Nor does the verifier of the accomplice's story, because the fee is too low for it.
"""

STAMPED_TERMS = {
    # One seat, and one look at it. Only these two accounts have stakes that cover the lock, and accept no lower fee.
    "verifiers": 1,
    "segments_per_verifier": 1,
    "audit_fee": 5 * TOKEN,
    "seat_lock": 30 * TOKEN,
    "look_chance": 10_000,
}

WITHHELD_TERMS = {
    # Two seats and a jury. Only their accounts have stakes that cover the lock, and accept no lower fee.
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
"""All stories, in the order in which they are introduced."""

POSTED = tuple(sorted(STORIES, key=lambda story: "fgahebcdijkompln".index(story.letter)))
"""All stories, in the order in which their tasks are posted. The ids of the tasks follow this order and start
at 1. The longest games come first, then the stories that wait for the end of a period. Last come the stories
for which special verifiers are registered, so that the draws of earlier tasks cannot find these verifiers.
"""
