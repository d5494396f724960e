"""Figures for studies: lines with bands, heat maps with contours, tornado plots, and parity plots.

Each function returns a matplotlib figure without a title: the report prints the finding's sentence above it.
Colours are Okabe and Ito's palette, which is safe for colour-blind readers. pyplot is not used, so there is
no global state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
DASHES: Final = ("-", "--", "-.", ":")
"""Dash patterns. After every eight lines the colours repeat, and the next pattern is used."""
MOST_MARKS: Final = 1000
"""Maximum number of marks drawn as vectors. More marks are rasterised, because as vectors they would make the
file several megabytes large.
"""


@dataclass(frozen=True)
class Line:
    """One line. `low` and `high` bound its band; `points` are measured values, drawn as marks."""

    label: str
    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    points: ArrayLike | None = None


def lines(
    series: Sequence[Line],
    *,
    x: str,
    y: str,
    log_x: bool = False,
    log_y: bool = False,
    level: float | None = None,
) -> Figure:
    """Lines over one axis; `level` draws a horizontal line, such as the profit of honest work."""
    figure, axes = _empty()
    for number, line in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        dash = DASHES[number // len(COLOURS) % len(DASHES)]
        axes.plot(line.x, line.y, dash, color=colour, label=line.label, linewidth=1.5)
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
        if line.points is not None:
            axes.plot(line.x, line.points, "o", color=colour, markersize=4)
    if level is not None:
        axes.axhline(level, color="0.4", linewidth=0.8, linestyle=":")
    axes.set(xlabel=x, ylabel=y, xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    if len(series) > 1:
        axes.legend(frameon=False, fontsize="small")
    return figure


def heat_map(
    across: ArrayLike,
    up: ArrayLike,
    values: ArrayLike,
    *,
    x: str,
    y: str,
    label: str,
    contours: Sequence[float] = (0.0,),
    log_x: bool = False,
    log_y: bool = False,
) -> Figure:
    """Draw `values` as colours, with contour lines, for example of zero profit. The shape of `values` is
    (len(up), len(across)).

    If values have both signs, the colour map is centred on 0.
    """
    figure, axes = _empty()
    shown = np.asarray(values, dtype=np.float64)
    limits: dict[str, Any] = {"cmap": "cividis"}
    finite = shown[np.isfinite(shown)]
    if finite.size and finite.min() < 0 < finite.max():
        most = float(np.abs(finite).max())
        limits = {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
    mesh = axes.pcolormesh(across, up, shown, shading="nearest", rasterized=shown.size > MOST_MARKS, **limits)
    figure.colorbar(mesh, ax=axes, label=label)
    inside = [level for level in contours if finite.size and finite.min() < level < finite.max()]
    if inside and min(shown.shape) > 1:
        drawn = axes.contour(across, up, shown, levels=sorted(inside), colors="black", linewidths=1.2)
        axes.clabel(drawn, fontsize="x-small")
    axes.set(xlabel=x, ylabel=y, xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
    return figure


def tornado(names: Sequence[str], low: ArrayLike, high: ArrayLike, *, centre: float, x: str) -> Figure:
    """A result at the low and the high end of each parameter, as bars from `centre`. The widest bar is on top."""
    figure, axes = _empty(height=1.0 + 0.3 * len(names))
    downs, ups = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    order = np.argsort(np.abs(ups - downs), kind="stable")
    places = np.arange(len(names))
    for ends, colour, label in ((downs, COLOURS[0], "low end"), (ups, COLOURS[1], "high end")):
        axes.barh(places, ends[order] - centre, left=centre, color=colour, height=0.7, label=label)
    axes.axvline(centre, color="0.2", linewidth=0.8)
    axes.set_yticks(places, [names[number] for number in order])
    axes.set(xlabel=x)
    axes.legend(frameon=False, fontsize="small")
    return figure


def parity(
    expected: ArrayLike, measured: ArrayLike, error: ArrayLike, *, x: str = "theory", y: str = "engine"
) -> Figure:
    """Plot measured values over expected ones, with error bars of two standard errors. On the diagonal, both
    values are equal.
    """
    figure, axes = _empty()
    bars = axes.errorbar(
        expected,
        measured,
        yerr=2 * np.asarray(error),
        fmt="o",
        color=COLOURS[0],
        markersize=4,
        elinewidth=0.8,
    )
    for part in (bars[0], *bars[2]):
        part.set_rasterized(np.size(expected) > MOST_MARKS)
    ends = [float(np.min(expected)), float(np.max(expected))]
    axes.plot(ends, ends, color="0.4", linewidth=0.8)
    axes.set(xlabel=x, ylabel=y)
    return figure


def _empty(*, height: float = 4.0) -> tuple[Figure, Any]:
    figure = Figure(figsize=(7.0, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
