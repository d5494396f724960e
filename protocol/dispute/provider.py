"""Protocols for the data of a game's two sides: `Run` is a side's own run, and `Provider` is what the solver
serves.

`protocol.execution.replay.Replay` implements `Run` for the solver and the verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from protocol.commitments import Tree
from protocol.commitments.hashing import BytesLike

if TYPE_CHECKING:
    from protocol.program.program import Program


class Frame(Protocol):
    """One run of one program with all its values (a traced execution)."""

    @property
    def program(self) -> Program:
        """The program that ran."""

    @property
    def tree(self) -> Tree:
        """The trace tree: leaf i is the root of value i."""

    def root(self, leaf: int) -> bytes:
        """Tensor root of a value."""

    def value(self, leaf: int) -> BytesLike:
        """Canonical bytes of a value."""

    def callee(self, n: int) -> Frame:
        """The frame of call instruction n."""


class Run(Protocol):
    """A run of a task: the roots of its checkpoints and, by replay, everything below them."""

    def segment_roots(self) -> Sequence[bytes] | None:
        """State roots r_0, r_1, …, as far as this side has computed them from the start. None if it has
        computed only single segments.
        """

    def step_roots(self, segment: int) -> Sequence[bytes]:
        """State roots s_0 … s_C of a segment. Segments are numbered 1 … K."""

    def tensor_roots(self, segment: int, step: int) -> Sequence[bytes]:
        """Tensor roots of state s_step of a segment."""

    def constant_roots(self) -> Sequence[bytes]:
        """Tensor roots of the dataset's tensors, then of the constants."""

    def frame(self, segment: int, step: int) -> Frame:
        """The top frame of a step, which leads from state s_{step-1} to s_step. Steps are numbered 1 … C."""


class Provider(Protocol):
    """The solver's answers over the network.

    Answers are not trusted: each is checked against a root. None stands for no answer or a malformed one; the
    challenger then demands the data on-chain.
    """

    def segment_roots(self) -> Sequence[bytes] | None:
        """State roots of all checkpoints."""

    def step_roots(self, segment: int) -> Sequence[bytes] | None:
        """State roots inside a segment."""

    def tensor_roots(self, segment: int, step: int) -> Sequence[bytes] | None:
        """Tensor roots of a state inside a segment."""

    def trace_roots(self, segment: int, step: int, path: tuple[int, ...]) -> Sequence[bytes] | None:
        """Value roots of a frame."""

    def value(self, segment: int, step: int, path: tuple[int, ...], leaf: int) -> bytes | None:
        """Canonical bytes of a value of a frame."""


def frame_at(run: Run, segment: int, step: int, path: tuple[int, ...]) -> Frame:
    """The frame to which the call instructions of `path` lead from a step's top frame."""
    frame = run.frame(segment, step)
    for n in path:
        frame = frame.callee(n)
    return frame
