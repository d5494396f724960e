"""Turns at computing: the defence goes first, then the earliest deadline, then the earliest request."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier, Event, Thread
from time import monotonic, sleep

import pytest
import torch

from protocol.dispute.provider import Frame
from protocol.execution.replay import run_steps
from protocol.execution.turns import QUESTIONS_SHARE, InTurns, Scheduled, Stopped, Turns
from protocol.program.step import State

SECONDS = 20


def until(what: Callable[[], bool]) -> None:
    deadline = monotonic() + SECONDS
    while not what():
        assert monotonic() < deadline
        sleep(0.001)


class Threads:
    """Threads that ask for turns. `done` lists the names in the order of their turns."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.done: list[str] = []
        self._threads: list[Thread] = []

    def ask(self, name: str, *, urgent: bool = False, by: float = math.inf) -> None:
        """Start a thread that asks for a turn, and return once it waits."""
        turn = self.turns.urgent if urgent else self.turns.ordinary

        def run() -> None:
            with self.turns.due(by), turn():
                self.done.append(name)

        before = self._asking()
        self._threads.append(Thread(target=run))
        self._threads[-1].start()
        until(lambda: self._asking() > before)

    def _asking(self) -> int:
        return len(self.turns._waiting) + self.turns._urgent

    def join(self) -> list[str]:
        """Wait until all threads have had their turns."""
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive()
        return self.done


def test_between_urgent_turns_that_are_reserved_no_other_begins() -> None:
    threads = Threads(Turns())
    with threads.turns.reserved():
        threads.ask("trained")
        with threads.turns.urgent():
            pass
        with threads.turns.urgent():
            assert not threads.done
    assert threads.join() == ["trained"]


def test_what_is_urgent_goes_first_and_all_others_in_order() -> None:
    threads = Threads(Turns())
    with threads.turns.ordinary():
        for name in ("a", "b", "c"):
            threads.ask(name)
        threads.ask("defence", urgent=True)
    assert threads.join() == ["defence", "a", "b", "c"]


def test_what_is_due_first_goes_first_and_what_is_not_due_last() -> None:
    threads = Threads(Turns())
    with threads.turns.ordinary():
        threads.ask("trained")
        threads.ask("late", by=300.0)
        threads.ask("soon", by=100.0)
        threads.ask("late too", by=300.0)
    assert threads.join() == ["soon", "late", "late too", "trained"]


def test_shared_turns_begin_beside_a_step_that_is_due_later_and_beside_no_other() -> None:
    threads = Threads(Turns(shared=True))
    with threads.turns.due(200.0), threads.turns.ordinary():
        threads.ask("later", by=300.0)
        threads.ask("as soon", by=200.0)
        assert not threads.done
        soon = Thread(target=lambda: threads.done.append("soon") if turn_of(threads.turns, 100.0) else None)
        soon.start()
        soon.join(SECONDS)
        assert threads.done == ["soon"]
    assert threads.join() == ["soon", "as soon", "later"]


def turn_of(turns: Turns, by: float) -> bool:
    """Take a turn and give it back; always returns True."""
    with turns.due(by), turns.ordinary():
        return True


def test_a_deadline_is_for_as_long_as_it_is_said() -> None:
    turns = Turns()
    with turns.due(100.0):
        with turns.due(50.0):
            assert turns._by == 50.0
        assert turns._by == 100.0
    assert turns._by == math.inf


def test_between_the_steps_of_an_answer_another_may_be_given() -> None:
    turns, order = Turns(), list[str]()

    def make_way() -> None:
        order.append("way")
        if order.count("way") == 2:
            with turns.urgent(lambda: order.append("inner way")):
                for step in ("inner 1", "inner 2"):
                    with turns.ordinary():
                        order.append(step)

    with turns.urgent(make_way):
        for step in ("1", "2", "3"):
            with turns.ordinary():
                order.append(step)
    assert order == ["way", "1", "way", "inner way", "inner 1", "inner way", "inner 2", "2", "way", "3"]
    assert not turns._running


