"""The demo's tasks, made from the files in examples/. Each file is captured once; each story posts a separate
task.
"""

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
"""Periods in seconds, long enough for any machine. They cost no waiting, because `clock` moves the chain's
clock. The periods in the files of examples/ are meant for one task at a time on an idle machine.
"""
THINNING = 4
"""The thinning of digests: each chunk is hashed in one of every four states, so a seat's digest covers a
quarter of the chunks.
"""


def terms(prepared: Prepared, base: str, own: Mapping[str, int]) -> Terms:
    """The terms of a story's task. `base` is the bundle server's address; `own` are the terms in which the
    story differs from its example.
    """
    changed: dict[str, Any] = {**PERIODS, "thinning": THINNING, **own}
    return replace(prepared.terms(base, prepared.derived(Place(PARAMETERS))), **changed)


def summary(prepared: Prepared) -> str:
    """A description of a captured task."""
    step, task = prepared.bundle.step, prepared.description.task
    return (
        f"{task.name}: {len(step.program.instructions)} instructions, {prepared.bundle.cost.operations:,} operations "
        f"a step, {task.segments} segments of {task.segment_steps} steps"
    )
