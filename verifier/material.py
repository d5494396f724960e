"""The material to replay and challenge one task: its verified bundle, an executor, states, and providers.

Bundles come from the address in the terms, otherwise from jurors, otherwise from the solver, and are kept
in the node's folder. Nothing in a bundle is trusted or run before it is checked
(`protocol.tasks.bundles`). Fetching waits for strangers; loading does not. A few tasks are in memory at a
time.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, TypeAlias

from protocol.commitments import BlobStore
from protocol.commitments.atomic import write_atomically
from protocol.execution.loading import load_torch
from protocol.node.addresses import Address
from protocol.node.disk import remove
from protocol.tasks.bundles import (
    BundleError,
    Fetches,
    Limits,
    NoMapsYet,
    NoRoomYet,
    TensorsTooLarge,
    cached_bundle,
    link_bundle,
    prune,
    require_terms,
)
from protocol.tasks.bundles.write import MANIFEST
from protocol.tasks.task import Terms
from verifier.database import Challenge, Database
from verifier.errors import DiskFull, StateLost
from verifier.served_traces import ServedTraces
from verifier.solver_client import CheckpointProvider
from verifier.strategy import Strategy

if TYPE_CHECKING:
    from protocol.execution.replay import Executor, Replay, Work
    from protocol.program.step import State
    from protocol.tasks.bundles import Bundle
    from verifier.replaying import Replayer
    from verifier.states import States

IN_MEMORY = 4
"""Number of tasks whose material is kept in memory. If a verifier replays more segments than this at the same
time, it keeps as many tasks' material as it replays segments. In addition, games with open trees keep the
material of their tasks. Each material holds the task's dataset and constants.
"""

_BUNDLE = "bundle"
"""Name of the file that holds the hash of a task's bundle."""

LEAST_TRY = 2.0
FIRST_TRY, LONGEST_TRY = 1 / 24, 1 / 3
"""The shortest and the longest time that an address has to send a bundle, as shares of the attestation time.
The first attempt has the shortest time. If the shortest time is below `LEAST_TRY` seconds, it is raised to
`LEAST_TRY`, but never above the longest time.
"""


@dataclass(frozen=True)
class Material:
    """The material of one task, ready for replays."""

    terms: Terms
    work: Work
    executor: Executor
    states: States
    provider: CheckpointProvider
    replayer: Replayer
    traces: ServedTraces

    def run(self, challenge: Challenge) -> Replay:
        """Our own run, from which a challenge's moves are made. It starts at the solver's state before the
        false segment, or at the initial state if that segment is not known.
        """
        if challenge.segment is None:
            return self._replay(challenge, self._own_roots)
        return self._replay(challenge, lambda: None)

    def _own_roots(self) -> Sequence[bytes]:
        """The roots of our own run, which is completed first. Lost states of the run are computed again."""
        run = self.states.extend(self.terms.segments)
        while len(run) <= self.terms.segments:
            run = self.states.extend(self.terms.segments)
        return run

    def _replay(self, challenge: Challenge, roots: Callable[[], Sequence[bytes] | None]) -> Replay:
        from protocol.execution.replay import Replay

        return Replay(
            self.work.program,
            self.work.fixed,
            self.executor,
            self.terms.segment_steps,
            lambda number: self._checkpoint(challenge, number),
            roots,
        )

    def _checkpoint(self, challenge: Challenge, number: int) -> State:
        if challenge.segment is None:
            return self.states.own(number)
        state = self.states.served(number, challenge.checkpoint_roots()[number], self.provider)
        if state is None:
            raise StateLost(
                f"task {challenge.task}, checkpoint {number}",
                expected="the state kept on disk",
                got="none, and the solver does not serve it",
                remedy="restore the node's folder from a backup",
            )
        return state


def seconds_of_try(attest_period: int, lost: float) -> float:
    """How long an address may take to send a bundle: as long as all earlier attempts together, which took
    `lost` seconds, but within the limits that `FIRST_TRY`, `LEAST_TRY` and `LONGEST_TRY` set.
    """
    return min(max(lost, attest_period * FIRST_TRY, LEAST_TRY), attest_period * LONGEST_TRY)


