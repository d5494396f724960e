"""Parallel items: results come in order, the earliest error is raised, and nothing begins after it."""

from __future__ import annotations

import threading
from time import sleep

import pytest

from protocol.commitments.threads import each


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    def slower_first(n: int) -> int:
        sleep((20 - n) / 2000)
        return n * n

    assert each(slower_first, range(20), threads) == [n * n for n in range(20)]
    assert each(slower_first, [], threads) == []


def test_as_many_threads_as_asked_for_work_at_a_time() -> None:
    meeting = threading.Barrier(3, timeout=20)
    assert len(each(lambda _n: meeting.wait(), range(6), threads=3)) == 6


def test_the_earliest_error_is_raised_and_nothing_begun_after_it() -> None:
    begun: list[int] = []
    both = threading.Barrier(2, timeout=20)

    def fails(n: int) -> None:
        begun.append(n)
        both.wait()
        sleep(0.05 * (1 - n))  # the later item fails first
        raise ValueError(n)

    with pytest.raises(ValueError, match=r"^0$"):
        each(fails, range(50), threads=2)
    assert sorted(begun) == [0, 1]


def test_one_thread_is_the_callers_own() -> None:
    assert each(lambda _n: threading.current_thread(), range(3), 1) == [threading.current_thread()] * 3
