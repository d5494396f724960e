"""Plots loss curves as SVG. The same curves always give the same file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

COLOURS = {"exact": "#c2410c", "float32": "#1d4ed8"}


def loss_curves(curves: Mapping[str, Sequence[Sequence[float]]], every: int, title: str, path: Path) -> None:
    """Plot the losses of each run as a thin line, in the colour of the run's arithmetic. `curves[arithmetic]`
    has one list of losses for each run. Each loss is the mean over `every` steps.
    """
    matplotlib.rcParams["svg.hashsalt"] = "assay"
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for arithmetic, runs in curves.items():
        for k, losses in enumerate(runs):
            steps = [every * (point + 1) for point in range(len(losses))]
            label = arithmetic if k == 0 else None
            axes.plot(steps, losses, color=COLOURS[arithmetic], linewidth=0.9, alpha=0.7, label=label)
    axes.set(xlabel="step", ylabel="training loss", title=title)
    axes.set_yscale("log")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
