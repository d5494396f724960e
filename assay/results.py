"""Fetching a task's final state from its solver, or from a verifier that attested a seat and so holds it, believing
neither: its root must be the one on the chain.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from assay.errors import ResultError
from protocol.chain.client import Client
from protocol.chain.views import TaskStatus, TaskView
from protocol.commitments import state_root, tensor_root
from protocol.commitments.atomic import write_atomically
from protocol.node.addresses import Address, BadAddress
from protocol.node.home import Home
from protocol.node.http_client import LEAST_RATE
from protocol.numerics.types import DType
from protocol.program.step import StepProgram, metrics
from protocol.tasks.bundles import BundleError, BundleRefused, Limits, cached_bundle
from protocol.tasks.bundles.sources import open_source


@dataclass(frozen=True)
class Result:
    """The state after the last step, by name. `final` is False while it may still be challenged."""

    task: int
    status: TaskStatus
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
    """The committed result of a task; its bundle within `limits`. Raises ResultError, BundleError, ChainError."""
    view = client.market.task(task)
    if view.status not in (TaskStatus.SUBMITTED, TaskStatus.SETTLED):
        raise ResultError(
            f"task {task}",
            expected="a submitted or settled task",
            got=f"one that is {view.status.name.lower()}",
            remedy=f"look at `assay status {task}`",
        )
    terms = client.market.terms(task)
    program = cached_bundle(home.bundles, terms, limits or Limits()).step
    holders = [view.solver, *(seat.account for seat in client.audit.seats(task) if seat.attested)]
    urls = dict.fromkeys(map(client.market.endpoint_of, holders))
    failures = []
    for url in urls:
        try:
            data = _tensors(url, view, terms.segments, program)
        except ResultError as error:
            failures.append(error)
        else:
            return Result(task, view.status, program, program.state_of(data))
    raise failures[0]


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


def _tensors(url: str, view: TaskView, number: int, program: StepProgram) -> list[bytes]:
    """Canonical bytes of the tensors of checkpoint `number`, the result, as a party serves them. Raises ResultError."""
    task = view.task
    sizes = [type_.nbytes for type_ in program.state_types]
    limits = Limits(seconds=30 + math.ceil(sum(sizes) / LEAST_RATE))
    try:
        # Asked for by whoever runs this, and checked against the chain: the party may be in a private network too.
        place = Address.parse(url) / f"tasks/{task}/checkpoints/{number}"
        with closing(open_source(place, limits, anywhere=True)) as source:
            data = [source.read(f"tensors/{k}", size) for k, size in enumerate(sizes)]
    except (BadAddress, BundleRefused) as error:
        raise ResultError(
            f"task {task}",
            expected="an http address of whoever holds its result",
            got=ascii(url[:200]) if url else "none",
            remedy="its solver, or a verifier that attested it, must announce another",
        ) from error
    except BundleError as error:
        raise ResultError(
            f"task {task}: expected the result from who holds it at {url}, got: {error.got}; try again later"
        ) from error
    found = state_root([tensor_root(item) for item in data])
    if found != view.result:
        raise ResultError(
            f"task {task}",
            expected=f"a state with root {view.result.hex()}",
            got=f"{found.hex()} from {url}",
            remedy="ask again later: another verifier may hold it",
        )
    return data
