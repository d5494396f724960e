"""Writes a soak's results: docs/soak.json, its figure, and its rows in docs/performance.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import page
from benchmarks.measure import Row
from benchmarks.soak.criteria import MIB, Criterion, criteria, per_task
from benchmarks.soak.plan import Plan
from benchmarks.soak.samples import Party, Sample, Samples

DATA: Final = page.DOCS / "soak.json"
FIGURE: Final = page.DOCS / "figures" / "soak.svg"
COLOURS: Final = {"solver": "#c2410c", "verifier": "#1d4ed8"}
PANELS: Final[tuple[tuple[str, Callable[[Party], float]], ...]] = (
    ("resident memory, MiB", lambda party: party.resident / MIB),
    ("open files", lambda party: party.files),
    ("threads", lambda party: party.threads),
    ("database, KiB", lambda party: party.database / 1024),
)


def summary(plan: Plan, found: Samples) -> dict[str, Any]:
    """The contents of docs/soak.json, except the date, commit and hardware."""
    bounds = criteria(found)
    return {
        "plan": plan.data(),
        "sessions": found.session,
        "seconds": sum(last.seconds for last in _last_samples(found)),
        "criteria": [asdict(one) | {"passed": one.passed} for one in bounds],
        "idle": [asdict(one) for one in found.idle],
        "samples": [asdict(one) for one in found.samples],
    }


def record(measured_at: Mapping[str, str], plan: Plan, found: Samples) -> None:
    """Write docs/soak.json, the figure, and the rows in docs/performance.md."""
    DATA.write_text(json.dumps({**measured_at, **summary(plan, found)}, indent=None) + "\n")
    plot(found.samples, FIGURE)
    made = [asdict(row) for row in rows(plan, found)]
    page.record({"soak": {**measured_at, "rows": made}})


def rows(plan: Plan, found: Samples) -> list[Row]:
    """Rows of the performance table: the criteria, then sizes."""
    played = (
        f"{len(found.samples)} tasks, {plan.processes * plan.accounts} accounts in {plan.processes} processes, "
        f"{found.session} session{'s' if found.session > 1 else ''}"
    )
    made = [Row(f"soak of {played}: {one.what}", _verdict(one), f"{one.limit:g}") for one in criteria(found)]
    last = found.samples[-1]
    for kind in COLOURS:
        names = [name for name in last.parties if name.startswith(kind)]
        parties = [last.parties[name] for name in names]
        anonymous, resident = (
            max(getattr(party, which) for party in parties) / MIB for which in ("anonymous", "resident")
        )
        made.append(
            Row(
                f"soak, the largest {kind} at the end: resident memory (of it backed by no file), files, threads",
                f"{resident:.0f} MiB ({anonymous:.0f} MiB), {max(party.files for party in parties)}, "
                f"{max(party.threads for party in parties)}",
                "",
            )
        )
        sizes = [
            max(per_task(found.samples, name, of) for name in names)
            for of in (lambda party: party.database, lambda party: party.journal, lambda party: party.disk)
        ]
        made.append(
            Row(
                f"soak, a {kind}'s disk for each task: database, journals, its whole home folder",
                ", ".join(f"{size / 1024:.1f} KiB" for size in sizes),
                "",
            )
        )
    return made


def _verdict(one: Criterion) -> str:
    return f"{one.value:.2f} ({one.party}){'' if one.passed else ': FAILED'}"


def _last_samples(found: Samples) -> list[Sample]:
    """The last sample of each session."""
    return list({sample.session: sample for sample in found.samples}.values())


def plot(samples: Sequence[Sample], path: Path) -> None:
    """Plot each quantity of each process against the finished tasks, with one panel per quantity. The same
    samples always give the same file.
    """
    matplotlib.rcParams["svg.hashsalt"] = "assay"
    figure = Figure(figsize=(8.6, 6.2), layout="constrained")
    panels = figure.subplots(2, 2)
    for axes, (name, of) in zip(panels.flat, PANELS, strict=True):
        _panel(axes, samples, of)
        axes.set(xlabel="finished tasks", ylabel=name)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("Nodes over a soak: the solver in orange, verifiers in blue", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _panel(axes: Axes, samples: Sequence[Sample], of: Callable[[Party], float]) -> None:
    for session in sorted({sample.session for sample in samples}):
        own = [sample for sample in samples if sample.session == session]
        for name in own[0].parties:
            colour = COLOURS[name.partition("-")[0]]
            xs, ys = [sample.finished for sample in own], [of(sample.parties[name]) for sample in own]
            axes.plot(xs, ys, color=colour, linewidth=0.9, marker="o", markersize=1.5)
