"""The states of one task at the ends of segments. There are two kinds: the states of our own run, which
starts from the initial state, and the solver's states, as they were served.

A served state is accepted only if it has the committed root. Both kinds are kept on disk while the task
lasts, because a solver that served a checkpoint once may refuse it when challenged. Two kinds of roots are
kept too: the solver's, and those of replays under a salt. With the roots under a salt, an accusation is
answered without replaying the whole segment again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from protocol.commitments import BlobStore, CommitmentError, segment_tree
from protocol.commitments.atomic import write_atomically
from protocol.commitments.checkpoints import load_checkpoint, load_tensor, save_checkpoint, stored_tensors
from protocol.commitments.groups import groups
from protocol.commitments.states import Checkpoint
from protocol.dispute.keys import salt_hash
from protocol.execution.replay import Executor, first_step, run_steps
from protocol.program.step import State, StepProgram
from verifier.database import Database, StateRow
from verifier.solver_client import CheckpointProvider


class States:
    """The kept states of one task. Checkpoint 0 is the initial state. Any thread may call the methods, and
    none waits for another. If two threads obtain the same checkpoint at the same time, it is still stored
    once.
    """

    def __init__(
        self,
        task: int,
        program: StepProgram,
        executor: Executor,
        segment_steps: int,
        initial: Callable[[], State],
        database: Database,
        store: BlobStore,
    ) -> None:
        self._task = task
        self._program = program
        self._executor = executor
        self._segment_steps = segment_steps
        self._initial = initial
        self._database = database
        self._store = store

    def extend(self, last: int) -> list[bytes]:
        """Advance our own run towards checkpoint `last`, by one segment at most. Returns the run's state
        roots r_0, r_1, … so far; the run has reached the checkpoint if there are more than `last` roots.

        If another thread finds a state damaged meanwhile, that state is computed again, but the returned
        roots stay right.
        """
        return [row.root for row in self._extended(last)]

    def own(self, number: int) -> State:
        """Checkpoint `number` of our own run, which is extended if needed."""
        rows = self._extended(number)
        while len(rows) <= number:
            rows = self._extended(number)
        return self._load(rows[number])

    def commitment(self, root: bytes) -> Sequence[bytes]:
        """The solver's checkpoint roots r_0, r_1, … that are kept for the segment tree with the root `root`.
        Empty if none are kept, or if the kept ones give another root.
        """
        roots = self._database.commitment(self._task, root)
        return roots if roots and segment_tree(roots).root == root else ()

    def keep_commitment(self, root: bytes, roots: Sequence[bytes]) -> None:
        """Keep the checkpoint roots of the segment tree with the root `root`, until the task is over or the
        roots of another tree are kept.
        """
        self._database.put_commitment(self._task, root, roots)

    def steps(self, segment: int, salt: bytes) -> Sequence[bytes]:
        """The kept roots s_0 … s_C of a segment's states under a salt; empty if they are not kept."""
        roots = self._database.steps(self._task, salt_hash(salt), segment)
        return roots if len(roots) == self._segment_steps + 1 else ()

    def keep_steps(self, segment: int, salt: bytes, roots: Sequence[bytes]) -> None:
        """Keep the roots of a segment's states under a salt while the task lasts."""
        self._database.put_steps(self._task, salt_hash(salt), segment, roots)

    def tensors(self, number: int, root: bytes) -> Sequence[bytes]:
        """Canonical bytes of the tensors of a checkpoint that is on disk."""
        row = self._database.state(self._task, number, root)
        assert row is not None, "who asks has seen to it that it is there"
        return [bytes(tensor.data) for tensor in self._checkpoint(row).tensors]

    def link(self, number: int, root: bytes, place: Callable[[int], Path]) -> None:
        """Also keep a checkpoint, which must be on disk, in a second place. Each of its groups of tensors
        (`protocol.commitments.groups`) gets a second path, which outlives the task's states. `place` maps a
        group's number to this path. A group of one tensor is linked, because it may be large; the other
        groups are written again.
        """
        row = self._database.state(self._task, number, root)
        assert row is not None, "who asks has seen to it that it is there"
        stored = stored_tensors(self._store, row.manifest, root)
        for group, numbers in enumerate(groups(type_.nbytes for type_ in self._program.state_types)):
            if len(numbers) == 1:
                self._store.link(stored[numbers.start].blob, place(group))
            else:
                tensors = (load_tensor(self._store, stored[k]).data for k in numbers)
                write_atomically(place(group), b"".join(tensors))

    def has(self, number: int, root: bytes) -> bool:
        """Whether the checkpoint with this root is on disk. Checkpoint 0 always counts as being there, even
        with another root.
        """
        return number == 0 or self._database.state(self._task, number, root) is not None

    def kept(self, number: int, root: bytes) -> State | None:
        """The checkpoint with this root; None if it is not on disk. The initial state always is."""
        if number == 0:
            self.extend(0)
        row = self._database.state(self._task, number, root)
        return None if row is None else self._load(row)

    def served(self, number: int, root: bytes, provider: CheckpointProvider) -> State | None:
        """The checkpoint with this root, from disk or on request; None if the solver does not serve it."""
        state = self.kept(number, root)
        return self.ask(number, root, provider) if state is None else state

    def ask(self, number: int, root: bytes, provider: CheckpointProvider) -> State | None:
        """Request the checkpoint with this root, and keep it; None if the solver does not serve it."""
        tensors = provider.checkpoint(number)
        return None if tensors is None else self.take(number, root, tensors)

    def take(self, number: int, root: bytes, tensors: Sequence[bytes]) -> State | None:
        """Keep the state of these tensors and return it; None if it does not have this root."""
        state = self._program.state_of(tensors)
        # Hash the tensors, not the received bytes: non-canonical bytes (another NaN) must be refused.
        if self._program.state_root(state) != root:
            return None
        self._database.put_state(self._task, self._saved(number, False, state))
        return state

    def _extended(self, last: int) -> list[StateRow]:
        """The rows of our own run, advanced towards checkpoint `last` by one segment at most."""
        rows = self._database.own_run(self._task)
        if not rows:
            rows = [self._saved(0, True, self._initial())]
            self._database.put_state(self._task, rows[0])
        if len(rows) <= last:
            before = rows[-1]
            first = first_step(before.number + 1, self._segment_steps)
            state = run_steps(self._executor, self._load(before), first, self._segment_steps)
            after = self._saved(before.number + 1, True, state)
            if self._database.put_next(self._task, before, after):
                rows.append(after)
        return rows

    def _saved(self, number: int, own: bool, state: State) -> StateRow:
        checkpoint = self._program.checkpoint(state)
        return StateRow(number, own, checkpoint.state_root, save_checkpoint(self._store, checkpoint))

    def _load(self, row: StateRow) -> State:
        return self._program.state_of([tensor.data for tensor in self._checkpoint(row).tensors])

    def _checkpoint(self, row: StateRow) -> Checkpoint:
        try:
            return load_checkpoint(self._store, row.manifest, state_root=row.root)
        except CommitmentError:
            # Damaged: the next attempt obtains it again. Others stay: a solver may not serve them again.
            self._database.drop_state(self._task, row)
            raise