def test_of_two_defences_the_one_whose_answer_is_due_first_computes() -> None:
    """Two deployments have a thread each. Between two of its steps, a long answer yields to an answer that is
    due earlier.
    """
    turns, order = Turns(), list[str]()
    begun, waits = Event(), Event()

    def late() -> None:
        with turns.urgent(by=200.0):
            for step in ("late 1", "late 2", "late 3"):
                with turns.ordinary():
                    order.append(step)
                    begun.set()
                    waits.wait(SECONDS)

    def soon() -> None:
        with turns.urgent(by=100.0):
            for step in ("soon 1", "soon 2"):
                with turns.ordinary():
                    order.append(step)

    threads = [Thread(target=late), Thread(target=soon)]
    threads[0].start()
    assert begun.wait(SECONDS)
    threads[1].start()
    until(lambda: bool(turns._waiting))
    waits.set()
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["late 1", "soon 1", "soon 2", "late 2", "late 3"]


def test_a_replay_has_the_turn_for_each_step_and_what_is_done_about_its_state() -> None:
    turns = Turns()

    class Counting:
        def step(self, state: State, _number: int, /) -> State:
            return state

        def trace(self, state: State, _number: int, /) -> Frame:
            raise AssertionError(state)

    held = list[bool]()
    noted = list[float]()
    executor = InTurns(Counting(), turns, noted.append)
    run_steps(executor, {"x": torch.zeros(1)}, 1, 3, lambda _n, _s: held.append(bool(turns._running)))
    assert held == [True] * 3
    assert len(noted) == 3
    assert min(noted) >= 0


def test_no_step_begins_while_the_defence_computes_its_own() -> None:
    turns = Turns()
    order: list[str] = []
    begun, go = Event(), Event()

    class Noting:
        def __init__(self, name: str) -> None:
            self.name = name

        def step(self, state: State, _number: int, /) -> State:
            order.append(self.name)
            begun.set()
            return state

        def trace(self, state: State, _number: int, /) -> Frame:
            raise AssertionError(state)

    training, own = InTurns(Noting("training"), turns), InTurns(Noting("defence"), turns)
    state = {"x": torch.zeros(1)}

    def defend() -> None:
        with turns.urgent():
            own.step(state, 1)
            go.wait(SECONDS)
            own.step(state, 2)

    defence = Thread(target=defend)
    defence.start()
    assert begun.wait(SECONDS)
    trainer = Thread(target=training.step, args=(state, 1))
    trainer.start()
    until(lambda: bool(turns._waiting))
    go.set()
    defence.join(SECONDS)
    trainer.join(SECONDS)
    assert order == ["defence", "defence", "training"]


def test_an_error_gives_the_turn_back() -> None:
    turns = Turns()
    for turn in (turns.ordinary, turns.urgent):
        with pytest.raises(ZeroDivisionError), turn():
            raise ZeroDivisionError
    threads = Threads(turns)
    with turns.urgent():
        threads.ask("a")
    assert threads.join() == ["a"]


def test_closed_nobody_begins_who_waits_or_asks() -> None:
    turns = Turns()
    ended: list[str] = []

    def wait() -> None:
        with pytest.raises(Stopped), turns.ordinary():
            ended.append("computed")
        ended.append("stopped")

    with turns.ordinary():
        waiting = Thread(target=wait)
        waiting.start()
        until(lambda: bool(turns._waiting))
        turns.close()
        waiting.join(SECONDS)
    assert ended == ["stopped"]
    with pytest.raises(Stopped), turns.urgent():
        ended.append("computed")