InTurnsOf: TypeAlias = "Callable[[Executor, Terms], Executor]"
"""Wraps a task's executor so that its steps take turns."""
Sources = Callable[[int], Sequence[Address]]
"""Returns the addresses that serve a task's data, not counting that of the task's solver."""


def nobody(_task: int) -> Sequence[Address]:
    """Default `Sources`: there are no other sources."""
    return ()


def _disk_full(room: int) -> DiskFull:
    return DiskFull(
        "disk",
        expected="room for a task's bundle",
        got=f"{max(0, room)} bytes beside what is spared",
        remedy="free some of it: without the bundle the seat is silent and loses its fee; or lower `spare_gib`",
    )


class Materials:
    """The material of tasks. The tasks' data are under `folder`, their bundles under `bundles`, by hash. No
    other party uses the folder of bundles, so a bundle is deleted with the last task that needs it. `shared`
    are the bundle folders of this machine's other parties: a bundle in one of them is linked, not fetched.
    Methods may be called from several threads at the same time, with one exception: the caller must ensure
    that no two threads fetch or load the same task at the same time.
    """

    def __init__(
        self,
        folder: Path,
        bundles: Path,
        database: Database,
        strategy: Strategy,
        limits: Limits,
        in_memory: int = IN_MEMORY,
        sources: Sources = nobody,
        room: Callable[[], int] = lambda: sys.maxsize,
        shared: Callable[[], Iterable[Path]] = tuple,
        in_turns: InTurnsOf = lambda executor, _terms: executor,
        fetches: Fetches | None = None,
    ) -> None:
        """`fetches` are the running fetches of all materials that share the disk."""
        self.fetches: Fetches = fetches or Fetches()
        self._in_turns = in_turns
        self._folder = folder
        self._bundles = bundles
        self._database = database
        self._strategy = strategy
        self._limits = limits
        self._in_memory = in_memory
        self._sources = sources
        self._room = room
        self._shared = shared
        self._damaged: set[bytes] = set()
        self._refused: set[bytes] = set()
        self._loaded: OrderedDict[int, Material] = OrderedDict()
        self._lock = threading.Lock()
        self._bundles_lock = threading.Lock()

    def find(self, task: int) -> Material | None:
        """The material of a task; None if it is not in memory."""
        with self._lock:
            if task in self._loaded:
                self._loaded.move_to_end(task)
            return self._loaded.get(task)

    def has_bundle(self, terms: Terms) -> bool:
        """Whether the complete bundle is on this machine, and is not known to be damaged. A bundle with a
        manifest is complete, because the manifest is written last.
        """
        return terms.bundle_hash not in self._damaged and self._lies_here(terms)

    def was_refused(self, terms: Terms) -> bool:
        """Whether fetching the bundle failed, and it is not here yet."""
        return terms.bundle_hash in self._refused and not self.has_bundle(terms)

    def fetch(self, task: int, terms: Terms, endpoint: Address | None, lost: float = 0.0) -> None:
        """Fetch and verify the bundle. `endpoint` is the address that the task's solver announced.

        `lost` is the number of seconds that earlier attempts took. From it, `seconds_of_try` gives the time
        that each address may take. This limit keeps a slow server from taking much time from other tasks'
        seats. The bytes that a slow server has sent are kept. Raises BundleError, and DiskFull, which is not
        the server's fault.
        """
        load_torch()
        self.want(task, terms)
        link_bundle(self._shared(), self._bundles, terms.bundle_hash)
        room = self._room()
        if room <= 0 and not self._lies_here(terms):
            raise _disk_full(room)
        servers = list(self._sources(task))
        SystemRandom().shuffle(servers)  # the first voters may be accomplices of the solver
        servers += [] if endpoint is None else [endpoint]
        others = [server / f"bundles/{terms.bundle_hash.hex()}" for server in servers]
        seconds = min(self._limits.seconds, seconds_of_try(terms.attest_period, lost))
        most = self._limits.total_bytes if self._lies_here(terms) else min(self._limits.total_bytes, room)
        limits = replace(self._limits, seconds=seconds, total_bytes=most)
        try:
            with self.fetches.fetch(self._room) as reserve:
                cached_bundle(self._bundles, terms, replace(limits, reserve=reserve), others)
        except NoMapsYet:  # not the server's fault
            raise
        except BundleError as error:
            if isinstance(error, NoRoomYet):
                raise _disk_full(room - self.fetches.bytes) from error
            # Too large tensors mean that the disk is full; too long an answer does not: otherwise nobody could
            # claim against a server that floods its clients.
            if isinstance(error, TensorsTooLarge) and most < self._limits.total_bytes:
                raise _disk_full(room) from error
            self._refused.add(terms.bundle_hash)
            raise
        self._damaged.discard(terms.bundle_hash)

    def load(self, task: int, terms: Terms, endpoint: Address | None) -> Material:
        """Load the material of a task, whose bundle must be on this machine, and keep it in memory. Raises
        BundleError.
        """
        found = self.find(task)
        if found is not None:
            return found
        load_torch()
        from protocol.tasks.bundles import load_bundle

        self.want(task, terms)
        try:
            bundle = load_bundle(self._bundles / terms.bundle_hash.hex(), limits=self._limits)
            require_terms(bundle, terms)
        except NoMapsYet:
            raise
        except BundleError:
            self._damaged.add(terms.bundle_hash)  # fetched again
            raise
        made = self._made(task, terms, endpoint, bundle)
        with self._lock:
            self._loaded[task] = made
            while len(self._loaded) > self._in_memory:
                self._loaded.popitem(last=False)
        return made

    def drop(self, task: int) -> None:
        """Forget a task that is over, and delete its data on disk; also its bundle if no other task needs
        it.
        """
        with self._lock:
            self._loaded.pop(task, None)
        with self._bundles_lock:
            remove(self._task_folder(task))
            self._prune()

    def tidy(self) -> None:
        """Delete bundles that no task needs, which a killed process may have left."""
        with self._bundles_lock:
            self._prune()

    def _prune(self) -> None:
        prune(self._bundles, {path.read_text() for path in self._folder.glob(f"tasks/[0-9]*/{_BUNDLE}")})

    def want(self, task: int, terms: Terms) -> None:
        """Record on disk that a task needs its bundle, so that the end of another task does not delete it,
        even after a restart.
        """
        path = self._task_folder(task) / _BUNDLE
        with self._bundles_lock:
            if not path.is_file():
                write_atomically(path, terms.bundle_hash.hex().encode())

    def _lies_here(self, terms: Terms) -> bool:
        return (self._bundles / terms.bundle_hash.hex() / MANIFEST).is_file()

    def _task_folder(self, task: int) -> Path:
        return self._folder / "tasks" / str(task)

    def _made(self, task: int, terms: Terms, endpoint: Address | None, bundle: Bundle) -> Material:
        from protocol.execution.replay import Work
        from verifier.replaying import Replayer
        from verifier.states import States

        folder = self._task_folder(task)
        work = Work.of(task, bundle)
        executor = self._in_turns(self._strategy.executor(work), terms)
        store = BlobStore(folder / "blobs")
        initial = bundle.initial_state
        states = States(task, work.program, executor, terms.segment_steps, initial, self._database, store)

        @cache
        def provided(address: Address | None) -> CheckpointProvider:
            return self._strategy.provider(address, task, work.program, terms, self._limits.reach)

        provider = provided(endpoint)
        replayer = Replayer(
            work.program,
            executor,
            terms.segment_steps,
            states,
            provider,
            lambda: map(provided, self._sources(task)),
        )
        traces = ServedTraces(folder / "traces")
        return Material(terms, work, executor, states, provider, replayer, traces)
