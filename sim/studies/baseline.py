"""Baseline: does the engine meet the closed forms? A lazy solver against an honest share of verifiers.

Everything else rests on this study: escape, profit and burnt stake are played and compared with `sim.theory`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sim.agents.population import Population, population
from sim.agents.solvers import Lazy
from sim.agents.verifiers import Trusting, Verifier
from sim.setting import Setting
from sim.studies.study import Answer, Claim, Extra, Finding, Point, Study, Table


class Baseline(Study):
    """Lazy solvers, some verifiers that look and others that do not."""

    name = "baseline"
    question = "Does the engine meet the closed forms of escape and profit?"

    def axes(self) -> Mapping[str, Sequence[float]]:
        """False share and honest share."""
        return {"false_share": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), "honest_share": (0.3, 0.5, 0.7, 0.9)}

    def extra(self) -> Mapping[str, Extra]:
        """What the population is made of."""
        return {
            "false_share": Extra("share of the segments that a solver invents"),
            "honest_share": Extra("share of the verifiers that replay; the others attest whatever is served"),
        }

    def population(self, setting: Setting, point: Point) -> Population:
        """All solvers lazy."""
        honest = round(point["honest_share"] * setting.verifier_count)
        return population(
            [(Lazy(point["false_share"]), setting.solver_count)],
            [(Verifier(), honest), (Trusting(), setting.verifier_count - honest)],
        )

    def answer(self, table: Table) -> Answer:
        """Escape by false share against P(f)."""
        return Answer(
            [Finding("the engine plays")], [self._escape(table, point) for point in np.unique(table["point"])]
        )

    def _escape(self, table: Table, point: float) -> Claim:
        here = table["point"] == point
        escaped = table["escaped"][here]
        return Claim(
            f"escape at point {point:.0f}", float("nan"), float(escaped.mean()), float(escaped.std())
        )
