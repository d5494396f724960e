"""Delays befall the chosen threads alone, and no test unless they are asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from protocol.chain.rpc import Nodes
from tests import delays


@pytest.mark.parametrize("main", [True, False])
def test_calls_of_the_chosen_threads_are_late(monkeypatch: pytest.MonkeyPatch, main: bool) -> None:
    slept: list[float] = []
    monkeypatch.setattr(delays, "SHARE", 0.5)
    monkeypatch.setattr(delays, "sleep", slept.append)
    late = delays.delayed(lambda x: x + 1, main=main)
    assert [late(k) for k in range(100)] == list(range(1, 101))
    here = len(slept)
    with ThreadPoolExecutor(1) as pool:
        assert list(pool.map(late, range(100))) == list(range(1, 101))
    counts = here, len(slept) - here
    late_ones, prompt = counts if main else counts[::-1]
    assert (20 < late_ones < 80, prompt) == (True, 0)
    assert all(0 <= seconds < delays.LONGEST for seconds in slept)


def test_requests_are_late_only_with_the_option(request: pytest.FixtureRequest) -> None:
    is_late = [hasattr(getattr(Nodes, name), "__wrapped__") for name in ("ask", "ask_all", "broadcast")]
    assert is_late == [request.config.getoption("--delays") is not None] * 3
