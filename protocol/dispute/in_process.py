"""Two providers in the challenger's own process: one serves a whole run, the other serves nothing. Nothing is
checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.dispute.provider import Run, frame_at


class Silent:
    """A solver that answers no request."""

    def segment_roots(self) -> None:
        """Do not answer."""

    def step_roots(self, _segment: int) -> None:
        """Do not answer."""

    def tensor_roots(self, _segment: int, _step: int) -> None:
        """Do not answer."""

    def trace_roots(self, _segment: int, _step: int, _path: tuple[int, ...]) -> None:
        """Do not answer."""

    def value(self, _segment: int, _step: int, _path: tuple[int, ...], _leaf: int) -> None:
        """Do not answer."""


class Serving:
    """A solver that serves its whole run, whether or not the run is correct."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def segment_roots(self) -> Sequence[bytes] | None:
        """Roots of all checkpoints."""
        return self._run.segment_roots()

    def step_roots(self, segment: int) -> Sequence[bytes]:
        """State roots inside a segment."""
        return self._run.step_roots(segment)

    def tensor_roots(self, segment: int, step: int) -> Sequence[bytes]:
        """Tensor roots of a state."""
        return self._run.tensor_roots(segment, step)

    def trace_roots(self, segment: int, step: int, path: tuple[int, ...]) -> Sequence[bytes]:
        """Value roots of a frame."""
        frame = frame_at(self._run, segment, step, path)
        return [frame.root(leaf) for leaf in range(frame.tree.size)]

    def value(self, segment: int, step: int, path: tuple[int, ...], leaf: int) -> bytes:
        """Bytes of a value."""
        return bytes(frame_at(self._run, segment, step, path).value(leaf))
