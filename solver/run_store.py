"""A task's run as the solver keeps it: every checkpoint is on disk, and everything between two checkpoints is
replayed.

All that is served, defended and committed is read from here. A damaged checkpoint is computed again from the
one before it. The training is in `training`, and the chain's view of the task is in `node`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from torch import Tensor

from protocol.commitments import CHUNK, BlobStore, CommitmentError, ProgressTree
from protocol.commitments.checkpoints import (
    Piece,
    Stored,
    load_checkpoint,
    load_tensor,
    open_tensor,
    save_checkpoint,
    stored_tensors,
    write_state,
)
from protocol.commitments.groups import groups
from protocol.commitments.states import Checkpoint
from protocol.execution.replay import Executor, Replay, first_step, run_steps
from protocol.numerics.types import canonical_buffer
from protocol.program.step import State, StepProgram
from solver.chunk_hashes import ChunkHashes
from solver.database import CheckpointRow, Database
from solver.errors import KeepingError, RunStoreError

Materials = tuple[tuple[Tensor, ...], Executor]
"""A pair: first the tensors (those of the dataset, then the constants), second the executor of the steps."""

WRITERS = 2
"""Threads that hash and write one checkpoint, so that one can hash while another waits for the disk."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor of a checkpoint's manifest; `root` is its tensor root, `bytes` its canonical length."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    root: bytes
    bytes: int


