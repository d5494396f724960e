"""Servers of a task's data. Their answers are checked. A server that gives no right answer is asked last, and
after a few failures it is not asked any more.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from assay import holders
from assay.errors import NotHeld
from assay.holders import MOST_FAILURES, Holders
from protocol.chain.client import Client
from protocol.chain.views import NOBODY, TaskView
from protocol.commitments import segment_tree, state_root, tensor_root
from protocol.program.step import State
from protocol.tasks.bundles import Limits
from tests.unit.node.servers import Handler, answers, serving
from tests.unit.solver import tiny

PROGRAM = tiny.step_program()
STATE = {"weights": torch.arange(300.0), "count": torch.tensor(4, dtype=torch.int32)}
ROOT = PROGRAM.state_root(STATE)
ROOTS = [bytes([number]) * 32 for number in range(4)]


def held_by(urls: Sequence[str], limits: Limits | None = None) -> Holders:
    """The servers of task 7: the first is the solver's, and the others belong to attested seats."""
    seats = [SimpleNamespace(account=str(number), attested=True) for number in range(1, len(urls))]
    idle = [SimpleNamespace(account="9", attested=False), SimpleNamespace(account=NOBODY, attested=True)]
    client = SimpleNamespace(
        audit=SimpleNamespace(seats=lambda _task: [*seats, *idle]),
        market=SimpleNamespace(endpoint_of=lambda account: urls[int(account)]),
    )
    view = SimpleNamespace(task=7, solver="0")
    return Holders(cast(Client, client), cast(TaskView, view), limits or Limits())


def serves(state: State, roots: Sequence[bytes] = ()) -> Handler:
    """A handler that serves `state` as every checkpoint, and `roots` as the segment roots."""
    tensors = [tensor.data for tensor in PROGRAM.checkpoint(state).tensors]

    def handle(connection: socket.socket, target: str) -> None:
        body = b"".join(roots) if target.endswith("segments") else b"".join(bytes(one) for one in tensors)
        answers(body)(connection, target)

    return handle


def test_a_state_comes_from_whoever_serves_the_committed_one() -> None:
    other = {**STATE, "count": torch.tensor(5, dtype=torch.int32)}
    with serving(serves(other)) as liar, serving(serves(STATE)) as honest:
        found = held_by(["", liar.url, honest.url]).state(2, ROOT, PROGRAM)
        assert honest.targets == ["/tasks/7/checkpoints/2/groups/0"]
    assert all(torch.equal(found[name], value) for name, value in STATE.items())


def test_who_serves_nothing_right_is_asked_last_and_then_no_more() -> None:
    with serving(answers(b"", "404 Not Found")) as empty, serving(serves(STATE)) as honest:
        held = held_by([empty.url, honest.url])
        for _ in range(4):
            held.state(1, ROOT, PROGRAM)
        assert len(empty.targets) == 1
        alone = held_by([empty.url])
        for _ in range(5):
            with pytest.raises(NotHeld, match="task 7, checkpoint 1: expected a state with root"):
                alone.state(1, ROOT, PROGRAM)
        assert len(empty.targets) == 1 + MOST_FAILURES


def test_a_server_that_takes_its_time_for_nothing_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holders, "SLOW_SECONDS", 0.0)
    with serving(answers(b"", "404 Not Found")) as slow:
        held = held_by([slow.url])
        for _ in range(3):
            with pytest.raises(NotHeld):
                held.state(1, ROOT, PROGRAM)
        assert len(slow.targets) == 1


def test_bytes_that_no_tensor_has_are_no_state() -> None:
    """A solver may commit to bytes that no tensor has, such as those of a non-canonical NaN. The root of
    these bytes matches, but a replay would begin with other bytes.
    """
    data = bytearray(1_200)
    data[:4] = (0x7FC00001).to_bytes(4, "little")
    count = bytes(4)
    root = state_root([tensor_root(data), tensor_root(count)])

    def handle(connection: socket.socket, target: str) -> None:
        answers(bytes(data) + count)(connection, target)

    with serving(handle) as server, pytest.raises(NotHeld, match="of no tensor: another NaN"):
        held_by([server.url]).state(1, root, PROGRAM)


def test_roots_must_make_the_committed_tree() -> None:
    committed = segment_tree(ROOTS).root
    with serving(serves(STATE, ROOTS)) as honest, serving(serves(STATE, ROOTS[::-1])) as liar:
        assert held_by([liar.url, honest.url]).roots(committed, 4, 6) == ROOTS
        assert held_by([honest.url]).roots(segment_tree(ROOTS[:3]).root, 3, 6) == ROOTS[:3], "it went on"
        with pytest.raises(NotHeld, match="state roots under"):
            held_by([liar.url]).roots(committed, 4, 6)
        with pytest.raises(NotHeld):
            held_by([honest.url]).roots(segment_tree([*ROOTS, ROOTS[0]]).root, 5, 6)
    with serving(serves(STATE, ROOTS * 100)) as flood, pytest.raises(NotHeld):
        held_by([flood.url]).roots(committed, 4, 6)


def test_bundles_are_looked_for_at_addresses_that_are_some() -> None:
    found = held_by(["http://127.0.0.1:1", "", "nonsense"]).bundles(b"\x01" * 32)
    assert [str(address) for address in found] == [f"http://127.0.0.1:1/bundles/{'01' * 32}"]
