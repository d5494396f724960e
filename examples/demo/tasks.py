"""The demo's tasks, files of examples/: each captured once, posted once a story, with periods for many at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from assay.deriving import Place
from assay.submitting import Prepared
from protocol.chain.parameters import DEVNET
from protocol.tasks.task import Terms

PERIODS: Mapping[str, int] = {
    # All solvers are awake when a task is posted, and then fetch its bundle side by side: a GPT's has 94 files.
    "bidding_period": 15,
    # One solver a story: nobody answers.
    "extension": 3,
    # Twelve solvers train side by side, 1 to 2 s of one core each (400 digits steps of 2.2 ms, 100 GPT steps of 14 ms);
    # they start, hash, prove and send beside it, and the refused one's stake waits for this to end.
    "training_period": 90,
    # A seat's two segments are at most 0.3 s of steps each; twelve tasks come at once.
    "attest_period": 90,
    # One verifier replays all segments of all tasks, 12 s of steps, between its moves in eight games.
    "challenge_period": 140,
    # Two seconds for each of the 111 moves that a challenger may ask for: a solver bids under no shorter clock. The
    # longest game here has 35 moves of mostly 1 s.
    "clock": 240,
}
"""Seconds, for two slow cores. The file's own periods are for one task at a time."""


def terms(prepared: Prepared, base: str, own: Mapping[str, int]) -> Terms:
    """Terms of one story's task. `base` is the address of the bundle server, `own` are this story's."""
    periods: dict[str, Any] = {**PERIODS, **own}
    return replace(prepared.terms(base, prepared.derived(Place(DEVNET))), **periods)


def summary(prepared: Prepared) -> str:
    """What was captured, in words."""
    step, task = prepared.bundle.step, prepared.description.task
    return (
        f"{task.name}: {len(step.program.instructions)} instructions, {prepared.bundle.cost.operations:,} operations "
        f"a step, {task.segments} segments of {task.segment_steps} steps"
    )
