"""Replaying a task's segments and comparing their states with what its solver committed.

Each segment is replayed from the committed state before it, so each false segment is found independently of
the others. Pure except for the executor: a source of committed states is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from assay.errors import NotHeld
from protocol.commitments import segment_tree, state_root
from protocol.execution.replay import Executor, OnStep, first_step, run_steps
from protocol.program.step import State, StepProgram

StateAt = Callable[[int], State]
"""Returns the committed state after a segment. Segment 0 stands for the initial state, which is always
available. Raises NotHeld.
"""


@dataclass(frozen=True)
class Finding:
    """The outcome of replaying one segment. If the segment is false, `tensors` names the tensors of its last
    state that differ from the committed ones, or is None if nobody serves the committed state.
    """

    segment: int
    committed: bytes
    computed: bytes
    tensors: tuple[str, ...] | None = ()

    @property
    def equal(self) -> bool:
        """Whether the segment is as committed."""
        return self.committed == self.computed

    def line(self) -> str:
        """The finding in words."""
        if self.equal:
            return f"segment {self.segment}: equal, state root {self.computed.hex()}"
        where = "" if self.tensors is None else f"; they differ in {', '.join(self.tensors)}"
        roots = f"committed {self.committed.hex()}, computed {self.computed.hex()}"
        return f"segment {self.segment}: FALSE, {roots}{where}"


@dataclass(frozen=True)
class Run:
    """The program, the executor and the segment length of a task's replays."""

    program: StepProgram
    executor: Executor
    segment_steps: int
    on_step: OnStep

    def segment(self, number: int, before: State) -> State:
        """Replay a segment and return the state after it."""
        first = first_step(number, self.segment_steps)
        return run_steps(self.executor, before, first, self.segment_steps, self.on_step)

    def compare(
        self, segments: Sequence[int], roots: Sequence[bytes], state_at: StateAt
    ) -> Iterator[Finding]:
        """Replay some segments, and compare the state root after each with the committed one. `roots` are the
        committed state roots r_0, r_1, …. `segments` count from 1 and are ascending. Raises NotHeld if nobody
        serves the state before a segment.
        """
        kept: tuple[int, State] | None = None
        for segment in segments:
            before = kept[1] if kept is not None and kept[0] == segment - 1 else state_at(segment - 1)
            state, kept = self.segment(segment, before), None
            tensors = self.program.tensor_roots(state)
            computed = state_root(tensors)
            if computed == roots[segment]:
                kept = segment, state
                yield Finding(segment, roots[segment], computed)
                continue
            names: tuple[str, ...] | None = None
            with suppress(NotHeld):
                kept = segment, state_at(segment)
                due = self.program.tensor_roots(kept[1])
                pairs = zip(self.program.state, tensors, due, strict=True)
                names = tuple(name for name, own, committed in pairs if own != committed)
            yield Finding(segment, roots[segment], computed, names)

    def roots(self, initial: State, segments: int) -> list[bytes]:
        """Replay the first `segments` segments from the initial state, and return the state roots from r_0
        on.
        """
        found, state = [self.program.state_root(initial)], initial
        for segment in range(1, segments + 1):
            state = self.segment(segment, state)
            found.append(self.program.state_root(state))
        return found


def first_false(own: Sequence[bytes], commitments: Iterable[tuple[int, bytes]]) -> range | None:
    """The range of segments that contains the first false one; None if no segment is false. `own` holds the
    state roots r_0, r_1, … of a replay on this machine. `commitments` holds the size and root of each segment
    tree that the solver committed.
    """
    right = 1
    for size, root in sorted(commitments):
        if segment_tree(own[:size]).root != root:
            return range(right, size)
        right = size
    return None
