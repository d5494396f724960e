"""Measures and writes the page; takes about ten minutes on two cores."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.environment import where
from benchmarks.quality import bias, convolutions, plots, training
from benchmarks.quality.page import page
from benchmarks.quality.subjects import gpt_subject, resnet_subject
from benchmarks.quality.training import Subject, Trained

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MEASURED = DOCS / "numerics.json"
ELEMENTARY = ROOT / "tests" / "vectors" / "elementary_errors.json"
SEEDS = (1, 2, 3)
ARITHMETICS: dict[str, Callable[[Subject, int, int], Trained]] = {
    "exact": training.exact,
    "float32": training.plain,
}


def main() -> None:
    """Measure as the options say; write numbers, figures and page."""
    parser = argparse.ArgumentParser(prog="benchmarks.quality", description=__doc__)
    parser.add_argument("--page", action="store_true", help="only write the page from the measured numbers")
    parser.add_argument("--convolutions", action="store_true", help="only the bits of convolutions, resumed")
    parser.add_argument("--steps", type=int, default=1_000)
    arguments = parser.parse_args()
    kept = json.loads(MEASURED.read_text())
    if arguments.convolutions:
        kept["convolutions"] = convolutions.measure()
    elif not arguments.page:
        kept |= measure(arguments.steps)
    MEASURED.write_text(json.dumps(kept, indent=1) + "\n")
    write()


def measure(steps: int) -> dict[str, Any]:
    """All numbers of the page except those of elementary functions and convolutions."""
    subjects = [compare(subject, steps) for subject in (gpt_subject(), resnet_subject())]
    mean, deviation = bias.ordinary(13, 13)
    found = {
        "sink": {"13": bias.attention_sink(13, 13).signed, "rule": bias.attention_sink(20, 20).signed},
        "tail words": {"13": bias.tail_words(13, 13), "rule": bias.tail_words(20, 13)},
        "unigram": {"13": bias.unigram(13, 13), "rule": bias.unigram(20, 13)},
        "ordinary": {"mean": mean, "deviation": deviation},
    }
    return {**where(), "training": subjects, "bias": found}


def compare(subject: Subject, steps: int) -> dict[str, Any]:
    """Train a subject with both arithmetics. For each seed, the two trainings run one after the other."""
    runs: dict[str, list[Trained]] = {name: [] for name in ARITHMETICS}
    for seed in SEEDS:
        for name, run in ARITHMETICS.items():
            runs[name].append(run(subject, seed, steps))
            print(f"{subject.name}, seed {seed}, {name}: {runs[name][-1].final_loss:.4f}", flush=True)
    figures = ["final training loss", *runs["exact"][0].held_out]
    found: dict[str, Any] = {"name": subject.name, "steps": steps, "figures": figures}
    for name, trained in runs.items():
        found[name] = {"final training loss": [run.final_loss for run in trained]}
        found[name] |= {figure: [run.held_out[figure] for run in trained] for figure in figures[1:]}
        found[name]["curves"] = [[round(loss, 5) for loss in run.curve] for run in trained]
    return found


def write() -> None:
    """Write the page and its figures from the numbers on disk."""
    measured = json.loads(MEASURED.read_text())
    for subject in measured["training"]:
        curves = {name: subject[name]["curves"] for name in ARITHMETICS}
        title = f"{subject['name']}: {subject['steps']:,} steps, {len(SEEDS)} seeds"
        path = DOCS / "figures" / f"{subject['name'].lower()}.svg"
        plots.loss_curves(curves, training.EVERY, title, path)
    elementary = json.loads(ELEMENTARY.read_text())["functions"]
    (DOCS / "numerics.md").write_text(page(measured, elementary))


if __name__ == "__main__":
    main()
