"""Criteria and output of a soak, from invented samples."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import requests

from benchmarks.soak import report
from benchmarks.soak.criteria import GROWTH, LEAST, MIB, criteria, per_task, slope
from benchmarks.soak.plan import Plan
from benchmarks.soak.proxy import Proxies
from benchmarks.soak.samples import Idle, Party, Sample, Samples
from benchmarks.soak.usage import usage_of

PARTY = Party(300 * MIB, 200 * MIB, 20, 10, 5.0, 4096, 8192, 100)
TASKS = 30
PLAN = Plan(tasks=TASKS, processes=1, accounts=3)


def samples(of: Callable[[int], Party], session: int = 1, tasks: range = range(1, TASKS + 1)) -> list[Sample]:
    """A session's samples. `of` gives the verifier's usage after each task."""
    return [
        Sample(session, n, "settled", n, 60.0 * n, n, 10**8, {"solver": PARTY, "verifier-1": of(n)})
        for n in tasks
    ]


def found(path: Path, *given: Sample | Idle) -> Samples:
    """Write the given samples to a file in the folder `path`, as a soak writes the samples that it measures.
    Returns the file's `Samples`.
    """
    made = Samples(path / "samples.jsonl")
    for one in given:
        made.write(one)
    return made


@pytest.mark.parametrize(
    ("field", "growth", "passes"),
    [
        ("resident", 0.09 * MIB, True),
        ("resident", 0.11 * MIB, False),
        ("files", 0.1, False),
        ("threads", 0.1, False),
        ("database", 10**6, True),
    ],
)
def test_what_grows_with_every_task_fails(tmp_path: Path, field: str, growth: float, passes: bool) -> None:
    def of(task: int) -> Party:
        return replace(PARTY, **{field: round(getattr(PARTY, field) + growth * task)})

    judged = criteria(found(tmp_path, *samples(of)))
    assert len(judged) == 3
    assert all(one.passed for one in judged) is passes
    failed = [one for one in judged if not one.passed]
    assert all(one.party == "verifier-1" and "FAILED" in one.line for one in failed)


def test_what_grows_until_a_third_of_the_tasks_is_done_does_not_fail(tmp_path: Path) -> None:
    judged = criteria(
        found(tmp_path, *samples(lambda task: replace(PARTY, resident=(300 + min(task, 10)) * MIB)))
    )
    assert all(one.passed for one in judged)


def test_sessions_are_judged_apart(tmp_path: Path) -> None:
    """A session in which memory grows fails, even if memory does not grow in a later session, after a restart."""

    def growing(task: int) -> Party:
        return replace(PARTY, resident=(300 + task) * MIB)

    first, second = range(1, TASKS + 1), range(TASKS + 1, 2 * TASKS + 1)
    rows = [*samples(growing, 1, first), *samples(lambda _: PARTY, 2, second)]
    passed = {one.what: one.passed for one in criteria(found(tmp_path, *rows)) if "memory" in one.what}
    assert list(passed.values()) == [False, True]


def test_a_session_of_few_tasks_is_not_judged_by_slopes(tmp_path: Path) -> None:
    few = samples(lambda task: replace(PARTY, resident=task * 100 * MIB), tasks=range(1, LEAST))
    assert criteria(found(tmp_path, *few)) == []


@pytest.mark.parametrize(("calls", "passes"), [(60, True), (61, False)])
def test_an_idle_process_may_ask_twice_a_block(tmp_path: Path, calls: int, passes: bool) -> None:
    idle = Idle(
        1, 0, 30, {"solver": {"eth_call": 1}, "verifier-1": {"eth_call": 30, "eth_chainId": calls - 30}}
    )
    (one,) = criteria(found(tmp_path, idle))
    assert (one.passed, one.party, one.value) == (passes, "verifier-1", calls / 30)


def test_samples_outlive_a_session(tmp_path: Path) -> None:
    kept = found(tmp_path, Idle(1, 0, 30, {"solver": {"eth_call": 1}}), *samples(lambda _: PARTY))
    again = Samples.read(kept.path)
    assert (again.samples, again.idle) == (kept.samples, kept.idle)
    assert (again.session, again.finished) == (1, list(range(1, TASKS + 1)))
    assert (Samples.read(tmp_path / "none").session, Samples.read(tmp_path / "none").finished) == (0, [])


def test_sizes_for_each_task() -> None:
    rows = samples(lambda task: replace(PARTY, database=1000 + 50 * task))
    assert per_task(rows, "verifier-1", lambda party: party.database) == 50
    assert slope(rows, "verifier-1", lambda party: party.database) == pytest.approx(50)
    assert per_task(rows, "solver", lambda party: party.database) == 0


def test_what_failed_is_said_in_the_table(tmp_path: Path) -> None:
    rows = report.rows(PLAN, found(tmp_path, *samples(lambda task: replace(PARTY, resident=task * MIB))))
    (memory,) = (row for row in rows if "resident memory, MiB" in row.what)
    assert memory.value == "10.00 (verifier-1): FAILED"
    assert memory.goal == f"{GROWTH:g}"


def test_every_tenth_task_is_trained_by_a_cheat() -> None:
    plan = Plan()
    false = [task for task in range(1, plan.tasks + 1) if plan.is_false(task)]
    assert false == list(range(5, 101, 10))
    assert sorted([*false, *plan.honest]) == list(range(1, 101))
    accounts = [account for group in plan.verifiers.values() for account in group]
    assert len(set(accounts)) == 50
    assert (min(accounts), max(accounts)) == (3, 52)


class Node(BaseHTTPRequestHandler):
    """Echoes each request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def node() -> Iterator[str]:
    """Run the echoing node and yield its address."""
    with HTTPServer(("127.0.0.1", 0), Node) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_the_proxy_counts_every_question_of_its_own_party() -> None:
    asked: list[Any] = [
        {"id": 1, "method": "eth_call"},
        {"id": 2, "method": "eth_call"},
        {"id": 3, "method": "eth_chainId"},
    ]
    with node() as url, Proxies(url, ["solver", "verifier-1"]) as proxies, requests.Session() as session:
        for one in (asked[0], asked):
            assert session.post(proxies.urls["solver"], json=one, timeout=10).json() == one
        assert proxies.counts() == {
            "solver": Counter({"eth_call": 3, "eth_chainId": 1}),
            "verifier-1": Counter(),
        }


def test_what_this_process_takes() -> None:
    before = usage_of(os.getpid())
    with Path(__file__).open():
        after = usage_of(os.getpid())
    assert after.files == before.files + 1
    assert 0 < after.anonymous < after.resident
    assert after.threads >= 1


def test_the_figure_is_what_was_measured(tmp_path: Path) -> None:
    if not report.DATA.is_file():  # no soak has been recorded
        assert not report.FIGURE.exists()
        return
    kept = json.loads(report.DATA.read_text())
    rows = [
        Sample(**{**one, "parties": {name: Party(**party) for name, party in one["parties"].items()}})
        for one in kept["samples"]
    ]
    report.plot(rows, tmp_path / "soak.svg")
    assert (tmp_path / "soak.svg").read_bytes() == report.FIGURE.read_bytes()
