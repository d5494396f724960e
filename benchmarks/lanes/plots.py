"""Plots the study's figure. The same runs always give the same file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from benchmarks.lanes.plan import Run
from benchmarks.lanes.training import Outcome

COLOURS = {"lanes": "#c2410c", "mean": "#1d4ed8", "nesterov": "#0f766e", "all-reduce": "#111827"}


def losses_by_traffic(found: Mapping[Run, Outcome], path: Path) -> None:
    """For four lanes of the smallest model, plot the held-out loss against the received bytes. The bytes are
    relative to those of all-reduce.
    """
    shown = {run: outcome for run, outcome in found.items() if run.size == "0.1M" and not run.fault}
    reduced = next((o for run, o in shown.items() if run.rule == "all-reduce" and run.width == 4), None)
    alone = next((o for run, o in shown.items() if run.rule == "alone"), None)
    if reduced is None or alone is None:
        return
    matplotlib.rcParams["svg.hashsalt"] = "assay"
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for rule, colour in COLOURS.items():
        points = [
            (outcome.received / reduced.received, outcome.loss)
            for run, outcome in shown.items()
            if run.rule == rule and run.width == 4
        ]
        if points:
            traffic, losses = zip(*points, strict=True)
            axes.scatter(traffic, losses, s=18, color=colour, label=rule)
    axes.axhline(alone.loss, color="#9ca3af", linewidth=0.9, label="one lane alone")
    axes.set(xlabel="bytes received, beside all-reduce", ylabel="held-out loss, nats a byte")
    axes.set_xscale("log")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
