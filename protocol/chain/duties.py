"""The gas of the parties' duties: sums of `presets/gas.json`, calls as the contracts' tests measure them.

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
"""A seat's calls where the solver serves its data: down to an instruction of a program that a step calls, or that
such a program calls, with the most expensive judgment and the claim of the game's cost.
"""
DEFENCE: Final = ("expand steps", "expand trace", "expand callee", "expand callee")
"""The solver's answers in that game."""
SEAT: Final = ("attest", "release")
REVEAL: Final = ("reveal digest",)
"""Gas of an account that is looked at."""
TASK: Final = (
    *("show", "approve", "deposit", "post"),
    *("bid", "assign", "first progress", "progress", "progress", "submit", "settle", "withdraw"),
)
"""The submitter shows a round, because the last one is too old, and deposits its escrow; the solver bids once,
commits after each quarter of its training, and withdraws its pay. `python -m benchmarks.trust` counts what nodes
really send.
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
"""Gas of the last attestation, which requests looks, beyond what the seats' fees cover."""
UNPAID_SEAT: Final = MEASURED["withdraw"]
"""Gas of each seat beyond that: it withdraws its fee."""
UNPAID_LOOK: Final = MEASURED["attest look"] - MEASURED["attest"] + LAST_SEAT + MEASURED["withdraw"]
"""Gas of each look beyond what its fee covers: looks are few, so most are the last of their level."""
