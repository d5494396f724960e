"""Fetches a task's final state from the parties that hold it. They need not be trusted, because the state's
root must equal the root on the chain.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from assay.errors import ResultError
from assay.holders import Holders
from assay.known_task import KnownTask
from assay.replacing import METRICS, STATE, origin_of, require_replaceable
from protocol.chain.client import Client
from protocol.chain.views import TaskStatus, TaskView
from protocol.commitments.atomic import write_atomically
from protocol.execution.saving import safetensors_of
from protocol.node.home import Home
from protocol.program.step import StepProgram, metrics
from protocol.tasks.bundles import Limits, cached_bundle, link_bundle

WITH_RESULT = (TaskStatus.SUBMITTED, TaskStatus.SETTLED)


@dataclass(frozen=True)
class Result:
    """A task's result: the state after the last step, by tensor name. `final` is False while the result may
    still be challenged.
    """

    task: int
    status: TaskStatus
    root: bytes
    origin: Mapping[str, str]
    """What tells the task from all others (`origin_of`)."""
    program: StepProgram
    state: dict[str, Tensor]
    holders: Holders

    @property
    def final(self) -> bool:
        """Whether the task is settled."""
        return self.status is TaskStatus.SETTLED

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the last step's batch, by name."""
        return metrics(self.state)


def fetch(
    client: Client, home: Home, task: int, limits: Limits | None = None, known: KnownTask | None = None
) -> Result:
    """Fetch the committed result of a task. The solver's server is asked first, then the servers of the
    accounts whose seats have attested. The same servers are asked for the bundle if it is not at the
    address in the terms. `limits` apply to the bundle and to every answer. `known` is the task that must
    still have the number `task`; by default, it is the task that has the number now. Raises AnotherTask,
    NotMinedAgain, ResultError, BundleError, ChainError.
    """
    known = known or KnownTask.read(client, task)
    view, terms = known.view(client, home), known.terms
    require_result(view)
    limits = limits or Limits()
    holders = Holders(client, view, limits)
    link_bundle(home.bundle_folders, home.bundles, terms.bundle_hash)
    program = cached_bundle(home.bundles, terms, limits, holders.bundles(terms.bundle_hash)).step
    state = holders.state(terms.segments, view.result, program)
    origin = origin_of(client.deployment, task)
    return Result(task, view.status, view.result, origin, program, state, holders)


def require_result(view: TaskView) -> None:
    """Raise ResultError for a task that has no result, or no longer has one."""
    if view.status not in WITH_RESULT:
        raise ResultError(
            f"task {view.task}",
            expected="a submitted or settled task",
            got=f"one that is {view.status.name.lower()}",
            remedy=f"follow it with `assay watch {view.task}`",
        )


def save(result: Result, folder: Path, metadata: Mapping[str, str] | None = None) -> Path:
    """Write `state.safetensors` into a folder, completely or not at all, with `metadata` in its header.
    Returns its path. Raises ResultError, and writes nothing, if the folder has files that are not of an
    earlier result of the same task.
    """
    require_replaceable(folder, result.origin)
    path = folder / STATE
    said = {**result.origin, **(metadata or {})}
    write_atomically(path, safetensors_of(result.program, result.state, said))
    return path


def save_history(result: Result, folder: Path) -> Path | None:
    """Write the metrics of the last steps, if the state keeps them, into `metrics.csv` in a folder. Returns
    its path. If the state keeps none, removes the `metrics.csv` of an earlier result, and returns None.
    """
    path = folder / METRICS
    table = result.program.history(result.state)
    if not table:
        path.unlink(missing_ok=True)
        return None
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(table)
    rows.writerows(zip(*table.values(), strict=True))
    write_atomically(path, text.getvalue().encode())
    return path
