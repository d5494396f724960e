"""What the HTTP server may show: the run stores of this solver's tasks, and the bundles it holds.

The node puts run stores here; the server's threads read. An app factory gets only a catalog from the node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from protocol.execution.turns import Turns
from solver.chunk_hashes import ChunkHashes
from solver.concurrency import Budget, OneAtATime
from solver.metrics import Metrics

if TYPE_CHECKING:
    from protocol.execution.replay import Replay
    from solver.run_store import Materials, RunStore

KEPT_RESULTS = 16
"""The last finished tasks, which are still shown: submitters fetch what they paid for."""


READERS = 32
"""Clients that may wait for a tensor of a checkpoint: each costs a read and a hash, seconds for the largest."""


@dataclass
class Answering:
    """Limits on what answers cost, for the tasks of all deployments, and the replay that is in memory."""

    readers: OneAtATime = field(default_factory=lambda: OneAtATime(READERS))
    replays: OneAtATime = field(default_factory=OneAtATime)
    budget: Budget = field(default_factory=Budget)
    hashes: ChunkHashes = field(default_factory=ChunkHashes)
    """Used by `readers` only, one at a time."""
    replay: tuple[RunStore, Replay] | None = None


class Catalog:
    """Run stores by task, bundles by the SHA-256 of their manifest. Single assignments, so readers need no lock.

    `turns` are those of the run stores' executors. A catalog `beside` is that of another deployment, served together.
    """

    def __init__(self, bundles: Path, metrics: Metrics, turns: Turns, beside: Catalog | None = None) -> None:
        self.metrics = metrics
        self.turns = turns
        self.answering: Answering = Answering() if beside is None else beside.answering
        self.ready = False
        self.mark: str = token_hex(16) if beside is None else beside.mark
        """Distinguishes this node's service from any other: `solver check` looks for it at the announced address."""
        self._bundles = bundles
        self._run_stores: dict[int, RunStore] = {}
        self._over: list[int] = []

    def put(self, run_store: RunStore) -> None:
        """Show a task from now on."""
        self._run_stores[run_store.task] = run_store

    def retire(self, task: int, again: Callable[[], Materials]) -> None:
        """A task is over: show it as long as it is among the last KEPT_RESULTS such tasks, without its dataset in
        memory (`RunStore.retire`).
        """
        self._run_stores[task].retire(again)
        self._over.append(task)
        while len(self._over) > KEPT_RESULTS:
            self._run_stores.pop(self._over.pop(0), None)

    def forget(self, task: int) -> None:
        """Stop showing a task that is over."""
        if task in self._over:
            self._over.remove(task)
        self._run_stores.pop(task, None)

    def run_store(self, task: int) -> RunStore | None:
        """The run store of a task, or None if this solver does not show it."""
        return self._run_stores.get(task)

    def replay(self, run_store: RunStore) -> Replay:
        """The replay that answers questions about a shown task; one thread at a time, whatever the task.

        Only the last one is kept: each may hold two frames, and a frame all values of a step.
        """
        answering = self.answering
        if answering.replay is None or answering.replay[0] is not run_store:
            answering.replay = None  # before the next one is made: never two of them in memory
            answering.replay = (run_store, run_store.replay())
        return answering.replay[1]

    def forget_replay(self) -> None:
        """Release everything that was replayed."""
        self.answering.replay = None

    def bundle_file(self, bundle: str, name: str) -> Path | None:
        """A file of a kept bundle. `bundle` and `name` may come from anyone; they cannot name anything outside."""
        folder = (self._bundles / bundle).resolve()
        path = (folder / name).resolve()
        inside = folder.parent == self._bundles.resolve() and path.is_relative_to(folder)
        return path if inside and path.is_file() else None