def test_a_defence_that_has_made_way_stops_when_turns_close() -> None:
    turns = Turns()
    begun, waits, computes, closed = Event(), Event(), Event(), Event()
    ended: list[object] = []

    def late() -> None:
        try:
            with turns.urgent(by=200.0):
                begun.set()
                waits.wait(SECONDS)
                with turns.ordinary():
                    ended.append("computed")
        except Exception as error:
            ended.append(type(error))

    def soon() -> None:
        with turns.urgent(by=100.0):
            computes.set()
            closed.wait(SECONDS)

    threads = [Thread(target=late), Thread(target=soon)]
    threads[0].start()
    assert begun.wait(SECONDS)
    threads[1].start()
    until(lambda: bool(turns._waiting))
    waits.set()
    assert computes.wait(SECONDS)
    turns.close()
    threads[0].join(SECONDS)
    assert ended == [Stopped]
    closed.set()
    threads[1].join(SECONDS)
    assert not turns._running


class Trainings:
    """Trainings on threads. `done` lists, for each step in order, the name of the step's training."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.done: list[str] = []
        self.stopped: list[str] = []
        self._threads: list[Thread] = []

    def begin(self, name: str, training: Scheduled, steps: int, inside: Callable[[], object]) -> None:
        """Start a training, and return once it is registered. Each step calls `inside`."""
        registered = Event()

        def run() -> None:
            try:
                with self.turns.scheduled(training):
                    registered.set()
                    for _ in range(steps):
                        with self.turns.ordinary(training.device):
                            inside()
                            self.done.append(name)
            except Stopped:
                self.stopped.append(name)

        self._threads.append(Thread(target=run))
        self._threads[-1].start()
        assert registered.wait(SECONDS)

    def join(self) -> list[str]:
        """Wait until all trainings have ended."""
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive()
        return self.done


def nothing() -> None:
    """A step that takes no time."""


def test_of_several_trainings_the_one_with_the_earliest_deadline_has_every_step() -> None:
    trainings = Trainings()
    with trainings.turns.ordinary():
        for name, deadline in (("late", 30), ("first", 10), ("second", 20)):
            trainings.begin(name, Scheduled(deadline), 3, nothing)
    assert trainings.join() == ["first"] * 3 + ["second"] * 3 + ["late"] * 3


def test_a_training_that_begins_goes_before_one_with_a_later_deadline_at_its_next_step() -> None:
    trainings, begun, go = Trainings(), Event(), Event()

    def held() -> None:
        begun.set()
        assert go.wait(SECONDS)

    trainings.begin("late", Scheduled(30), 2, held)
    assert begun.wait(SECONDS)
    trainings.begin("first", Scheduled(10), 2, nothing)
    go.set()
    assert trainings.join() == ["late", "first", "first", "late"]


def test_a_training_that_waits_keeps_nobody_else_from_a_turn() -> None:
    """A training that waits for another one does not block an answer, even if the training asked first."""
    trainings, begun, go = Trainings(), Event(), Event()

    def held() -> None:
        begun.set()
        assert go.wait(SECONDS)

    trainings.begin("first", Scheduled(10), 1, held)
    assert begun.wait(SECONDS)
    trainings.begin("late", Scheduled(20), 1, nothing)
    until(lambda: len(trainings.turns._waiting) == 1)
    threads = Threads(trainings.turns)
    threads.ask("answer")
    go.set()
    threads.join()
    assert trainings.join() == ["first", "late"]


def test_a_training_on_another_device_computes_beside() -> None:
    """Each step waits for a step of the other training, so taking turns would deadlock."""
    trainings, both = Trainings(), Barrier(2, timeout=SECONDS)
    trainings.begin("a", Scheduled(10, "cuda:0"), 5, both.wait)
    trainings.begin("b", Scheduled(20, "cuda:1"), 5, both.wait)
    assert sorted(trainings.join()) == ["a"] * 5 + ["b"] * 5


def test_what_names_no_device_has_the_machine_for_itself() -> None:
    trainings, begun, go = Trainings(), Event(), Event()

    def held() -> None:
        begun.set()
        assert go.wait(SECONDS)

    trainings.begin("a", Scheduled(10, "cuda:0"), 1, held)
    assert begun.wait(SECONDS)
    threads = Threads(trainings.turns)
    threads.ask("defence", urgent=True)
    assert not threads.done
    go.set()
    assert threads.join() == ["defence"]
    trainings.join()


def test_a_dropped_training_that_waits_ends_at_once() -> None:
    trainings, begun, go = Trainings(), Event(), Event()

    def held() -> None:
        begun.set()
        assert go.wait(SECONDS)

    trainings.begin("first", Scheduled(10), 1, held)
    assert begun.wait(SECONDS)
    dropped = Scheduled(20)
    trainings.begin("dropped", dropped, 1, nothing)
    trainings.turns.drop(dropped)
    until(lambda: trainings.stopped == ["dropped"])
    assert not trainings.done
    go.set()
    assert trainings.join() == ["first"]


def test_a_training_knows_how_long_others_went_first() -> None:
    trainings, begun, go = Trainings(), Event(), Event()

    def held() -> None:
        begun.set()
        assert go.wait(SECONDS)

    first, late = Scheduled(10), Scheduled(20)
    trainings.begin("first", first, 1, held)
    assert begun.wait(SECONDS)
    trainings.begin("late", late, 1, nothing)
    until(lambda: late.waited() > 0)
    before = late.waited()
    until(lambda: late.waited() > before)
    go.set()
    trainings.join()
    waited = late.waited()
    assert waited > before
    assert (late.since, late.waited(), first.waited()) == (None, waited, 0.0)


class Clock:
    """A clock that goes forward only when it is told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        """Let work of some seconds pass."""
        self.now += seconds


