"""What the parties' duties take in gas: sums of `presets/gas.json`, calls as the contracts' tests measure them.

The file holds some of the figures of tests/vectors/gas.json, under the same names; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from protocol.chain.parameters import PRESETS
from protocol.tasks.amounts import Gas

FILE: Final = PRESETS / "gas.json"

GAME: Final = (
    "commit from a seat",
    "challenge",
    "select step",
    "select call",
    "select call",
    "judge round_scaled",
    "compensate",
)
"""A seat's calls where the solver serves its data: to an instruction of a program that a step calls, or one that this
calls, the most expensive judgment, and the claim of what the game cost.
"""
DEFENCE: Final = ("expand steps", "expand trace", "expand callee", "expand callee")
"""The solver's answers in that game."""
SEAT: Final = ("attest", "release")
REVEAL: Final = ("reveal digest",)
"""Of what is looked at."""
TASK: Final = (
    *("show", "approve", "deposit", "post"),
    *("bid", "assign", "first progress", "progress", "progress", "submit", "settle", "withdraw"),
)
"""The submitter shows a round, for the last one is too old, and brings its escrow; the solver bids once, commits after
each quarter of its training, and takes its pay out. `python -m benchmarks.trust` counts what nodes send.
"""


MEASURED: Final[Mapping[str, int]] = json.loads(FILE.read_bytes())


def load_gas() -> Gas:
    """The duties' gas."""
    game, defence, seat, task, reveal = (
        sum(MEASURED[name] for name in calls) for calls in (GAME, DEFENCE, SEAT, TASK, REVEAL)
    )
    return Gas(game, defence, seat, task, reveal)


GAS: Final = load_gas()
LAST_SEAT: Final = MEASURED["attest last seat"] - MEASURED["attest"]
"""Of the last attestation, which asks for looks, beyond what the seats' fees count."""
UNPAID_SEAT: Final = MEASURED["withdraw"]
"""Of each seat, beyond that: it takes its fee out."""
UNPAID_LOOK: Final = MEASURED["attest look"] - MEASURED["attest"] + LAST_SEAT + MEASURED["withdraw"]
"""Of each look, beyond what its fee counts: looks are few, so that most are the last of their level."""
