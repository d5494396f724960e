"""Turns at computing: the work with the earliest deadline goes first, a step at a time.

Two computations that share the cores both take twice as long, which may be too late for one. So each step waits for a
turn, which goes to the thread with the earliest deadline, at equal deadlines in order of request. A step is never
interrupted. If turns are `shared`, work that is due before every running step starts beside them at once. Otherwise
it waits, and `urgent` work, a solver's defence, precedes everything else and keeps the turn until its answer is
known, or until something urgent with an earlier deadline comes.

Several trainings share a device by earliest deadline: the others wait until the first one has ended, or waits for its
disk. Steps on different devices do not wait for each other.
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


@dataclass(slots=True, eq=False)
class Scheduled:
    """A training with the deadline `until`, on one of the devices. `dropped`: it needs no further turn. It has been
    waiting for trainings with an earlier deadline since `since`, and waited for `before` seconds earlier.
    """

    until: float
    device: str = ""
    dropped: bool = False
    before: float = 0.0
    since: float | None = None

    def waited(self) -> float:
        """Seconds so far during which others went first."""
        since = self.since
        return self.before + (0.0 if since is None else time.monotonic() - since)


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A request for a turn, for work with the deadline `by`; `asked` numbers them. Without a `device` it is for the
    whole machine.
    """

    by: float
    asked: int = 0
    urgent: bool = False
    device: str = ""
    training: Scheduled | None = None

    @property
    def order(self) -> tuple[bool, float, int]:
        """The least goes first."""
        return not self.urgent, self.by, self.asked

    def meets(self, other: Ask) -> bool:
        """Whether both need the same device."""
        return not (self.device and other.device) or self.device == other.device


def may_begin(ask: Ask, waiting: Iterable[Ask], running: Iterable[Ask], shared: bool) -> bool:
    """Whether it is this request's turn: no waiting one is due before it, and nothing runs or, if turns are shared,
    only work that is due after it. Requests for another device do not count.
    """
    first = min(filter(ask.meets, waiting), key=lambda other: other.order, default=ask)
    return first is ask and all(shared and ask.by < other.by for other in filter(ask.meets, running))


@dataclass(slots=True)
class _Held:
    """A turn that a thread has; `between` is called whenever that thread asks again inside it."""

    ask: Ask
    between: Callable[[], None] = field(default=lambda: None)


