"""Generates the measured part of docs/performance.md from docs/performance.json, and keeps the other parts,
which are written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

DOCS = Path(__file__).parents[1] / "docs"
MEASURED = DOCS / "performance.json"
PAGE = DOCS / "performance.md"
PLOT = DOCS / "figures" / "performance.svg"
BEGIN, END = "<!-- measured: python -m benchmarks --record -->", "<!-- measured end -->"
PLOTTED = ("gpt", "resnet", "training", "products")
"""Groups whose ratios are plotted. All their ratios are exact / plain."""

PICTURES = {
    "soak": "![Memory, files, threads and databases of nodes over the tasks of a soak](figures/soak.svg)"
}
"""Markdown of the figures that the groups' modules draw themselves, by group."""

Groups = Mapping[str, Mapping[str, Any]]


def record(found: Groups) -> None:
    """Replace the groups in docs/performance.json, and write page and plot."""
    groups = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    MEASURED.write_text(json.dumps({**groups, **found}, indent=1, ensure_ascii=False) + "\n")
    write()


def write() -> None:
    """Write page and plot from docs/performance.json."""
    groups = json.loads(MEASURED.read_text())
    PAGE.write_text(page(PAGE.read_text(), groups))
    plot(groups, PLOT)


def page(text: str, groups: Groups) -> str:
    """The page with its measured part replaced. Raises ValueError if `text` does not mark the part."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"expected one part between {BEGIN!r} and {END!r} in {PAGE}")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return "\n".join([before + BEGIN, *tables(groups), END + after])


def tables(groups: Groups) -> Iterator[str]:
    """One table per group, with its date, commit and hardware."""
    for name, group in sorted(groups.items()):
        yield f"\n### {name}\n"
        yield f"{group['date']}, commit {group['commit']}, {group['hardware']}\n"
        if name in PICTURES:
            yield f"{PICTURES[name]}\n"
        yield "| what | measured | goal | middle half |"
        yield "|---|---|---|---|"
        for row in group["rows"]:
            yield f"| {row['what']} | {row['value']} | {row['goal']} | {row['spread']} |"
    yield ""


def plot(groups: Groups, path: Path) -> None:
    """Plot the ratios exact / float32 of the groups in `PLOTTED`, on a logarithmic axis. For each ratio, a
    point shows the median, and a line shows the middle half of the measurements. The same groups always give
    the same file.
    """
    rows = [row for name in PLOTTED for row in groups.get(name, {"rows": ()})["rows"] if row["ratio"]]
    matplotlib.rcParams["svg.hashsalt"] = "assay"
    figure = Figure(figsize=(8.6, 0.8 + 0.21 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    for place, row in enumerate(reversed(rows)):
        median, low, high = row["ratio"]
        colour = "#15803d" if median <= 1 else "#c2410c"
        axes.plot([low, high], [place, place], color=colour, linewidth=1.2, solid_capstyle="butt")
        axes.plot([median], [place], "o", color=colour, markersize=3.5)
    axes.axvline(1, color="#64748b", linewidth=0.8)
    axes.set_yticks(range(len(rows)), _names(rows), fontsize=6)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda x, _position: f"{x:g}x")
    axes.set(
        xlabel="time of the exact arithmetic / time of plain float32", title="Exact beside plain float32, CPU"
    )
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [row["what"] for row in reversed(rows)]
