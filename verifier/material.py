"""What is needed to replay and to challenge one task: its verified bundle, an executor, states, a provider.

Bundles come from the address in the terms, else from the solver, and are kept in the node's folder; nothing in one is
believed or run before it is checked (`protocol.tasks.bundles`). A few tasks are in memory at a time.
"""

from __future__ import annotations

import shutil
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from protocol.commitments import BlobStore
from protocol.execution.replay import Executor, Replay, Work
from protocol.node.addresses import Address
from protocol.program.step import State
from protocol.tasks.bundles import Bundle, Limits, cached_bundle
from protocol.tasks.task import Terms
from verifier.database import Accusation, Database
from verifier.errors import StateLost
from verifier.replaying import Auditor
from verifier.solver_client import CheckpointProvider
from verifier.states import States
from verifier.strategy import Strategy

IN_MEMORY = 4
"""Tasks in memory besides those under challenge; each holds its dataset and constants."""


@dataclass(frozen=True)
class Material:
    """One task, ready to be replayed."""

    terms: Terms
    work: Work
    executor: Executor
    states: States
    provider: CheckpointProvider
    auditor: Auditor

    def run(self, accusation: Accusation) -> Replay:
        """One's own run below an accusation: from the solver's state before the false segment, or from the start."""
        if accusation.segment is None:
            return self._replay(accusation, self.states.own_roots)
        return self._replay(accusation, lambda: None)

    def _replay(self, accusation: Accusation, roots: Callable[[], Sequence[bytes] | None]) -> Replay:
        return Replay(
            self.work.program,
            self.work.fixed,
            self.executor,
            self.terms.segment_steps,
            lambda number: self._checkpoint(accusation, number),
            roots,
        )

    def _checkpoint(self, accusation: Accusation, number: int) -> State:
        if accusation.segment is None:
            return self.states.own(number)
        state = self.states.served(number, accusation.checkpoint_roots()[number], self.provider)
        if state is None:
            raise StateLost(
                f"task {accusation.task}, checkpoint {number}",
                expected="the state kept on disk",
                got="none, and the solver does not serve it",
                remedy="restore the node's folder from a backup",
            )
        return state


class Materials:
    """Material by task, under `folder`; bundles under `bundles`, by hash. Any thread may ask; a task is loaded once."""

    def __init__(
        self, folder: Path, bundles: Path, database: Database, strategy: Strategy, limits: Limits
    ) -> None:
        self._folder = folder
        self._bundles = bundles
        self._database = database
        self._strategy = strategy
        self._limits = limits
        self._loaded: OrderedDict[int, Material] = OrderedDict()
        self._lock = threading.Lock()
        self._loading: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    def get(self, task: int, terms: Terms, endpoint: Address | None) -> Material:
        """The material of a task; `endpoint` is its solver's, None without one. Raises BundleError."""
        with self._lock:
            loading = self._loading[task]
        with loading:
            found = self._loaded.get(task)
            if found is None:
                found = self._load(task, terms, endpoint)
        with self._lock:
            self._loaded[task] = found
            self._loaded.move_to_end(task)
            while len(self._loaded) > IN_MEMORY:
                self._loaded.popitem(last=False)
        return found

    def drop(self, task: int) -> None:
        """Forget a task that is over, and delete what was kept for it on disk."""
        with self._lock:
            self._loaded.pop(task, None)
            self._loading.pop(task, None)
        shutil.rmtree(self._task_folder(task), ignore_errors=True)

    def _task_folder(self, task: int) -> Path:
        return self._folder / "tasks" / str(task)

    def _load(self, task: int, terms: Terms, endpoint: Address | None) -> Material:
        folder = self._task_folder(task)
        bundle = self._bundle(terms, endpoint)
        work = Work.of(task, bundle)
        executor = self._strategy.executor(work)
        store = BlobStore(folder / "blobs")
        initial = bundle.initial_state
        states = States(task, work.program, executor, terms.segment_steps, initial, self._database, store)
        provider = self._strategy.provider(endpoint, task, work.program, terms)
        auditor = Auditor(work.program, executor, terms.segment_steps, states, provider)
        return Material(terms, work, executor, states, provider, auditor)

    def _bundle(self, terms: Terms, endpoint: Address | None) -> Bundle:
        """Kept, or fetched from the submitter or the solver, and kept."""
        others = [] if endpoint is None else [endpoint / f"bundles/{terms.bundle_hash.hex()}"]
        # A server that trickles must not use up the time in which the duty is to be attested.
        limits = replace(self._limits, seconds=min(self._limits.seconds, terms.attest_period / 3))
        return cached_bundle(self._bundles, terms, limits, others)
