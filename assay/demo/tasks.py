"""The demo's task: `examples/digits.toml`, captured once and posted once per story, with periods for many at a time."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocol.bundles import Bundle, committed_terms, write_bundle
from protocol.chain.parameters import TOKEN
from protocol.runtime.home import Home
from protocol.task import Terms

AMOUNTS = ("budget", "stake", "restitution", "audit_fee", "delay_penalty")
PERIODS: Mapping[str, int] = {
    # All solvers are awake when a task is posted: they look for work twice a second.
    "bidding_period": 8,
    # Seven solvers train on two cores, 5 s of one core each; the refused one's stake waits for this to end.
    "training_period": 60,
    # A drawn verifier replays three segments of each task, 1 s each, and seven tasks arrive at once.
    "attest_period": 60,
    # One verifier replays all segments of all tasks, 40 s of one core, before it has looked at each.
    "challenge_period": 90,
    # A move of the solver replays a segment while others do; the longest game has 30 moves of mostly 2 s.
    "solver_clock": 40,
    "challenger_clock": 60,
}
"""Seconds, for two slow cores. The file's own periods are for one task at a time."""


@dataclass(frozen=True)
class Prepared:
    """The captured task: its bundle, written under the submitter's home, and the amounts of its terms."""

    name: str
    bundle: Bundle
    bundle_hash: bytes
    given: Mapping[str, int]

    @property
    def summary(self) -> str:
        """What was captured, in words."""
        step = self.bundle.step
        operations = self.bundle.cost.operations
        return (
            f"{len(step.program.instructions)} instructions, {operations:,} operations a step, "
            f"{self.given['segments']} segments of {self.given['segment_steps']} steps"
        )

    def terms(self, base: str, own: Mapping[str, int]) -> Terms:
        """Terms of one task. `base` is the address of the bundle server, `own` overrides periods."""
        where = {"bundle_hash": self.bundle_hash, "bundle": f"{base}/bundles/{self.bundle_hash.hex()}"}
        return Terms(**{**committed_terms(self.bundle), **where, **self.given, **own})


def prepare(source: Path, home: Home) -> Prepared:
    """Capture the task that a file describes, and write its bundle."""
    from examples import digits

    described: dict[str, Any] = tomllib.loads(source.read_text())
    task, terms = described["task"], described["terms"]
    captured = digits.build(task["segments"] * task["segment_steps"])
    bundle = Bundle.of(task["name"], captured, captured.initial_state(task["seed"]))
    bundle_hash = write_bundle(bundle, home.bundles / "new")
    (home.bundles / "new").rename(home.bundles / bundle_hash.hex())
    amounts = {name: terms[name] * TOKEN for name in AMOUNTS}
    counts = {name: terms[name] for name in ("verifiers", "segments_per_verifier", "matches")}
    size = {name: task[name] for name in ("segments", "segment_steps")}
    return Prepared(task["name"], bundle, bundle_hash, {**size, **amounts, **counts, **PERIODS})
