"""The time that a seat loses to sources that are slow or serve uncommitted bytes."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from protocol.commitments import BlobStore
from protocol.node.addresses import parsed
from protocol.node.database import Identity
from protocol.node.reach import Reach
from protocol.program.step import State
from tests.timing import require_quick
from tests.unit.node.servers import Handler, answers, serving
from tests.unit.solver import tiny
from tests.unit.verifier.test_replaying import (
    EXECUTOR,
    HONEST,
    PROGRAM,
    canonical,
    checkpoint_roots,
    committed,
)
from verifier.database import Database
from verifier.errors import Unserved
from verifier.replaying import Replayer
from verifier.solver_client import Shapes, SolverClient
from verifier.states import States

LONGEST = 0.5
"""Maximum seconds for one checkpoint that comes too slowly."""
PLENTY = 60.0
ROOTS = b"".join(checkpoint_roots(HONEST))
COMMITTED = committed(HONEST)


def checkpoints(what: Callable[[int], State], before: Callable[[], None] = lambda: None) -> Handler:
    """A handler that serves the committed roots and checkpoints. For a request of checkpoint `number`, it
    first calls `before`, then serves the state `what(number)`.
    """

    def talk(connection: socket.socket, target: str) -> None:
        if target.endswith("/segments"):
            answers(ROOTS)(connection, target)
            return
        before()
        *_, number, _, group = target.split("/")
        assert group == "0"
        answers(b"".join(canonical(what(int(number)))))(connection, target)

    return talk


def true(number: int) -> State:
    return HONEST[number * tiny.STEPS]


def false(_number: int) -> State:
    """A false state of the right length."""
    return HONEST[1]


def client(url: str, longest: float = math.inf) -> SolverClient:
    shapes = Shapes(PROGRAM, tiny.SEGMENTS, tiny.STEPS)
    return SolverClient(parsed(url), tiny.TASK, shapes, PLENTY, Reach(), longest)


def replayer(folder: Path, solver: SolverClient, others: Sequence[SolverClient] = ()) -> Replayer:
    database = Database(folder / "verifier.sqlite", Identity("a", "b", "c"))
    store = BlobStore(folder / "blobs")
    states = States(tiny.TASK, PROGRAM, EXECUTOR, tiny.STEPS, tiny.initial, database, store)
    return Replayer(PROGRAM, EXECUTOR, tiny.STEPS, states, solver, lambda: others)


def test_what_is_withheld_is_noted_before_the_next_item_is_asked_for(tmp_path: Path) -> None:
    asked, goes_on = threading.Event(), threading.Event()

    def second(number: int) -> State:
        if number == 2:
            asked.set()
            assert goes_on.wait(30)
        return false(number)

    with serving(checkpoints(second)) as server:
        shapes = Shapes(PROGRAM, tiny.SEGMENTS, tiny.STEPS)
        solver = SolverClient(parsed(server.url), tiny.TASK, shapes, PLENTY, Reach())
        found = replayer(tmp_path, solver)

        def ask() -> None:
            with pytest.raises(Unserved):
                found.ask(COMMITTED, [2, 3])

        thread = threading.Thread(target=ask)
        assert found.awaited(COMMITTED) == 0
        thread.start()
        try:
            assert asked.wait(30)
            assert found.has_withheld(COMMITTED)
            assert found.awaited(COMMITTED) > 0
        finally:
            goes_on.set()
            thread.join()


def test_a_checkpoint_takes_no_longer_than_its_share_however_large_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("verifier.solver_client.LEAST_RATE", 1)  # 20 minutes for the 1,204 bytes

    def trickles(connection: socket.socket, _target: str) -> None:
        connection.sendall(f"HTTP/1.1 200 OK\r\ncontent-length: {tiny.WEIGHTS.nbytes}\r\n\r\n".encode())
        while True:
            connection.sendall(b"h")
            time.sleep(0.05)

    with serving(trickles) as server:

        def asked() -> None:
            assert client(server.url, LONGEST).checkpoint(1) is None

        require_quick(8 * LONGEST, asked)


def test_after_its_time_a_job_begins_with_nothing_more(tmp_path: Path) -> None:
    with serving(checkpoints(true)) as server:
        found = replayer(tmp_path, client(server.url))
        found.ask(COMMITTED, [2, 3], seconds=0)
        assert found.is_here(COMMITTED, 2)
        assert not found.is_here(COMMITTED, 3)
        assert not found.has_withheld(COMMITTED), "nobody was asked for it"
        found.ask(COMMITTED, [3])
        assert found.is_here(COMMITTED, 3)


def test_who_sent_something_else_rests_while_anybody_else_is_left(tmp_path: Path) -> None:
    with serving(checkpoints(false)) as hostile, serving(checkpoints(true)) as honest:
        others: list[SolverClient] = []
        found = replayer(tmp_path, client(hostile.url), others)
        for _ in range(2):
            with pytest.raises(Unserved):
                found.ask(COMMITTED, [2])
        sent = len(hostile.targets)
        assert sum("/groups/0" in target for target in hostile.targets) == 2, "nobody else was left"
        others.append(client(honest.url))
        found.ask(COMMITTED, [2, 3, 4])
        assert all(found.is_here(COMMITTED, segment) for segment in (2, 3, 4))
        assert len(hostile.targets) == sent


class Empty:
    """Stub states: nothing is on this machine."""

    def commitment(self, _root: bytes) -> tuple[bytes, ...]:
        return ()


class Noting:
    """A source that has nothing, and notes that it was asked."""

    def __init__(self, name: str, asked: list[str]) -> None:
        self._name, self._asked = name, asked

    def segment_roots(self) -> None:
        self._asked.append(self._name)


def test_once_the_solver_did_not_serve_others_come_first_in_no_order_of_theirs() -> None:
    """Once the solver has failed to serve, the other sources are asked before it, in random order. If they
    were always asked in the order of their votes, accomplices that voted first could use up the seat's time
    one after the other.
    """
    asked: list[str] = []
    first = set()
    for _ in range(16):
        asked.clear()
        solver, *others = [cast(SolverClient, Noting(name, asked)) for name in ("solver", "one", "other")]
        found = Replayer(PROGRAM, EXECUTOR, tiny.STEPS, cast(States, Empty()), solver, partial(tuple, others))
        for _ in range(2):
            with pytest.raises(Unserved):
                found.ask(COMMITTED, [2])
        assert (asked[0], asked[-1]) == ("solver", "solver")
        first.add(asked[1])
    assert first == {"one", "other"}, "a fair coin shows one side 16 times in 2^15 runs"


def test_what_came_in_vain_is_asked_for_last(tmp_path: Path) -> None:
    def some(number: int) -> State:
        return false(number) if number == 1 else true(number)

    with serving(checkpoints(some)) as server:
        found = replayer(tmp_path, client(server.url))
        with pytest.raises(Unserved):
            found.ask(COMMITTED, [2, 3], seconds=0)
        assert not found.is_here(COMMITTED, 3)
        found.ask(COMMITTED, [2, 3], seconds=0)
        assert found.is_here(COMMITTED, 3)
