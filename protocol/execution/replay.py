"""Replays a task: the states of a segment, their roots, and the trace of a step (dispute.md sections 4 to 6).

The solver uses it to answer challenges, the verifier to audit and to challenge. Only checkpoints are kept;
the states between two checkpoints are computed again, one segment at a time. Both sides pass an `Executor`;
the honest executor runs the committed program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from torch import Tensor

from protocol.commitments import tensor_root
from protocol.dispute.provider import Frame
from protocol.execution.turns import InTurns
from protocol.numerics.self_check import require_mode
from protocol.numerics.types import canonical_buffer
from protocol.program.execute import Interpreter, Kernel
from protocol.program.library import fusions, kernels
from protocol.program.step import State, StepProgram
from protocol.program.trace import KEEP_BYTES, held_bytes
from protocol.tasks.arithmetics import ARITHMETIC

if TYPE_CHECKING:
    # Imported only for types: bundles need pydantic, which running a program does not.
    from protocol.tasks.bundles import Bundle

ROOT_BYTES = 73
"""Bytes that a root in a tuple takes in CPython: 32 for the hash, 33 for the header of the bytes object, and
8 for the tuple's pointer to it.
"""
ROOTS_SHARE = 64
FRAMES_SHARE = 8
"""A replay keeps frames in at most 1 / FRAMES_SHARE of the machine's memory. State roots and tensor roots
each take at most 1 / ROOTS_SHARE of it.
"""
FRAMES_BYTES = 4 * KEEP_BYTES
"""Maximum bytes of kept frames, even if the machine has more memory: two frames of the largest size. Frames
may be in the memory of a GPU, which may be smaller than the machine's.
"""
LEAST = 2
"""At least this many values of each kind are kept. A game is in one segment, and needs the tensor roots of
two states: those before and after one step. A kept value of roots is a tuple: the state roots of one segment,
or the tensor roots of one state. By the limits on terms, two such tuples take at most 10 MB.
"""

Key = TypeVar("Key")
Value = TypeVar("Value")


class Executor(Protocol):
    """Runs a step. `number` counts the task's steps from 1; the honest executor does not use it."""

    def step(self, state: State, number: int, /) -> State:
        """The state after the step. Nothing writes to its tensors again, because another thread may read them."""

    def trace(self, state: State, number: int, /) -> Frame:
        """The trace of the step that `step` would run, with all its values."""


@dataclass(frozen=True)
class Work:
    """What an executor runs: a task's program, its dataset tensors and constants, and the kernels by program id."""

    task: int
    program: StepProgram
    fixed: tuple[Tensor, ...]
    kernels: Mapping[bytes, Kernel]
    arithmetic: int = ARITHMETIC

    @classmethod
    def of(cls, task: int, bundle: Bundle) -> Work:
        """The work that a verified bundle describes."""
        return cls(
            task, bundle.step, bundle.fixed(), kernels(bundle.step.program, bundle.hints), bundle.arithmetic
        )


ExecutorFactory = Callable[[Work], Executor]


OnStep = Callable[[int, State], object]
"""Called after every step with the step's number, counted from 1, and the state or only its metrics."""


def run_steps(
    executor: Executor, state: State, first: int, steps: int, on_step: OnStep | None = None
) -> State:
    """The state after `steps` steps, beginning with step `first`. If the executor is an `InTurns`, each step
    and its `on_step` share one turn.

    Pass `state` without keeping a reference to it. A state may take gigabytes, and without other references
    it is freed after the first step.
    """
    turn = executor.turn if isinstance(executor, InTurns) else nullcontext
    for number in range(first, first + steps):
        with turn():
            state = executor.step(state, number)
            if on_step is not None:
                on_step(number, state)
    return state


def first_step(segment: int, segment_steps: int) -> int:
    """The number of a segment's first step. Steps and segments count from 1."""
    return (segment - 1) * segment_steps + 1


def honest_executor(work: Work) -> Executor:
    """An executor that runs the committed program on the CPU, with fused kernels where possible."""
    return HonestExecutor(work.program, work.fixed, honest_interpreter(work))


def honest_interpreter(work: Work) -> Interpreter:
    """The interpreter for the committed program on the CPU, with kernels, fused where possible."""
    return Interpreter(work.kernels, fuse=fusions)


class HonestExecutor:
    """Runs a step program on its dataset tensors and constants (`fixed`)."""

    def __init__(self, program: StepProgram, fixed: Sequence[Tensor], interpreter: Interpreter) -> None:
        self._program = program
        self._fixed = tuple(fixed)
        self._interpreter = interpreter

    def step(self, state: State, _number: int, /) -> State:
        """The next state, computed with fused kernels if the interpreter has them. Raises `SelfCheckError`."""
        require_mode()
        return self._program.step(state, self._fixed, self._interpreter)

    def trace(self, state: State, _number: int, /) -> Frame:
        """The traced step. In every frame, a call with a kernel is run by the kernel; the call's own frame is
        run only on request. Raises `SelfCheckError`.
        """
        require_mode()
        return self._program.trace(state, self._fixed, self._interpreter)


