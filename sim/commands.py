"""The implementations of all `sim` commands except `replay`: they list and play studies, and write reports."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from protocol.node.output import Output
from protocol.node.process import keep_memory
from protocol.node.progress_bar import progress_bar
from sim.errors import ResultsError, SweepError
from sim.parameters import ALIASES, KNOWN
from sim.results.folder import Folder
from sim.results.manifest import NAME, manifest_of
from sim.results.report import write_report
from sim.results.results import Progress, Results, fill
from sim.studies.catalogue import STUDIES
from sim.studies.catalogue import study as found
from sim.studies.checks import Check
from sim.sweeping.axes import axes_of
from sim.sweeping.plan import Plan, plan
from sim.sweeping.workers import Workers, cores, here, pool

RESULTS: Final = Path("build/sim")
_SMALL: Final = 200_000
"""The largest number of tasks (points x runs x rounds) that this process plays faster than a pool of
processes, which takes time to start.
"""
_MOST_FAILED: Final = 20
"""Maximum number of failed claims to print."""


@dataclass(frozen=True)
class Asked:
    """The arguments of `sim run` or `sim sweep`."""

    study: str
    params: tuple[str, ...]
    runs: int | None
    rounds: int | None
    seed: int
    out: Path | None
    fresh: bool
    jobs: int | None
    ray: str | None


def show_studies(output: Output) -> None:
    """Print the studies' names, questions and sizes."""
    studies = [kind() for kind in STUDIES.values()]
    rows = [
        {
            "study": study.name,
            "question": study.question,
            "points": len(study.points({})),
            "runs": study.runs,
            "rounds": study.rounds,
        }
        for study in studies
    ]
    for row in rows:
        output.say(f"{row['study']:16} {row['question']}")
        output.say(f"{'':16} {row['points']} points, {row['runs']} runs of {row['rounds']} rounds each")
    output.result(rows)


def show_parameters(output: Output) -> None:
    """Print everything that --param accepts: the market's parameters, then each study's own."""
    other = {name: alias for alias, name in ALIASES.items()}
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "alias": other.get(name),
            "study": None,
            "unit": known.metadata["unit"].value,
            "default": known.metadata["unit"].format(known.default),
            "least": known.metadata["unit"].format(known.metadata["least"]),
            "most": known.metadata["unit"].format(known.metadata["most"]),
            "text": known.metadata["text"],
        }
        for name, known in KNOWN.items()
    ]
    for study in (kind() for kind in STUDIES.values()):
        for name, own in study.extra().items():
            unit = own.unit
            rows.append(
                {
                    "name": name,
                    "alias": None,
                    "study": study.name,
                    "unit": unit.value,
                    "default": ",".join(unit.format(value) for value in study.axes().get(name, ())),
                    "least": unit.format(own.least),
                    "most": unit.format(own.most),
                    "text": own.text,
                }
            )
    for row in rows:
        of = f" [{row['study']}]" if row["study"] else ""
        output.say(f"{row['name']:22} {row['default']:>10} {row['unit']:7} {row['text']}{of}")
    output.result(rows)


def play(asked: Asked, output: Output, *, sweeping: bool) -> bool:
    """Play the requested study, write the report, and return whether all claims hold."""
    results = _play(asked, sweeping)
    output.result(_conclude(results, output))
    return _holds(results)


def play_all(asked: Asked, output: Output) -> bool:
    """Play every study over its own grid in its own folder. Raises SweepError if parameters are given."""
    if asked.params:
        raise SweepError("expected no --param beside 'all', for studies differ in theirs; name one study")
    out = asked.out if asked.out is not None else RESULTS
    everything = [_play(replace(asked, study=name, out=out / name), sweeping=False) for name in STUDIES]
    output.result([_conclude(results, output) for results in everything])
    return all(_holds(results) for results in everything)