class Turns:
    """Callable from any thread. The holder of the turn may ask again inside it. Raises Stopped once it is closed."""

    def __init__(self, shared: bool = False) -> None:
        self._shared = shared
        self._changed = Condition()
        self._running: dict[int, _Held] = {}
        self._urgent = 0
        self._asked = 0
        self._waiting: list[Ask] = []
        self._trainings: list[Scheduled] = []
        self._closed = False
        self._thread = threading.local()

    @contextmanager
    def due(self, by: float) -> Iterator[None]:
        """Sets the deadline of what this thread asks for meanwhile; the default is none."""
        before, self._thread.by = self._by, by
        try:
            yield
        finally:
            self._thread.by = before

    @contextmanager
    def scheduled(self, training: Scheduled) -> Iterator[None]:
        """What this thread asks for meanwhile belongs to a training: it waits for those on its device with an earlier
        deadline. Raises Stopped once it is dropped.
        """
        with self._changed:
            self._trainings.append(training)
        self._thread.training = training
        try:
            yield
        finally:
            self._thread.training = None
            with self._changed:
                self._trainings.remove(training)
                self._changed.notify_all()

    def drop(self, training: Scheduled) -> None:
        """A training needs no further turn, even if it waits for one."""
        with self._changed:
            training.dropped = True
            self._changed.notify_all()

    @contextmanager
    def urgent(self, between: Callable[[], None] = lambda: None, by: float = -math.inf) -> Iterator[None]:
        """The next turn, before all waiting ones except urgent ones with earlier deadlines; nothing else begins while
        this one waits or lasts. `between` is called before each of its steps, and may take another urgent turn.
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
        """No ordinary turn begins meanwhile, so urgent turns do not wait for steps in between."""
        with self._changed:
            self._urgent += 1
        try:
            yield
        finally:
            with self._changed:
                self._urgent -= 1
                self._changed.notify_all()

    @contextmanager
    def ordinary(self, device: str = "") -> Iterator[None]:
        """A turn after everything urgent, and after all work that is due before this thread's, or at the same time
        and requested earlier. With a `device`, work on another one does not count.
        """
        held = self._running.get(get_ident())
        if held is None:
            with self._turn(self._by, device=device):
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
    def _turn(self, by: float, urgent: bool = False, device: str = "") -> Iterator[None]:
        if get_ident() in self._running:
            yield
            return
        with self._changed:
            self._asked += 1
            training = None if urgent else getattr(self._thread, "training", None)
            self._wait(_Held(Ask(by, self._asked, urgent, device, training)))
        try:
            yield
        finally:
            with self._changed:
                del self._running[get_ident()]
                self._changed.notify_all()

    def _wait(self, held: _Held) -> None:
        """Wait for a turn. Raises Stopped. The caller holds the lock."""
        self._waiting.append(held.ask)
        training = held.ask.training
        if training is not None and self._is_later(held.ask):
            training.since = time.monotonic()
        try:
            self._changed.wait_for(lambda: self._is_over(held.ask) or self._is_next(held.ask))
            if self._is_over(held.ask):
                raise Stopped
            self._running[get_ident()] = held
        finally:
            if training is not None and training.since is not None:
                training.before, training.since = training.waited(), None
            self._waiting.remove(held.ask)
            self._changed.notify_all()

    def _make_way(self, held: _Held) -> None:
        """Of several threads with urgent work, the one with the earliest deadline computes."""
        with self._changed:
            if held.ask.urgent and any(other.urgent and other.by < held.ask.by for other in self._waiting):
                del self._running[get_ident()]
                self._changed.notify_all()
                self._wait(held)

    def _is_over(self, ask: Ask) -> bool:
        return self._closed or (ask.training is not None and ask.training.dropped)

    def _is_next(self, ask: Ask) -> bool:
        running = (held.ask for held in self._running.values())
        barred = (self._urgent and not ask.urgent) or self._is_later(ask)
        waiting = (other for other in self._waiting if not self._is_later(other))
        return not barred and may_begin(ask, waiting, running, self._shared)

    def _is_later(self, ask: Ask) -> bool:
        """Whether another training on the same device has the earlier deadline."""
        mine = ask.training
        if mine is None:
            return False
        beside = (one for one in self._trainings if one.device == mine.device and not one.dropped)
        return min(beside, key=lambda one: one.until, default=mine) is not mine


class InTurns:
    """An executor whose every step and trace waits for an ordinary turn on its `device`. `note` is told the seconds
    of each step, except on a GPU, which still computes when the next step is requested; `count` is called after each.
    """

    def __init__(
        self,
        executor: Executor,
        turns: Turns,
        note: Callable[[float], object] = lambda _seconds: None,
        count: Callable[[], object] = lambda: None,
        device: str = "",
    ) -> None:
        self._executor = executor
        self._device = device
        self._turns = turns
        self._note = note
        self._count = count

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Holds for a step, and for the handling of its state before the next."""
        with self._turns.ordinary(self._device):
            yield

    def step(self, state: State, number: int, /) -> State:
        """The state after the step. Raises Stopped, and what the executor raises."""
        with self._turns.ordinary(self._device):
            begun = time.perf_counter()
            after = self._executor.step(state, number)
            if all(tensor.device.type == "cpu" for tensor in after.values()):
                self._note(time.perf_counter() - begun)
            self._count()
            return after

    def trace(self, state: State, number: int, /) -> Frame:
        """The same step with all its values. Raises Stopped, and what the executor raises."""
        with self._turns.ordinary(self._device):
            return self._executor.trace(state, number)