class RunStore:
    """The checkpoints 0 … K of one task. Written by one thread at a time (`append`), read by any.

    `materials` returns what a replay needs: the same objects each time, or new ones for each replay. It may
    be called from any thread.
    """

    def __init__(
        self,
        task: int,
        program: StepProgram,
        materials: Callable[[], Materials],
        segments: int,
        segment_steps: int,
        database: Database,
        store: BlobStore,
    ) -> None:
        self.task = task
        self.program = program
        self.groups = groups(type_.nbytes for type_ in program.state_types)
        self._materials = materials
        self.segments = segments
        self.segment_steps = segment_steps
        self._database = database
        self._store = store
        self._rows = database.checkpoints(task)
        self.tree = ProgressTree(row.root for row in self._rows)
        row = database.task(task)
        self._committed = 0 if row is None else row.sent
        self._last: tuple[int, list[Stored]] | None = None

    @property
    def executor(self) -> Executor:
        """The executor that runs the task's steps."""
        return self._materials()[1]

    @property
    def size(self) -> int:
        """Number of kept checkpoints, including the initial state; K + 1 when training is over."""
        return len(self._rows)

    @property
    def committed(self) -> int:
        """Number of leaves of the largest segment tree that was sent to the chain or is about to be sent; 0
        if there is no such tree yet.
        """
        return self._committed

    def commit(self, size: int) -> None:
        """Record that the tree of the first `size` checkpoints is about to be sent, which makes it public."""
        self._database.put_sent(self.task, size)
        self._committed = max(self._committed, size)

    def roots(self, size: int | None = None) -> list[bytes]:
        """State roots r_0, r_1, … of the first `size` checkpoints, by default of all."""
        return [row.root for row in self._rows[:size]]

    def append(self, state: State) -> bytes:
        """Keep the next checkpoint and return its state root. Blobs, manifest and row are written in this
        order, each only after the previous is on disk.

        `state` is read in place, so nothing may write to its tensors before this returns. Raises KeepingError
        if the disk does not accept the checkpoint.
        """
        number = self.size
        try:
            written = write_state(self._store, self._pieces(state), WRITERS)
            row = CheckpointRow(number, written.manifest, written.state_root)
            self._database.add_checkpoint(self.task, row)
        except (OSError, sqlite3.Error) as error:
            raise KeepingError(
                f"task {self.task}, checkpoint {number}",
                expected="it to be written",
                got=error,
                remedy="see to the disk of --home, then start again: the run goes on from the checkpoint before",
            ) from error
        self.tree.append(row.root)
        # Last: other threads rely on `size` checkpoints being on disk and in the tree.
        self._rows.append(row)
        return row.root

    def _pieces(self, state: State) -> list[Piece]:
        program = self.program
        return [
            Piece(name, int(type_.dtype), type_.shape, partial(canonical_buffer, x, type_.dtype))
            for name, type_, x in zip(program.state, program.state_types, program.order(state), strict=True)
        ]

    def state(self, number: int) -> dict[str, Tensor]:
        """The state of a kept checkpoint. Raises RunStoreError if it is lost and cannot be computed again."""
        return self.program.state_of([tensor.data for tensor in self.checkpoint(number).tensors])

    def retire(self, again: Callable[[], Materials]) -> None:
        """The task is over: release the dataset and the executor. `again` recreates them for each new replay,
        and each time a damaged checkpoint is computed again.
        """
        self._materials = again

    def checkpoint(self, number: int) -> Checkpoint:
        """A kept checkpoint, read completely, with every root verified. If it is damaged, it is computed
        again.
        """
        row = self._rows[number]
        try:
            return load_checkpoint(self._store, row.manifest, state_root=row.root)
        except (CommitmentError, OSError) as error:
            return self._mend(number, error)

    def manifest(self, number: int) -> list[TensorEntry]:
        """Names, types, shapes and roots of a checkpoint's tensors, in the program's order. Reads no
        tensors, unless the manifest is damaged.
        """
        try:
            stored = self._stored(number)
        except (CommitmentError, OSError) as error:
            self._mend(number, error)
            stored = self._stored(number)
        return [
            TensorEntry(t.name, type_.dtype.name.lower(), t.shape, t.root, type_.nbytes)
            for t, type_ in zip(stored, self.program.state_types, strict=True)
        ]

    def tensor(self, number: int, tensor: int) -> bytes:
        """Canonical bytes of one tensor of a checkpoint. No other tensor is read, unless the checkpoint is
        damaged.
        """
        try:
            return bytes(load_tensor(self._store, self._stored(number)[tensor]).data)
        except (CommitmentError, OSError) as error:
            return bytes(self._mend(number, error).tensors[tensor].data)

    def group(self, number: int, group: int) -> bytes:
        """Canonical bytes of the tensors of one group of a checkpoint (`protocol.commitments.groups`). No
        other tensor is read, unless the checkpoint is damaged.
        """
        numbers = self.groups[group]
        try:
            stored = self._stored(number)
            return b"".join(load_tensor(self._store, stored[k]).data for k in numbers)
        except (CommitmentError, OSError) as error:
            tensors = self._mend(number, error).tensors
            return b"".join(tensors[k].data for k in numbers)

    def open_tensor(self, number: int, tensor: int) -> BinaryIO:
        """One tensor of a checkpoint, like `tensor`, as an open file. The caller closes it."""
        try:
            return open_tensor(self._store, self._stored(number)[tensor])
        except (CommitmentError, OSError) as error:
            self._mend(number, error)
            return open_tensor(self._store, self._stored(number)[tensor])

    def chunks(self, number: int, tensor: int, lo: int, hi: int, hashes: ChunkHashes) -> bytes:
        """Chunks lo … hi - 1 of a checkpoint's tensor. The tensor must have all these chunks. If `hashes`
        does not hold the hashes of the tensor's chunks, the whole tensor is read.
        """
        try:
            return hashes.read(self._store, self._stored(number)[tensor], lo, hi)
        except (CommitmentError, OSError) as error:
            return bytes(self._mend(number, error).tensors[tensor].data[lo * CHUNK : hi * CHUNK])

    def replay(self) -> Replay:
        """A new replay of this run, which computes states between its checkpoints. Each thread needs its own,
        because a replay is not thread-safe.
        """
        fixed, executor = self._materials()
        return Replay(self.program, fixed, executor, self.segment_steps, self.state, lambda: self.roots())

    def _stored(self, number: int) -> list[Stored]:
        """The content of a checkpoint's manifest. The manifest that was read most recently is kept in memory,
        because clients request a checkpoint's tensors one after the other.
        """
        last = self._last
        if last is None or last[0] != number:
            row = self._rows[number]
            last = number, stored_tensors(self._store, row.manifest, row.root)
            self._last = last
        return last[1]

    def _mend(self, number: int, error: Exception) -> Checkpoint:
        """Compute a damaged checkpoint again from the one before it, and store it again. Raises
        RunStoreError.

        No lock is needed, because two threads that find the damage at once write the same blobs. A lock would
        also be held while a step waits for its turn, and would then block the defence.
        """
        row = self._rows[number]
        if number == 0:
            raise self._lost(number, str(error)) from error
        first = first_step(number, self.segment_steps)
        state = run_steps(self.executor, self.state(number - 1), first, self.segment_steps)
        checkpoint = self.program.checkpoint(state)
        if checkpoint.state_root != row.root:
            raise self._lost(number, "another state when computed again") from error
        save_checkpoint(self._store, checkpoint)
        return checkpoint

    def _lost(self, number: int, got: str) -> RunStoreError:
        return RunStoreError(
            f"task {self.task}, checkpoint {number}",
            expected=f"the state {self._rows[number].root.hex()}",
            got=got,
            remedy="restore the blobs folder from a backup",
        )
