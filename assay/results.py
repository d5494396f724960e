"""Fetching a task's final state from those who hold it, believing nothing: its root must be the one on the chain."""

from __future__ import annotations

import csv
import io
import math
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from assay.errors import ResultError
from protocol.chain.client import Client
from protocol.chain.views import TaskStatus, TaskView
from protocol.commitments import state_root, tensor_root
from protocol.commitments.atomic import write_atomically
from protocol.node.addresses import Address, BadAddress, parsed
from protocol.node.home import Home
from protocol.node.http_client import LEAST_RATE
from protocol.numerics.types import DType
from protocol.program.step import StepProgram, metrics
from protocol.tasks.bundles import (
    BundleError,
    BundleMismatch,
    BundleUnavailable,
    Limits,
    cached_bundle,
    link_bundle,
)
from protocol.tasks.bundles.sources import Source, open_source, read

ANSWER_SECONDS = 30
"""For a server to answer, beside what its bytes take at `LEAST_RATE`."""


@dataclass(frozen=True)
class Result:
    """The state after the last step, by name; `root` is its committed root. `final` is False while it may still be
    challenged.
    """

    task: int
    status: TaskStatus
    root: bytes
    program: StepProgram
    state: dict[str, Tensor]

    @property
    def final(self) -> bool:
        """Whether the task is settled."""
        return self.status is TaskStatus.SETTLED

    @property
    def metrics(self) -> dict[str, float]:
        """The scalars of the last step's batch."""
        return metrics(self.state)


def fetch(client: Client, home: Home, task: int, limits: Limits | None = None) -> Result:
    """The committed result of a task. Its bundle is read, and servers are asked, within `limits`: the solver's first,
    then those of the accounts that attested that they hold it. Raises ResultError, BundleError, ChainError.
    """
    view = client.market.task(task)
    if view.status not in (TaskStatus.SUBMITTED, TaskStatus.SETTLED):
        raise ResultError(
            f"task {task}",
            expected="a submitted or settled task",
            got=f"one that is {view.status.name.lower()}",
            remedy=f"look at `assay status {task}`",
        )
    terms = client.market.terms(task)
    limits = limits or Limits()
    urls = [client.market.endpoint_of(account) for account in _holders(client, view)]
    others = [url / f"bundles/{terms.bundle_hash.hex()}" for url in map(parsed, urls) if url is not None]
    link_bundle(home.bundle_folders, home.bundles, terms.bundle_hash)
    program = cached_bundle(home.bundles, terms, limits, others).step
    failures = []
    for url in urls:
        found = _committed(url, task, terms.segments, program, view.result, limits)
        if not isinstance(found, str):
            return Result(task, view.status, view.result, program, program.state_of(found))
        failures.append(f"{parsed(url) or 'no http address'}: {found}")
    raise ResultError(
        f"task {task}",
        expected=f"a state with root {view.result.hex()} from its solver or an attested seat",
        got="; ".join(failures),
        remedy="try again later",
    )


def _holders(client: Client, view: TaskView) -> list[str]:
    """The solver, and the accounts of attested seats."""
    seats = client.audit.seats(view.task)
    return list(dict.fromkeys([view.solver, *(seat.account for seat in seats if seat.attested)]))


def _committed(
    url: str, task: int, number: int, program: StepProgram, root: bytes, limits: Limits
) -> list[bytes] | str:
    """Canonical bytes of the final state's tensors from one server, or what is wrong with its answer."""
    try:
        data = _tensors(url, task, number, program, limits)
    except (BadAddress, BundleError) as error:
        return error.got if isinstance(error, BundleUnavailable) and error.got else str(error)
    found = state_root([tensor_root(item) for item in data])
    return data if found == root else f"a state with root {found.hex()}"


def save(result: Result, folder: Path) -> Path:
    """Write `state.safetensors` into a folder, whole or not at all; its path."""
    from safetensors.torch import save as encode

    types = dict(zip(result.program.state, result.program.state_types, strict=True))
    tensors = {
        name: value.view(torch.uint32) if types[name].dtype is DType.U32 else value.contiguous()
        for name, value in result.state.items()
    }
    path = folder / "state.safetensors"
    write_atomically(path, encode(tensors, {"format": "pt", "task": str(result.task)}))
    return path


def save_history(result: Result, folder: Path) -> Path | None:
    """Write the metrics of the last steps, as far as the state keeps them, into `metrics.csv` in a folder; its path, or
    None where it keeps none.
    """
    table = result.program.history(result.state)
    if not table:
        return None
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(table)
    rows.writerows(zip(*table.values(), strict=True))
    path = folder / "metrics.csv"
    write_atomically(path, text.getvalue().encode())
    return path


def _tensors(url: str, task: int, number: int, program: StepProgram, limits: Limits) -> list[bytes]:
    """Canonical bytes of a checkpoint's tensors, each of its due length. Raises BadAddress, BundleError."""
    sizes = [type_.nbytes for type_ in program.state_types]
    seconds = min(limits.seconds, ANSWER_SECONDS + math.ceil(sum(sizes) / LEAST_RATE))
    place = Address.parse(url) / f"tasks/{task}/checkpoints/{number}"
    with closing(open_source(place, replace(limits, seconds=seconds))) as source:
        return [_exactly(source, f"tensors/{k}", size) for k, size in enumerate(sizes)]


def _exactly(source: Source, name: str, size: int) -> bytes:
    data = read(source, name, size)
    if len(data) != size:
        raise BundleMismatch(name, expected=f"{size} bytes", got=len(data))
    return data
