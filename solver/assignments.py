"""The assignments of won tasks. Each is loaded in the background, because its bundle may have to be fetched
again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

from protocol.execution.loading import load_torch
from solver.background import in_thread
from solver.context import Context
from solver.progress import Progress

if TYPE_CHECKING:
    from solver.assignment import Assignment


class Assignments:
    """The assignments on which this solver can still act, by task. Used by one thread."""

    def __init__(self, context: Context, progress: Progress) -> None:
        self._context = context
        self._progress = progress
        self._loaded: dict[int, Assignment] = {}
        self._loading: dict[int, tuple[Future[Assignment], float]] = {}  # with the time when loading began
        self._ending: dict[int, Future[None]] = {}  # those that were given back

    def __iter__(self) -> Iterator[Assignment]:
        """All loaded assignments."""
        return iter(self._loaded.values())

    def __contains__(self, task: int) -> bool:
        return task in self._loaded

    def put(self, task: int, assignment: Assignment) -> None:
        """Add a loaded assignment."""
        self._loaded[task] = assignment

    def get(self, task: int) -> Assignment | None:
        """The assignment of a task; None until it is loaded. Loading begins once any earlier assignment of
        the same task has ended. Raises the error with which loading failed.
        """
        if task in self._ending:
            if not self._ending[task].done():
                return None
            del self._ending[task]
        if task not in self._loaded:
            if task not in self._loading:
                self._loading[task] = in_thread(partial(self.load, task)), time.monotonic()
            loading, _ = self._loading[task]
            if not loading.done():
                return None
            self._loaded[task] = loading.result()
            del self._loading[task]
        return self._loaded[task]

    def load(self, task: int) -> Assignment:
        """Load a task's assignment now. `get` calls this on another thread, because the bundle may have to be
        fetched, and the first task of a process loads torch. Raises BundleError, ChainError,
        OSError.
        """
        load_torch()
        from solver.assignment import Assignment

        return Assignment(self._context, task, self._progress)

    def pop(self, task: int) -> Assignment | None:
        """Remove and return the assignment of a task; None if it is not loaded."""
        return self._loaded.pop(task, None)

    def give_back(self, task: int) -> None:
        """End the assignment of a task that is not this solver's any more."""
        loaded = self._loaded.pop(task, None)
        if loaded is not None:
            self._ending[task] = loaded.give_back()
        elif task in self._loading:
            loading, _ = self._loading.pop(task)
            self._ending[task] = in_thread(partial(_end_loaded, loading))

    def failed_for(self, task: int) -> float:
        """Seconds that a task's background work took to fail; 0 if nothing failed. If the loading failed: the
        seconds from its beginning to this call. If the training failed: the seconds from its last step to the
        failure, or from the training's start if it did no step.
        """
        if task in self._loading and self._loading[task][0].done():
            return time.monotonic() - self._loading.pop(task)[1]
        return self._loaded[task].failed_after if task in self._loaded else 0.0


def _end_loaded(loading: Future[Assignment]) -> None:
    """Wait until an assignment is loaded, then end it. If loading fails, nothing has to be ended."""
    if loading.exception() is None:
        loading.result().give_back().result()
