"""Jobs beside the loop: one per key, bounded, rested after failures."""

from __future__ import annotations

from threading import Event

from verifier.jobs import Jobs


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def fails() -> None:
    raise ValueError("as it must")


def test_a_key_runs_once_at_a_time_and_again_when_it_is_done() -> None:
    jobs, go = Jobs(4, 60), Event()
    assert jobs.offer("a", lambda: (go.wait(5), None)[1])
    assert not jobs.offer("a", go.set)
    assert "a" in jobs
    go.set()
    jobs.wait()
    assert jobs.collect() == []
    assert jobs.offer("a", go.set)
    jobs.wait()


def test_no_more_jobs_than_workers() -> None:
    jobs, go = Jobs(2, 60), Event()
    started = [jobs.offer(key, lambda: (go.wait(5), None)[1]) for key in "abc"]
    assert started == [True, True, False]
    assert jobs.full
    go.set()
    jobs.wait()
    jobs.collect()
    assert jobs.busy == 0


def test_a_failure_rests_twice_as_long_each_time_up_to_the_longest() -> None:
    clock = Clock()
    jobs = Jobs(1, 2.0, clock)
    for rest in (0.5, 1.0, 2.0, 2.0):
        assert jobs.offer("a", fails)
        jobs.wait()
        ((key, error),) = jobs.collect()
        assert (key, str(error)) == ("a", "as it must")
        clock.now += rest - 0.01
        assert not jobs.offer("a", fails)
        clock.now += 0.01


def test_a_success_ends_the_rests() -> None:
    clock = Clock()
    jobs = Jobs(1, 60, clock)
    for work in (fails, fails, lambda: None, fails):
        clock.now += 100
        assert jobs.offer("a", work)
        jobs.wait()
        jobs.collect()
    clock.now += 0.5
    assert jobs.offer("a", lambda: None)
    jobs.wait()


def test_a_failure_of_one_key_does_not_hold_up_another() -> None:
    clock = Clock()
    jobs = Jobs(1, 60, clock)
    jobs.offer("a", fails)
    jobs.wait()
    jobs.collect()
    assert jobs.offer("b", lambda: None)
    jobs.wait()
