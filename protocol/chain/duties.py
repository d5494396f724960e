"""What the parties' duties take in gas: sums of `presets/gas.json`, calls as the contracts' tests measure them.

The file holds some of the figures of tests/vectors/gas.json, under the same names; a test compares the two.
"""

from __future__ import annotations

import json
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
calls, the dearest judgment, and the claim of what the game cost.
"""
DEFENCE: Final = ("expand steps", "expand trace", "expand callee", "expand callee")
"""The solver's answers in that game."""
SEAT: Final = ("attest", "release")
REVEAL: Final = ("reveal digest",)
"""Of what is looked at."""
TASK: Final = ("post", "bid", "assign", "first progress", "submit", "settle")


def load_gas() -> Gas:
    """The duties' gas."""
    measured: dict[str, int] = json.loads(FILE.read_bytes())
    game, defence, seat, task, reveal = (
        sum(measured[name] for name in calls) for calls in (GAME, DEFENCE, SEAT, TASK, REVEAL)
    )
    return Gas(game, defence, seat, task, reveal)


GAS: Final = load_gas()
