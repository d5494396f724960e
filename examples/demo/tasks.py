"""The demo's tasks, files of examples/: each captured once, posted once a story, with periods for many at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.deriving import Place
from assay.submitting import Prepared
from protocol.chain.parameters import load_parameters
from protocol.tasks.task import Terms

PARAMETERS = load_parameters(str(Path(__file__).with_name("parameters.toml")))
HOUR = 3_600
PERIODS: Mapping[str, int] = {
    "bidding_period": HOUR,
    "extension": HOUR,
    "training_period": 4 * HOUR,
    "attest_period": 4 * HOUR,
    "move_time": 2 * HOUR,
    "challenge_period": 8 * HOUR,
    "clock": 4 * HOUR,
}
"""Seconds that nobody waits for, because `clock` moves the chain's clock, and that suffice on any machine. The files'
own periods are for one task at a time on a quiet machine.
"""
THINNING = 4
"""A quarter of the chunks is hashed for a seat's digest: each chunk in one state of four."""


def terms(prepared: Prepared, base: str, own: Mapping[str, int]) -> Terms:
    """Terms of one story's task. `base` is the address of the bundle server, `own` are this story's."""
    changed: dict[str, Any] = {**PERIODS, "thinning": THINNING, **own}
    return replace(prepared.terms(base, prepared.derived(Place(PARAMETERS))), **changed)


def summary(prepared: Prepared) -> str:
    """What was captured, in words."""
    step, task = prepared.bundle.step, prepared.description.task
    return (
        f"{task.name}: {len(step.program.instructions)} instructions, {prepared.bundle.cost.operations:,} operations "
        f"a step, {task.segments} segments of {task.segment_steps} steps"
    )
