"""Plays a question and returns its rows; used by `sim run` and by notebooks."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from sim.results.folder import Folder
from sim.results.manifest import manifest_of
from sim.results.table import Rows, arrow
from sim.studies.catalogue import study as found
from sim.studies.checks import Verdict, checked
from sim.studies.study import Study
from sim.sweeping.axes import axes_of, texts
from sim.sweeping.plan import Plan, plan
from sim.sweeping.workers import Workers, here, pool

Progress = Callable[[int, int], None]
"""Called with the number of points done and the total."""


class Results:
    """The complete rows of one question."""

    def __init__(self, folder: Folder, study: Study) -> None:
        self.folder = folder
        self.study = study

    @classmethod
    def at(cls, path: Path) -> Results:
        """Open results written by `sim run`. Raises ResultsError, and StudyError if their study no longer exists."""
        folder = Folder.at(path)
        return cls(folder, found(folder.manifest["source"]))

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The question, and the versions that computed the results."""
        return self.folder.manifest

    @cached_property
    def rows(self) -> Rows:
        """Columns by name as NumPy arrays. A column is read when it is first used."""
        return Rows(self.folder)

    @property
    def table(self) -> pa.Table:
        """All columns as one Arrow table. Swept columns have their unit in the field metadata."""
        return arrow(self.folder)

    @cached_property
    def answer(self) -> Verdict:
        """The study's findings, and its claims checked with both seeds."""
        return checked(self.study, self.rows)


def run(
    study: str,
    *,
    runs: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    params: Mapping[str, object] | None = None,
    out: Path | str | None = None,
    jobs: int = 1,
) -> Results:
    """Play a study and return its results; for notebooks.

    `study` is a name that `sim list` shows or the path of a Python file. `params` maps parameters to a
    number, a sequence, or a string in --param syntax ("100:5000:20"); amounts are tokens. The rows are
    written to the folder `out`. Without `out`, they are written to a temporary folder, which lives as long as
    the result or its `rows`. With more than one job, a script must guard the call with `if __name__ ==
    "__main__":`. Raises SimError.
    """
    asked = plan(study, axes_of(found(study), texts(params or {})), runs=runs, rounds=rounds, seed=seed)
    path = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="sim-"))
    folder = Folder.open(path, manifest_of(asked))
    if out is None:
        weakref.finalize(folder, shutil.rmtree, path, ignore_errors=True)
    return fill(asked, folder, here if jobs == 1 else pool(jobs))


def fill(asked: Plan, folder: Folder, workers: Workers, *, progress: Progress | None = None) -> Results:
    """Play those chunks of a plan that a folder does not have yet. Raises ResultsError and any error of the study."""
    missing = folder.missing()
    each, total = asked.points_per_chunk, len(asked.points)
    done = total - sum(min(each, total - number * each) for number in missing)
    if progress is not None:
        progress(done, total)
    if missing:
        with closing(workers(asked.chunk(number) for number in missing)) as played:
            for number, rows in played:
                folder.write(number, rows)
                done += min(each, total - number * each)
                if progress is not None:
                    progress(done, total)
    return Results(folder, asked.study)
