"""Keeps checkpoints in the background: while one segment is trained, the state before it is hashed and
written.

One thread keeps one checkpoint after the other, so a run store grows in order and holds only complete
checkpoints. At most one more state is queued; if a second one comes, the producer waits, so memory stays
bounded. After a kill, segments that are not in the run store yet are trained again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread

from protocol.program.step import State
from solver.run_store import RunStore

WAITING = 1
"""Number of states that may wait while another is being written. One is enough for a slow moment of the disk;
each takes the memory of a state.
"""


class Pipeline:
    """Appends states to `run_store` on its own thread, and calls `on_kept` on that thread after each state.
    All calls of the methods must come from a single thread other than this one.

    An error on the pipeline's thread is final: `check`, `put` and `drain` raise it from then on, and no later
    state is kept.
    """

    def __init__(self, run_store: RunStore, on_kept: Callable[[], None] = lambda: None) -> None:
        self._run_store = run_store
        self._on_kept = on_kept
        self._changed = Condition()
        self._waiting: deque[State] = deque()
        self._busy = False
        self._closed = False
        self._failure: BaseException | None = None
        # A daemon, so that a second Ctrl-C ends the process without waiting for the disk.
        self._thread = Thread(target=self._run, name="solver-checkpoints", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the keeping of checkpoints, if any."""
        return self._failure

    def check(self) -> None:
        """Raise the error that ended the keeping of checkpoints, if any. Takes no time, so it may be called
        at every step.
        """
        if self._failure is not None:
            raise self._failure

    @property
    def full(self) -> bool:
        """Whether `put` would wait now."""
        return len(self._waiting) >= WAITING

    def put(self, state: State) -> None:
        """Queue `state`, to be kept after all earlier ones. Blocks while another state is queued.

        Nothing may write to the tensors of `state` afterwards.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or len(self._waiting) < WAITING)
            self.check()
            self._waiting.append(state)
            self._changed.notify_all()

    def drain(self) -> None:
        """Wait until all states are in the run store."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or not (self._waiting or self._busy))
            self.check()

    def close(self) -> None:
        """Keep the remaining states, as far as possible, and end the thread. Raises nothing; see
        `failure`.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while (state := self._next()) is not None:
            try:
                self._run_store.append(state)
                self._on_kept()
            except BaseException as error:
                self._end(error)
                return
            del state  # so that an idle thread does not hold it in memory
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _next(self) -> State | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if not self._waiting:
                return None
            self._busy = True
            state = self._waiting.popleft()
            self._changed.notify_all()
            return state

    def _end(self, error: BaseException) -> None:
        with self._changed:
            self._failure = error
            self._busy = False
            self._changed.notify_all()
