"""Callbacks that receive a training's metrics in order. They get the metrics of the last step of each
segment, and only after these metrics were checked. If a task has more than `MOST_POINTS` segments, the
metrics of only some segments are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from assay.errors import PackageMissing
from assay.watching.curve import Point


class Callback(Protocol):
    """Called with the number of a segment's last step, and with the metrics of that step's batch, by name.
    Steps are counted from 1. Any function with these parameters will do.
    """

    def __call__(self, step: int, metrics: Mapping[str, float], /) -> object: ...


class Told:
    """Passes points on to callbacks. Each callback gets every point once, including the points from before it
    was added. It gets a second point for the same step only if a re-organisation of the chain replaced the
    state after that step.
    """

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._known: set[tuple[int, bytes]] = set()
        self._callbacks: list[Callback] = []
        self._next: list[int] = []
        """The number of points that each callback has received."""

    def add(self, callback: Callback) -> None:
        """Add a callback, which will also get all earlier points. A callback that equals a known one, such as
        the same method of the same object, is not added again.
        """
        if callback not in self._callbacks:
            self._callbacks.append(callback)
            self._next.append(0)

    def take(self, points: Sequence[Point]) -> None:
        """Add checked metrics."""
        for point in points:
            if (point.segment, point.root) not in self._known:
                self._known.add((point.segment, point.root))
                self._points.append(point)

    def tell(self) -> None:
        """Call every callback with the points that it has not received. If a callback raises an error, this
        method ends with that error, and the next call passes on the remaining points. No point is passed to a
        callback twice, even if the callback raised an error for it.
        """
        for place, callback in enumerate(self._callbacks):
            while (number := self._next[place]) < len(self._points):
                self._next[place] += 1
                point = self._points[number]
                callback(point.step, dict(point.values))


class TensorBoard:
    """A callback that writes TensorBoard event files into a folder, using torch. Raises PackageMissing."""

    def __init__(self, folder: Path | str) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise PackageMissing(
                "event files for TensorBoard",
                expected="the package tensorboard",
                got=f"none that can be loaded: {error}",
                remedy="pip install 'assay[tensorboard]'",
            ) from error
        self._writer = SummaryWriter(str(folder))

    def __call__(self, step: int, metrics: Mapping[str, float], /) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()
