"""Turns at computing: of all that a party has to compute, what is due first goes first, a step at a time.

Two computations that share the cores both take twice as long, and then what is due may come too late. So each step
waits for a turn: that of the thread whose work is due first, among equals in the order of asking. A step runs to its
end. Where turns are `shared` what is due before every step that runs does not wait for it: it begins beside it. Else it
waits, and what is `urgent`, a solver's defence, goes before all else and has the turn until its answer is known, or
something urgent is due before it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, get_ident
from typing import TYPE_CHECKING

from protocol.dispute.provider import Frame
from protocol.errors import InternalError

if TYPE_CHECKING:
    from protocol.execution.replay import Executor
    from protocol.program.step import State


class Stopped(InternalError):
    """What would be computed is not needed any more: its task is over, or the party ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """One that asks for a turn, for work that is due `by` then; `asked` numbers them."""

    by: float
    asked: int = 0
    urgent: bool = False

    @property
    def order(self) -> tuple[bool, float, int]:
        """Least goes first."""
        return not self.urgent, self.by, self.asked


def may_begin(ask: Ask, waiting: Iterable[Ask], running: Iterable[Ask], shared: bool) -> bool:
    """Whether it is the turn of one that asks: nobody who waits is due before it, and nothing runs, or, where turns are
    shared, only what is due after it.
    """
    first = min(waiting, key=lambda other: other.order, default=ask)
    return first is ask and all(shared and ask.by < other.by for other in running)


@dataclass(slots=True)
class _Held:
    """A turn that a thread has; `between` is called whenever that thread asks again inside it."""

    ask: Ask
    between: Callable[[], None] = field(default=lambda: None)


class Turns:
    """Any thread may ask. Whoever has the turn may ask again inside it. Raises Stopped once it is closed."""

    def __init__(self, shared: bool = False) -> None:
        self._shared = shared
        self._changed = Condition()
        self._running: dict[int, _Held] = {}
        self._urgent = 0
        self._asked = 0
        self._waiting: list[Ask] = []
        self._closed = False
        self._thread = threading.local()

    @contextmanager
    def due(self, by: float) -> Iterator[None]:
        """What this thread asks for meanwhile is due then; without, it is not due at all."""
        before, self._thread.by = self._by, by
        try:
            yield
        finally:
            self._thread.by = before

    @contextmanager
    def urgent(self, between: Callable[[], None] = lambda: None, by: float = -math.inf) -> Iterator[None]:
        """The next turn, before all who wait but for what is urgent and due before; nothing else begins while this one
        is waited for or lasts. `between` is called before each of its own steps, and may take another urgent turn.
        """
        with self.reserved(), self._turn(by, urgent=True):
            held = self._running[get_ident()]
            outer, held.between = held.between, between
            due, held.ask = held.ask, Ask(min(by, held.ask.by), held.ask.asked, urgent=True)
            try:
                yield
            finally:
                held.between, held.ask = outer, due

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
        """A turn after all that is due before this thread's work, or was asked before and is due then too, and after
        everything urgent.
        """
        held = self._running.get(get_ident())
        if held is None:
            with self._turn(self._by):
                yield
            return
        held.between()
        self._make_way(held)
        yield

    def close(self) -> None:
        """No turn begins any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def _by(self) -> float:
        return getattr(self._thread, "by", math.inf)

    @contextmanager
    def _turn(self, by: float, urgent: bool = False) -> Iterator[None]:
        if get_ident() in self._running:
            yield
            return
        with self._changed:
            self._asked += 1
            self._wait(_Held(Ask(by, self._asked, urgent)))
        try:
            yield
        finally:
            with self._changed:
                del self._running[get_ident()]
                self._changed.notify_all()

    def _wait(self, held: _Held) -> None:
        """For a turn. Raises Stopped. The caller has the lock."""
        self._waiting.append(held.ask)
        try:
            self._changed.wait_for(lambda: self._closed or self._is_next(held.ask))
            if self._closed:
                raise Stopped
            self._running[get_ident()] = held
        finally:
            self._waiting.remove(held.ask)
            self._changed.notify_all()

    def _make_way(self, held: _Held) -> None:
        """Of several threads with something urgent, the one whose work is due first computes."""
        with self._changed:
            if held.ask.urgent and any(other.urgent and other.by < held.ask.by for other in self._waiting):
                del self._running[get_ident()]
                self._changed.notify_all()
                self._wait(held)

    def _is_next(self, ask: Ask) -> bool:
        running = (held.ask for held in self._running.values())
        barred = self._urgent and not ask.urgent
        return not barred and may_begin(ask, self._waiting, running, self._shared)


class InTurns:
    """An executor whose every step and trace waits for an ordinary turn. `note` is told the seconds of each step, but
    not on a device, which still computes it when it is asked for the next; `count` is called after each.
    """

    def __init__(
        self,
        executor: Executor,
        turns: Turns,
        note: Callable[[float], object] = lambda _seconds: None,
        count: Callable[[], object] = lambda: None,
    ) -> None:
        self._executor = executor
        self._turns = turns
        self._note = note
        self._count = count

    @contextmanager
    def turn(self) -> Iterator[None]:
        """For a step, and what is done about its state before the next."""
        with self._turns.ordinary():
            yield

    def step(self, state: State, number: int, /) -> State:
        """The state after the step. Raises Stopped, and what the executor raises."""
        with self._turns.ordinary():
            begun = time.perf_counter()
            after = self._executor.step(state, number)
            if all(tensor.device.type == "cpu" for tensor in after.values()):
                self._note(time.perf_counter() - begun)
            self._count()
            return after

    def trace(self, state: State, number: int, /) -> Frame:
        """The same step with all its values. Raises Stopped, and what the executor raises."""
        with self._turns.ordinary():
            return self._executor.trace(state, number)
