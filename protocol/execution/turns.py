"""Schedules computing by turns: the work with the earliest deadline goes first, one step at a time.

Two computations that share the cores both take twice as long, and one of them may then be late. So each step
waits for a turn. The turn goes to the thread with the earliest deadline; if deadlines are equal, to the one
that asked first. A step is never interrupted. If turns are `shared`, work whose deadline is earlier than
those of all running steps need not wait for these steps: it starts at once and runs in parallel with them.
All other work waits.

`urgent` work, a solver's defence, goes before everything else. It keeps the turn until its answer is known,
or until urgent work with an earlier deadline arrives.

Trainings that share a device run in order of deadline: the others wait for the first, except while the first
waits for its disk. Steps on different devices do not wait for each other.

A training's deadline decides only between trainings. In the order of turns, a training's requests have no
deadline, and neither have the requests of strangers' questions (`asked`). Questions would therefore take half
of a training's turns. To prevent this, questions rest between their turns while a training is scheduled, and
take at most a tenth of the time of the training's device.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, get_ident
from typing import TYPE_CHECKING, Final

from protocol.dispute.provider import Frame
from protocol.errors import InternalError

if TYPE_CHECKING:
    from protocol.execution.replay import Executor
    from protocol.program.step import State


QUESTIONS_SHARE: Final = 10
"""Questions take at most 1/`QUESTIONS_SHARE` of a training's time."""
QUESTION_SECONDS: Final = 30.0
"""A question is stopped if it would have to rest beyond this many seconds after it began. A verifier waits
for an answer at most this long, plus the time that the answer's bytes take.
"""


class Stopped(InternalError):
    """The result is no longer needed, because the task is over or the party is stopping. Or the answer to a
    question would be too late.
    """


@dataclass(slots=True, eq=False)
class Scheduled:
    """A training on a device, with the deadline `until`. `dropped` means that the training needs no further
    turn. `since` is when it began to wait for trainings with an earlier deadline, or None if it is not
    waiting. `before` is how many seconds it had waited before that.
    """

    until: float
    device: str = ""
    dropped: bool = False
    before: float = 0.0
    since: float | None = None

    def waited(self) -> float:
        """Seconds for which this training has waited for others so far."""
        since = self.since
        return self.before + (0.0 if since is None else time.monotonic() - since)