class Questions:
    """Questions of strangers. Each is answered on a thread other than the caller's."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.turns = Turns(clock=self.clock)

    def ask(self, seconds: float, device: str = "", outside: float = 0.0) -> bool:
        """Answer a question by a turn of some seconds and by work `outside` of turns. Returns whether it was
        answered.
        """

        def answer() -> None:
            with self.turns.asked():
                self.clock.work(outside)
                with self.turns.ordinary(device):
                    self.clock.work(seconds)

        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(answer)
            try:
                asked.result(SECONDS)
            except Stopped:
                return False
            return True


def test_questions_take_a_tenth_of_a_trainings_time() -> None:
    """Without rests between them, they take half."""
    clock, steps, answered, trained = Clock(), 100, list[float](), Event()
    turns = Turns(clock=clock)

    def train() -> None:
        with turns.scheduled(Scheduled(1000.0)):
            begun.wait()
            for _ in range(steps):
                with turns.ordinary():
                    until(lambda: bool(vars(turns._changed)["_waiters"]))  # the other thread rests or waits
                    clock.work(1.0)
            trained.set()

    def asks() -> None:
        begun.wait()
        while not trained.is_set():
            with turns.asked(), turns.ordinary():
                clock.work(1.0)
                answered.append(clock.now)

    begun = Barrier(2, timeout=SECONDS)
    threads = [Thread(target=train), Thread(target=asks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    beside = [at for at in answered if at < steps]
    assert steps // (2 * QUESTIONS_SHARE) < len(beside) <= steps // QUESTIONS_SHARE
    assert min(b - a for a, b in pairwise(beside)) >= QUESTIONS_SHARE


def test_after_a_long_piece_of_work_questions_are_refused_until_they_have_rested() -> None:
    questions = Questions()
    with questions.turns.scheduled(Scheduled(1000.0)):
        assert questions.ask(10.0)
        assert not questions.ask(1.0)
        questions.clock.work(59.0)
        assert not questions.ask(1.0), "90 s are its rest"
        questions.clock.work(31.0)
        assert questions.ask(1.0)


def test_the_steps_of_one_question_rest_as_well() -> None:
    questions, done = Questions(), list[float]()
    with questions.turns.scheduled(Scheduled(1000.0)):

        def answer() -> None:
            with questions.turns.asked():
                for _ in range(2):
                    with questions.turns.ordinary():
                        questions.clock.work(10.0)
                        done.append(questions.clock.now)

        with ThreadPoolExecutor(1) as threads, pytest.raises(Stopped):
            threads.submit(answer).result(SECONDS)
    assert done == [10.0]


def test_work_outside_of_turns_counts_and_waiting_does_not() -> None:
    """Checkpoints are read and hashed outside of turns."""
    questions = Questions()
    with questions.turns.scheduled(Scheduled(1000.0)):
        assert not questions.ask(0.0, outside=10.0), "it has to rest before its turn"
        questions.clock.work(90.0)
        assert questions.ask(0.0)
        assert questions.ask(0.0)


def test_while_nothing_is_trained_questions_do_not_rest() -> None:
    questions, dropped = Questions(), Scheduled(1000.0)
    assert questions.ask(1000.0)
    with questions.turns.scheduled(dropped):
        assert questions.ask(10.0), "earlier questions took no time from this training"
        questions.turns.drop(dropped)
        assert questions.ask(10.0)
    assert questions.ask(10.0)


def test_on_a_device_without_a_training_questions_do_not_rest() -> None:
    questions = Questions()
    with questions.turns.scheduled(Scheduled(1000.0, "cuda:0")):
        assert questions.ask(10.0, "cuda:1")
        assert questions.ask(10.0, "cuda:1")
        assert questions.ask(10.0, "cuda:0")
        assert not questions.ask(10.0, "cuda:0")


@pytest.mark.parametrize("what", ["the training ends", "it is dropped", "turns are closed"])
def test_a_question_rests_no_longer_than_a_training_goes_on(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, ended, rests = Questions(), list[bool](), Event()
    training = Scheduled(1000.0)
    asked = Thread(target=lambda: ended.append(questions.ask(1.0)))
    with questions.turns.scheduled(training):
        assert questions.ask(3.0)
        note_rests(monkeypatch, questions.turns, rests)
        asked.start()
        assert rests.wait(SECONDS)
        assert not ended
        if what == "it is dropped":
            questions.turns.drop(training)
            asked.join(SECONDS)
        if what == "turns are closed":
            questions.turns.close()
            asked.join(SECONDS)
    asked.join(SECONDS)
    assert ended == [what != "turns are closed"]


def note_rests(monkeypatch: pytest.MonkeyPatch, turns: Turns, rests: Event) -> None:
    """Set `rests` as soon as a question rests. Only rests have a time limit."""
    wait = turns._changed.wait

    def noting(timeout: float | None = None) -> bool:
        if timeout is not None:
            rests.set()
        return wait(timeout)

    monkeypatch.setattr(turns._changed, "wait", noting)


def test_a_question_that_rests_keeps_nobody_from_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds its place in the order, but others go before it until it has rested."""
    questions, rests = Questions(), Event()
    turns = questions.turns

    def answer() -> None:
        with turns.asked():
            for _ in range(2):
                with turns.ordinary():
                    questions.clock.work(3.0)

    with turns.scheduled(Scheduled(1000.0)):
        note_rests(monkeypatch, turns, rests)
        asked = Thread(target=answer)
        asked.start()
        assert rests.wait(SECONDS)
        threads = Threads(turns)
        with turns.ordinary():
            threads.ask("later")
        assert threads.join() == ["later"]
        with turns.urgent():
            assert asked.is_alive()
    asked.join(SECONDS)
    assert not asked.is_alive()


def test_the_defence_never_rests() -> None:
    questions = Questions()
    with questions.turns.scheduled(Scheduled(1000.0)):
        assert questions.ask(10.0)

        def defend() -> float:
            with questions.turns.urgent():
                for _ in range(3):
                    with questions.turns.ordinary():
                        questions.clock.work(5.0)
            return questions.clock.now

        with ThreadPoolExecutor(1) as threads:
            assert threads.submit(defend).result(SECONDS) == 25.0
            assert threads.submit(defend).result(SECONDS) == 40.0