def write_reports(folder: Path, output: Output) -> None:
    """Write the report of `folder` if it is a folder of results, otherwise the report of each folder of
    results in `folder`. Raises ResultsError if there are no results.
    """
    folders = (
        [folder] if (folder / NAME).exists() else sorted(path.parent for path in folder.glob(f"*/{NAME}"))
    )
    if not folders:
        raise ResultsError(f"{folder}: expected a folder of results, got none; `sim run <study>` makes one")
    paths = [str(write_report(Results.at(path))) for path in folders]
    for path in paths:
        output.say(path)
    output.result({"reports": paths})


def _play(asked: Asked, sweeping: bool) -> Results:
    keep_memory()
    question = _plan(asked, sweeping)
    workers = _workers(asked, question)
    path = asked.out if asked.out is not None else RESULTS / question.study.name
    folder = Folder.open(path, manifest_of(question), fresh=asked.fresh)
    try:
        with _bar(question.study.name) as progress:
            return fill(question, folder, workers, progress=progress)
    except KeyboardInterrupt:
        print(f"the same command goes on with what {path} holds", file=sys.stderr)
        raise


def _plan(asked: Asked, sweeping: bool) -> Plan:
    study = found(asked.study)
    if sweeping and not asked.params:
        raise SweepError(
            "expected at least one --param name=values, got none; `sim run` plays a study's own grid"
        )
    axes = axes_of(study, asked.params)
    several = [name for name, values in axes.items() if len(values) > 1]
    if several and not sweeping:
        raise SweepError(
            f"{several[0]}: expected one value, got {len(axes[several[0]])}; `sim sweep` takes several"
        )
    return plan(asked.study, axes, runs=asked.runs, rounds=asked.rounds, seed=asked.seed)


def _workers(asked: Asked, question: Plan) -> Workers:
    if asked.ray is not None:
        from sim.sweeping.cluster import ray_workers

        if asked.jobs is not None:
            raise SweepError("expected --jobs or --ray, got both; leave one out")
        return ray_workers(asked.ray)
    small = len(question.points) * question.runs * question.rounds <= _SMALL
    jobs = asked.jobs if asked.jobs is not None else 1 if small else cores()
    return here if jobs == 1 else pool(min(jobs, question.chunks))


def _conclude(results: Results, output: Output) -> dict[str, Any]:
    """Write the report and print the findings. Return JSON data: what was played (study, folder, digest,
    points, number of rows), the report's path, the findings and the claims.
    """
    path = write_report(results)
    verdict, findings = results.answer, results.answer.findings
    claims = verdict.ordered
    failed = [claim for claim in claims if not claim.holds]
    for finding in findings:
        output.say(f"- {finding.sentence}")
    if claims:
        output.say(
            f"{verdict.held:,} of {len(claims):,} claims hold with both seeds, {verdict.weak:,} of them weakly"
        )
    for claim in failed[:_MOST_FAILED]:
        output.say(f"  does not hold: {claim.text}: {claim.words}")
    if len(failed) > _MOST_FAILED:
        output.say(f"  and {len(failed) - _MOST_FAILED:,} more; the report begins with them")
    output.say(f"{results.rows.count:,} rows in {results.folder.path}, report in {path}")
    return {
        "study": results.study.name,
        "folder": str(results.folder.path),
        "report": str(path),
        "digest": results.manifest["digest"],
        "points": results.manifest["points"],
        "rows": results.rows.count,
        "findings": [finding.sentence for finding in findings],
        "claims": [_plain(claim) for claim in claims],
    }


def _holds(results: Results) -> bool:
    return all(claim.holds for claim in results.answer.claims)


def _plain(claim: Check) -> dict[str, Any]:
    """A claim as JSON data. JSON has no infinite numbers, so None replaces them."""
    numbers = {"expected": claim.expected, "tolerance": claim.tolerance, "relative": claim.relative}
    return {
        "text": claim.text,
        **{name: _finite(value) for name, value in numbers.items()},
        "bound": float(claim.together.bound),
        "measured": [_finite(value) for value in claim.measured],
        "draws": claim.draws,
        "weak": bool(claim.weak),
        "holds": bool(claim.holds),
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


@contextmanager
def _bar(title: str) -> Iterator[Progress]:
    with progress_bar("{task.description}", "points", elapsed=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