@dataclass(slots=True, eq=False)
class Question:
    """A stranger's question. It may rest until `until`. `since` is when its present piece of work began, and
    `device` is the device of its last turn.
    """

    until: float
    since: float
    device: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A request for a turn, for work with the deadline `by`. `asked` is its number in the order of requests.
    A request without a `device` is for the whole machine. `training` or `question` is what the work belongs
    to, if it belongs to one.
    """

    by: float
    asked: int = 0
    urgent: bool = False
    device: str = ""
    training: Scheduled | None = None
    question: Question | None = None

    @property
    def order(self) -> tuple[bool, float, int]:
        """Sort key: the request with the smallest key goes first."""
        return not self.urgent, self.by, self.asked

    def meets(self, other: Ask) -> bool:
        """Whether both requests need the same device."""
        return meet(self.device, other.device)


def meet(device: str, other: str) -> bool:
    """Whether two devices are the same, or one of them is the whole machine, which has no name."""
    return not (device and other) or device == other


def may_begin(ask: Ask, waiting: Iterable[Ask], running: Iterable[Ask], shared: bool) -> bool:
    """Whether it is this request's turn. No waiting request may come before it (`Ask.order`). If turns are
    shared, all running work must be due later than the request; if they are not, no work may be running.
    Requests for other devices do not count.
    """
    first = min(filter(ask.meets, waiting), key=lambda other: other.order, default=ask)
    return first is ask and all(shared and ask.by < other.by for other in filter(ask.meets, running))


@dataclass(slots=True)
class _Held:
    """A turn that a thread holds. `between` is called whenever that thread asks again inside the turn."""

    ask: Ask
    between: Callable[[], None] = field(default=lambda: None)


class Turns:
    """The turns of one machine. Callable from any thread. A thread that holds a turn may ask again inside it.
    After `close`, waiting for a turn raises Stopped. `clock` returns seconds.
    """

    def __init__(self, shared: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._shared = shared
        self._clock = clock
        self._rested = -math.inf
        """When questions have rested enough."""
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
        """Set the deadline of this thread's requests inside the block. Outside of such a block, requests have
        no deadline.
        """
        before, self._thread.by = self._by, by
        try:
            yield
        finally:
            self._thread.by = before

    @contextmanager
    def scheduled(self, training: Scheduled) -> Iterator[None]:
        """Inside the block, this thread's requests belong to a training. They wait for trainings on the same
        device with earlier deadlines. Once the training is dropped, a request raises Stopped.
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

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Inside the block, this thread answers a question of a stranger. The caller ensures that only one
        thread does so at a time.

        Everything that the thread does in the block counts as work, except waiting. After a piece of work on
        a device with a scheduled training, questions rest for `QUESTIONS_SHARE` - 1 times as long as the work
        took. During the rest, a question gets no turn on a device with a scheduled training, and no further
        question begins while any training is scheduled. Raises Stopped if the rest would end later than
        `QUESTION_SECONDS` after the question began.
        """
        now = self._clock()
        question = Question(now + QUESTION_SECONDS, now)
        with self._changed:
            self._await(Ask(math.inf, question=question), lambda: True)
        question.since = self._clock()
        self._thread.question = question
        try:
            yield
        finally:
            self._thread.question = None
            with self._changed:
                self._count(question)

    def drop(self, training: Scheduled) -> None:
        """Mark a training as needing no further turn. If the training is waiting for a turn, the wait raises
        Stopped.
        """
        with self._changed:
            training.dropped = True
            self._changed.notify_all()

    @contextmanager
    def urgent(self, between: Callable[[], None] = lambda: None, by: float = -math.inf) -> Iterator[None]:
        """Take the next turn, with the deadline `by`. Only urgent requests go first that are due earlier, or
        that are due at the same time and were made earlier. No ordinary turn begins until this one has ended.
        `between` is called before each step that runs in this turn, and may take another urgent turn.
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
        """Let no ordinary turn begin inside the block, so that urgent turns do not wait for ordinary steps."""
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
        """Take a turn. All urgent work goes before it, and so does other work that is due earlier, or that is
        due at the same time and was requested earlier. With a `device`, work on other devices does not count.
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
        """Let no further turn begin."""
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
            question = None if urgent else getattr(self._thread, "question", None)
            self._wait(_Held(Ask(by, self._asked, urgent, device, training, question)))
        try:
            yield
        finally:
            with self._changed:
                # A turn that `_make_way` gave up is not held again if its waiting raised Stopped.
                self._running.pop(get_ident(), None)
                self._changed.notify_all()

    def _wait(self, held: _Held) -> None:
        """Wait for a turn. Raises Stopped. The caller holds the lock."""
        self._waiting.append(held.ask)
        training, question = held.ask.training, held.ask.question
        if question is not None:
            self._count(question)
            question.device = held.ask.device
        if training is not None and self._is_later(held.ask):
            training.since = time.monotonic()
        try:
            self._await(held.ask, lambda: self._is_next(held.ask))
            self._running[get_ident()] = held
        finally:
            if training is not None and training.since is not None:
                training.before, training.since = training.waited(), None
            if question is not None:
                question.since = self._clock()
            self._waiting.remove(held.ask)
            self._changed.notify_all()

    def _await(self, ask: Ask, ready: Callable[[], bool]) -> None:
        """Wait until a request is `ready` and need not rest. Raises Stopped. The caller holds the lock."""
        while True:
            if self._is_over(ask):
                raise Stopped
            rest = self._rest(ask)
            if rest == 0.0 and ready():
                return
            if rest > 0.0 and ask.question is not None and self._rested > ask.question.until:
                raise Stopped
            self._changed.wait(rest or None)

    def _rest(self, ask: Ask) -> float:
        """Seconds that a request has to rest from now on. It is 0 if the request is for no question, or if no
        training is scheduled on its device.
        """
        if ask.question is None or not self._trains(ask.device):
            return 0.0
        return max(0.0, self._rested - self._clock())

    def _count(self, question: Question) -> None:
        """End a piece of a question's work. If a training is scheduled on the device of this work, let
        questions rest for `QUESTIONS_SHARE` - 1 times as long as the work took.
        """
        now = self._clock()
        if self._trains(question.device):
            self._rested = max(self._rested, now + (QUESTIONS_SHARE - 1) * (now - question.since))

    def _trains(self, device: str) -> bool:
        """Whether a training is scheduled on a device."""
        return any(meet(one.device, device) and not one.dropped for one in self._trainings)

    def _make_way(self, held: _Held) -> None:
        """If urgent work with an earlier deadline is waiting, give up the turn to that work and wait for the
        turn again.
        """
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
        waiting = (other for other in self._waiting if not self._is_later(other) and self._rest(other) == 0.0)
        return not barred and may_begin(ask, waiting, running, self._shared)

    def _is_later(self, ask: Ask) -> bool:
        """Whether another training on the same device has an earlier deadline than the training of this
        request. False if the request is not part of a training.
        """
        mine = ask.training
        if mine is None:
            return False
        beside = (one for one in self._trainings if one.device == mine.device and not one.dropped)
        return min(beside, key=lambda one: one.until, default=mine) is not mine


class InTurns:
    """An executor whose steps and traces each wait for an ordinary turn on its `device`.

    `note` is called with the seconds of each step, except on a GPU, where `step` returns before the step is
    computed. `count` is called after each step.
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
        self.device = device
        self._turns = turns
        self._note = note
        self._count = count

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold one turn while a step runs and while the caller handles the state after it."""
        with self._turns.ordinary(self.device):
            yield

    def step(self, state: State, number: int, /) -> State:
        """The state after the step. Raises Stopped and the executor's errors."""
        with self._turns.ordinary(self.device):
            begun = time.perf_counter()
            after = self._executor.step(state, number)
            if all(tensor.device.type == "cpu" for tensor in after.values()):
                self._note(time.perf_counter() - begun)
            self._count()
            return after

    def trace(self, state: State, number: int, /) -> Frame:
        """The trace of the step that `step` would run, with all its values. Raises Stopped and the executor's
        errors.
        """
        with self._turns.ordinary(self.device):
            return self._executor.trace(state, number)
