"""The gas of the parties' duties. Each duty's gas is a sum over calls. `presets/gas.json` has the gas of each
call, as the contracts' tests measure it.

That file repeats some figures of tests/vectors/gas.json under the same names. A test compares the two.
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
"""A seat's calls in a game against a solver that serves its data. The game descends through two levels of
called programs to an instruction, and ends with the most expensive judgment. The seat then claims the cost of
the game.
"""
DEFENCE: Final = ("expand steps", "expand trace", "expand callee", "expand callee")
"""The solver's answers in the game of `GAME`."""
SEAT: Final = ("attest", "release")
REVEAL: Final = ("reveal digest",)
"""The additional call of a seat that a look checks."""
TASK: Final = (
    *("show", "approve", "deposit", "post"),
    *("bid", "assign", "first progress", "progress", "progress", "submit", "settle", "withdraw"),
)
"""Calls of a task's submitter and solver. The submitter first shows a beacon round, because the last one
shown is too old; then it deposits its escrow and posts the task. The solver bids once, commits its progress
three times, submits, and withdraws its pay. `python -m benchmarks.trust` counts the calls that nodes really
make.
"""


MEASURED: Final[Mapping[str, int]] = json.loads(FILE.read_bytes())


def load_gas() -> Gas:
    """The gas of each duty."""
    game, defence, seat, task, reveal = (
        sum(MEASURED[name] for name in calls) for calls in (GAME, DEFENCE, SEAT, TASK, REVEAL)
    )
    return Gas(game, defence, seat, task, reveal)


GAS: Final = load_gas()
LAST_SEAT: Final = MEASURED["attest last seat"] - MEASURED["attest"]
"""Gas that the last seat spends on its attestation beyond what its fee covers, because this attestation also
requests looks.
"""
UNPAID_SEAT: Final = MEASURED["withdraw"]
"""Gas that each seat spends beyond what its fee covers: the gas to withdraw the fee."""
UNPAID_LOOK: Final = MEASURED["attest look"] - MEASURED["attest"] + LAST_SEAT + MEASURED["withdraw"]
"""Gas that each look spends beyond what its fee covers. Looks are few, so each look is assumed to be the last
one of its level to attest.
"""