class Replay:
    """A `protocol.dispute.provider.Run` that re-executes steps from checkpoints.

    `checkpoint(i)` returns the state at the end of segment i (0: the initial state). `roots()` returns the
    checkpoints' state roots r_0, r_1, …, as many as this side has without a gap. It returns None if this side
    has only single segments. Segments and steps count from 1; C is `segment_steps`.

    Results are kept for the life of the replay, because it may serve games in several segments in turn. If
    they take more than a share of the machine's memory, the least recently used are dropped, but at least two
    of each kind remain. For a replayed segment, only the C + 1 state roots are kept. A state may have 65,535
    tensor roots, so tensor roots are kept only for the states around traced steps and for the states that
    were asked for.
    """

    def __init__(
        self,
        program: StepProgram,
        fixed: Sequence[Tensor],
        executor: Executor,
        segment_steps: int,
        checkpoint: Callable[[int], State],
        roots: Callable[[], Sequence[bytes] | None],
    ) -> None:
        self._program = program
        self._fixed = tuple(fixed)
        self._executor = executor
        self._segment_steps = segment_steps
        self._checkpoint = checkpoint
        self._roots = roots
        roots_most = machine_memory() // ROOTS_SHARE
        self._steps: _Kept[int, tuple[bytes, ...]] = _Kept((segment_steps + 1) * ROOT_BYTES, roots_most)
        self._tensors: _Kept[tuple[int, int], tuple[bytes, ...]] = _Kept(
            len(program.state) * ROOT_BYTES, roots_most
        )
        most = min(machine_memory() // FRAMES_SHARE, FRAMES_BYTES)
        self._frames: _Kept[tuple[int, int], Frame] = _Kept(held_bytes(program.program), most)
        self._constants: tuple[bytes, ...] | None = None

    @property
    def device(self) -> str:
        """The device on which steps wait for their turns; empty if they do not wait or need all devices."""
        return self._executor.device if isinstance(self._executor, InTurns) else ""

    def segment_roots(self) -> Sequence[bytes] | None:
        """State roots of the checkpoints from the initial state on, or None."""
        return self._roots()

    def step_roots(self, segment: int) -> Sequence[bytes]:
        """State roots s_0 … s_C."""
        return self._steps.get(segment, lambda: self._run_segment(segment))

    def tensor_roots(self, segment: int, step: int) -> Sequence[bytes]:
        """Tensor roots of state s_step (0 … C). The segment is replayed up to the state, unless `frame` has
        already computed the roots. A game asks only for the states before and after the step that it traces.
        """
        return self._tensors.get(
            (segment, step), lambda: self._program.tensor_roots(self.state(segment, step))
        )

    def constant_roots(self) -> Sequence[bytes]:
        """Tensor roots of the dataset's tensors, then of the constants."""
        if self._constants is None:
            types = self._program.fixed_types
            self._constants = tuple(
                tensor_root(canonical_buffer(x, type_.dtype))
                for type_, x in zip(types, self._fixed, strict=True)
            )
        return self._constants

    def frame(self, segment: int, step: int) -> Frame:
        """The top frame of a step (1 … C)."""
        return self._frames.get((segment, step), lambda: self._trace(segment, step))

    def state(self, segment: int, step: int) -> State:
        """State s_step of a segment (0 … C)."""
        first = first_step(segment, self._segment_steps)
        return run_steps(self._executor, self._checkpoint(segment - 1), first, step)

    def _run_segment(self, segment: int) -> tuple[bytes, ...]:
        found = []

        def noted(state: State) -> State:
            found.append(self._program.state_root(state))
            return state

        run_steps(
            self._executor,
            noted(self._checkpoint(segment - 1)),
            first_step(segment, self._segment_steps),
            self._segment_steps,
            lambda _, state: noted(state),
        )
        return tuple(found)

    def _trace(self, segment: int, step: int) -> Frame:
        """Trace a step. The step is also run without a trace. This gives the tensor roots of the states
        before and after it, so they need no other replay.

        So once a game's step tree has been made, the game runs at most C steps besides the trace: the steps
        of the segment before the traced step, and the traced step without a trace. Besides the trace, it
        hashes two states: those before and after the traced step. This is no more than one replay.
        """
        number = first_step(segment, self._segment_steps) + step - 1
        before = self.state(segment, step - 1)

        def note(step: int, state: State) -> None:
            self._tensors.get((segment, step), lambda: self._program.tensor_roots(state))

        def note_both(_number: int, after: State) -> None:
            note(step - 1, before)
            note(step, after)

        run_steps(self._executor, before, number, 1, note_both)
        return self._executor.trace(before, number)


class _Kept(Generic[Key, Value]):
    """A cache of the most recently used values, of at most `size` bytes each. It keeps as many as fit into
    `most` bytes, but at least LEAST.

    Unlike `lru_cache` on a method, it has no reference to its owner. So an unused replay is freed at once,
    with its dataset and frames. The cache drops a value before it computes the next one, so it never holds
    too many.
    """

    def __init__(self, size: int, most: int) -> None:
        self._most = max(LEAST, most // max(1, size))
        self._values: dict[Key, Value] = {}

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of a key, computed if it is not in the cache."""
        if key in self._values:
            value = self._values.pop(key)
        else:
            while len(self._values) >= self._most:
                del self._values[next(iter(self._values))]
            value = compute()
        self._values[key] = value
        return value


def machine_memory() -> int:
    """Bytes of this machine's physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
