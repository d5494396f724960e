"""Turns at computing: one computation of this solver at a time, and what defends a stake before everything else.

Two computations that share the cores both take twice as long, and then a move may come too late. So training and
answers over HTTP wait for a turn before every step, in the order of asking; the defence takes the machine at the end of
the step that runs, and keeps it until its move is known. A step runs to its end: that is as long as the defence waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, get_ident

from protocol.dispute.provider import Frame
from protocol.errors import InternalError
from protocol.execution.replay import Executor
from protocol.program.step import State


class Stopped(InternalError):
    """What would be computed is not needed any more: its task is over, or the solver ends."""


class Turns:
    """Any thread may ask. Whoever has the turn may ask again inside it. Raises Stopped once it is closed."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._holder: int | None = None
        self._urgent = 0
        self._waiting: deque[object] = deque()
        self._closed = False

    @contextmanager
    def urgent(self) -> Iterator[None]:
        """The next turn, before all who wait; no other begins while this one is waited for or lasts."""
        with self.reserved(), self._turn(lambda: True):
            yield

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """No ordinary turn begins: between urgent ones nobody's step is waited for."""
        with self._changed:
            self._urgent += 1
        try:
            yield
        finally:
            with self._changed:
                self._urgent -= 1
                self._changed.notify_all()

    @contextmanager
    def ordinary(self) -> Iterator[None]:
        """A turn after all who asked before, and after everything urgent."""
        if self._holder == get_ident():
            yield
            return
        mine = object()
        with self._changed:
            self._waiting.append(mine)
        try:
            with self._turn(lambda: not self._urgent and self._waiting[0] is mine):
                yield
        finally:
            with self._changed:
                self._waiting.remove(mine)
                self._changed.notify_all()

    def close(self) -> None:
        """No turn begins any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @contextmanager
    def _turn(self, is_next: Callable[[], bool]) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or (self._holder is None and is_next()))
            if self._closed:
                raise Stopped
            self._holder = get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._holder = None
                self._changed.notify_all()


class InTurns:
    """An executor whose every step and trace waits for an ordinary turn."""

    def __init__(self, executor: Executor, turns: Turns) -> None:
        self._executor = executor
        self._turns = turns

    def step(self, state: State, number: int, /) -> State:
        """The state after the step. Raises Stopped, and what the executor raises."""
        with self._turns.ordinary():
            return self._executor.step(state, number)

    def trace(self, state: State, number: int, /) -> Frame:
        """The same step with all its values. Raises Stopped, and what the executor raises."""
        with self._turns.ordinary():
            return self._executor.trace(state, number)
