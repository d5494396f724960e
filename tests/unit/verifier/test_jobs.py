"""Jobs beside the loop: one per key, a bounded number, and pauses after a task's failures."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import partial
from threading import Event

import pytest

from protocol.execution.turns import Turns
from verifier.jobs import DOUBLED, FIRST_REST, Job, Jobs, Rests


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def takes(self, seconds: float, work: Callable[[], None]) -> Callable[[], None]:
        """A function that lets `seconds` pass on the clock, and then does `work`."""

        def slow() -> None:
            self.now += seconds
            work()

        return slow


def fails() -> None:
    raise ValueError("as it must")


def fine() -> None:
    pass


def test_a_key_runs_once_at_a_time_and_again_when_it_is_done() -> None:
    jobs, go = Jobs(4, 60), Event()
    assert jobs.offer(Job(1, "a", lambda: (go.wait(5), None)[1]))
    assert not jobs.offer(Job(1, "a", go.set))
    assert (1, "a") in jobs
    go.set()
    jobs.wait()
    assert jobs.collect() == []
    assert jobs.offer(Job(1, "a", go.set))
    jobs.close()


def test_no_more_jobs_than_workers() -> None:
    jobs, go = Jobs(2, 60), Event()
    started = [jobs.offer(Job(1, what, lambda: (go.wait(5), None)[1])) for what in "abc"]
    assert started == [True, True, False]
    assert jobs.full
    go.set()
    jobs.wait()
    jobs.collect()
    assert jobs.busy == 0
    jobs.close()


def test_what_is_due_before_all_that_runs_needs_no_worker() -> None:
    jobs, go = Jobs(2, 60), Event()
    wait = lambda: (go.wait(5), None)[1]  # noqa: E731
    for what, until, started in (
        ("a", 100.0, True),
        ("b", 50.0, True),
        ("c", 70.0, False),
        ("d", 50.0, False),
        ("e", 40.0, True),
        ("f", math.inf, False),
    ):
        assert jobs.offer(Job(1, what, wait, until)) == started, what
    assert jobs.busy == 3
    go.set()
    jobs.close()


def test_a_free_worker_takes_what_is_due_first_of_what_found_none() -> None:
    jobs, go, done = Jobs(1, 60, queued=True), Event(), list[str]()
    assert jobs.offer(Job(1, "a", lambda: (go.wait(5), None)[1], 10.0))
    for what, until in (("b", 200.0), ("c", math.inf), ("d", math.inf), ("e", 100.0)):
        assert not jobs.offer(Job(2, what, partial(done.append, what), until))
    go.set()
    until_all = time.monotonic() + 5
    while len(done) < 4:
        assert time.monotonic() < until_all
        time.sleep(0.001)
    assert done == ["e", "b", "c", "d"]
    jobs.close()


def test_what_waits_is_forgotten_at_the_next_look_and_where_its_task_has_failed() -> None:
    jobs, go, done = Jobs(1, 60, queued=True), Event(), list[str]()

    def fails_later() -> None:
        go.wait(5)
        raise ValueError("as it must")

    jobs.offer(Job(1, "a", fails_later))
    jobs.offer(Job(1, "b", partial(done.append, "b")))
    go.set()
    jobs.wait()
    assert [failure.what for failure in jobs.collect()] == ["a"]
    go.clear()
    jobs.offer(Job(2, "a", lambda: (go.wait(5), None)[1]))
    jobs.offer(Job(2, "b", partial(done.append, "b")))
    assert jobs.collect() == []
    go.set()
    jobs.close()
    assert done == []


def test_a_job_computes_by_when_it_is_due() -> None:
    turns, seen = Turns(shared=True), list[float]()
    jobs = Jobs(1, 60, due=turns.due)
    jobs.offer(Job(1, "a", lambda: seen.append(turns._by), 70.0))
    jobs.close()
    assert seen == [70.0]


@pytest.mark.parametrize(("took", "longest", "rest"), [(0, 60, FIRST_REST), (7, 60, 7), (100, 60, 60)])
def test_a_task_rests_as_long_as_its_failure_took(took: float, longest: float, rest: float) -> None:
    clock = Clock()
    jobs = Jobs(1, longest, clock)
    assert jobs.offer(Job(1, "a", clock.takes(took, fails)))
    jobs.wait()
    ((task, what, error, seconds),) = jobs.collect()
    assert (task, what, str(error), seconds) == (1, "a", "as it must", took)
    assert jobs.rests.lost(1) == took
    clock.now += rest - 0.01
    assert not jobs.offer(Job(1, "b", fine)), "all of its task rests"
    clock.now += 0.02
    assert jobs.offer(Job(1, "b", fine))
    jobs.close()


def test_quick_failures_rest_twice_as_long_each_time() -> None:
    clock = Clock()
    rests = Rests(60, clock)
    expected = FIRST_REST
    for _ in range(8):
        rests.failed(1, 0)
        clock.now += expected - 0.01
        assert rests.resting(1)
        clock.now += 0.02
        assert not rests.resting(1)
        expected = min(2 * expected, DOUBLED)
    assert expected == DOUBLED


def test_a_success_ends_the_rests_and_forgets_no_time_lost() -> None:
    clock = Clock()
    rests = Rests(60, clock)
    rests.failed(1, 3)
    rests.failed(1, 3)
    rests.succeeded(1)
    assert not rests.resting(1)
    assert rests.lost(1) == 6
    rests.failed(1, 0)
    clock.now += FIRST_REST
    assert not rests.resting(1)
    rests.forget(1)
    assert rests.lost(1) == 0


def test_a_failure_of_one_task_does_not_hold_up_another() -> None:
    clock = Clock()
    jobs = Jobs(1, 60, clock)
    jobs.offer(Job(1, "a", fails))
    jobs.wait()
    jobs.collect()
    assert jobs.offer(Job(2, "a", fine))
    jobs.close()


def test_threads_end_with_jobs_that_nobody_waits_for() -> None:
    jobs, go = Jobs(1, 60), Event()
    jobs.offer(Job(1, "a", lambda: (go.wait(5), None)[1]))
    jobs.abandon()
    assert jobs.busy
    go.set()
    jobs.close()


def test_threads_end_that_have_nothing_to_do_and_others_begin() -> None:
    jobs, go, before = Jobs(4, 60, idle=0.01), Event(), set(threading.enumerate())

    def begun() -> set[threading.Thread]:
        return set(threading.enumerate()) - before

    for round_ in range(3):
        go.clear()
        for what in "abc":
            assert jobs.offer(Job(round_, what, lambda: (go.wait(5), None)[1]))
        assert len(begun()) == 3
        go.set()
        jobs.wait()
        assert jobs.collect() == []
        while begun():
            time.sleep(0.001)
    jobs.close()
