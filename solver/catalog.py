"""What the HTTP server may serve: the run stores of this solver's tasks, and its bundles.

The node puts run stores here; the server's threads read them. The catalog is all that the node passes to the
app.
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
"""How many of the last finished tasks are still served, because submitters fetch the results they paid for.
"""


READERS = 32
"""How many clients of one share of the server (`http_shares`) may wait for a checkpoint's tensor. Clients
that come through a proxy have no share, so together they count as one share. Only that share can reach the
limit, because any other share has fewer connections than this. Each client costs a read and a hash, which
take seconds for the largest tensors.
"""


@dataclass
class Answering:
    """The limits on the cost of answers, the kept chunk hashes, and the one replay that is kept in memory
    (`Catalog.replay`). The tasks of all deployments share them.
    """

    readers: OneAtATime = field(default_factory=lambda: OneAtATime(READERS))
    replays: OneAtATime = field(default_factory=OneAtATime)
    budget: Budget = field(default_factory=Budget)
    hashes: ChunkHashes = field(default_factory=ChunkHashes)
    """Used only by the client that has the turn in `readers`, so by one client at a time."""
    replay: tuple[RunStore, Replay] | None = None


class Catalog:
    """Run stores by task, and bundles by the SHA-256 of their manifest. Changes are single assignments, so
    readers need no lock.

    The executors of the run stores compute in `turns`. `beside` is the catalog of another deployment that is
    served together with this one. Both catalogs have the same limits (`answering`) and the same `mark`, by
    which `solver check` recognises this node's service.
    """

    def __init__(self, bundles: Path, metrics: Metrics, turns: Turns, beside: Catalog | None = None) -> None:
        self.metrics = metrics
        self.turns = turns
        self.answering: Answering = Answering() if beside is None else beside.answering
        self.ready = False
        self.mark: str = token_hex(16) if beside is None else beside.mark
        """Identifies this node's service: `solver check` looks for it at the announced address."""
        self._bundles = bundles
        self._run_stores: dict[int, RunStore] = {}
        self._over: list[int] = []

    def put(self, run_store: RunStore) -> None:
        """Serve a task from now on."""
        self._run_stores[run_store.task] = run_store

    def retire(self, task: int, again: Callable[[], Materials]) -> None:
        """Keep serving a task that is over, without its dataset in memory, as long as it is among the last
        KEPT_RESULTS tasks that are over. `again` recreates the dataset when it is needed (`RunStore.retire`).
        """
        self._run_stores[task].retire(again)
        if task in self._over:
            self._over.remove(task)
        self._over.append(task)
        while len(self._over) > KEPT_RESULTS:
            self._run_stores.pop(self._over.pop(0), None)

    def forget(self, task: int) -> None:
        """Stop serving a task."""
        if task in self._over:
            self._over.remove(task)
        self._run_stores.pop(task, None)

    def run_store(self, task: int) -> RunStore | None:
        """The run store of a task; None if this solver does not serve it."""
        return self._run_stores.get(task)

    def replay(self, run_store: RunStore) -> Replay:
        """The replay that answers questions about a served task. Only one thread at a time may use a replay,
        even if the replays are of different tasks.

        Only the last replay is kept, because each may hold two frames, and a frame holds all values of a
        step.
        """
        answering = self.answering
        if answering.replay is None or answering.replay[0] is not run_store:
            answering.replay = None  # before the next one is made, so that two are never in memory
            answering.replay = (run_store, run_store.replay())
        return answering.replay[1]

    def forget_replay(self) -> None:
        """Release the replay."""
        self.answering.replay = None

    def bundle_file(self, bundle: str, name: str) -> Path | None:
        """A file of a kept bundle; None if there is none. `bundle` and `name` are untrusted and cannot refer
        to anything outside the bundles.
        """
        folder = (self._bundles / bundle).resolve()
        path = (folder / name).resolve()
        inside = folder.parent == self._bundles.resolve() and path.is_relative_to(folder)
        return path if inside and path.is_file() else None
