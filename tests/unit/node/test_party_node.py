"""A node's loop: how long it waits for a silent chain, when it ends, and when it may be stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic, sleep
from types import SimpleNamespace
from typing import cast

import pytest

from protocol.chain.client import Client
from protocol.chain.errors import (
    ChainError,
    DeploymentError,
    NonceTaken,
    Reverted,
    RpcRefused,
    RpcUnavailable,
    WrongChain,
)
from protocol.errors import ExitCode
from protocol.node import logs
from protocol.node.party.node import Node
from protocol.node.party.settings import LONGEST, PACE, NodeSettings

AWAY = RpcUnavailable("http://127.0.0.1:1", OSError())
Event = ChainError | Callable[[], None]


class Script(Node):
    """A node that takes one of `events` at each tick, in order. It raises the event if it is an error, and
    otherwise calls it. At the tick after the last event, the node stops.
    """

    def __init__(
        self, *events: Event, patience: float = 60.0, poll: float = 0.001, earlier: Sequence[Node] = ()
    ) -> None:
        settings = NodeSettings(account="dev:1", patience=patience, poll=poll)
        super().__init__(settings, logs.get("test"), None, earlier=earlier)
        self.events = list(events)
        self.unprepared: list[ChainError] = []
        """Errors that `_prepare` raises before the first look, one at each call. The last error of the list
        is raised first.
        """
        self.outcome: ExitCode | None = None
        self.busy = 0
        """Number of looks at which the node may not stop yet, because a move is due."""

    def run(self, once: bool = False) -> ExitCode:
        return self._loop(once)

    def _prepare(self) -> None:
        if self.unprepared:
            raise self.unprepared.pop()

    def _tick(self) -> None:
        if not self.events:
            self._stop.ask()
            return
        event = self.events.pop(0)
        if isinstance(event, Exception):
            raise event
        event()

    def _outcome(self, once: bool) -> ExitCode | None:
        return self.outcome if once else None

    def _at_stake(self) -> dict[str, object]:
        return {"tasks": [7]}

    def _may_stop(self) -> bool:
        self.busy -= 1
        return self.busy < 0


def slow(seconds: float) -> Callable[[], None]:
    """A tick that takes that many seconds."""
    return lambda: sleep(seconds)


@pytest.mark.parametrize(
    "error",
    [
        AWAY,
        RpcRefused("eth_call", "too many requests"),
        Reverted("TaskMarket.taskOf", "UnknownTask", {"task": 7}),  # from a node that is a block behind
        NonceTaken("bid"),
        WrongChain("http://127.0.0.1:1", 1, 2),
    ],
)
def test_it_waits_for_a_chain_that_is_away(error: ChainError) -> None:
    node = Script(error, error, error)
    assert node.run() is ExitCode.INTERRUPTED
    assert not node.events


def test_it_prepares_anew_where_the_chain_was_away() -> None:
    node = Script(lambda: None)
    node.unprepared = [AWAY, AWAY]
    assert node.run() is ExitCode.INTERRUPTED
    assert not node.unprepared
    assert not node.events


def test_what_does_not_pass_ends_it_at_once() -> None:
    node = Script(DeploymentError("deployment", expected="a file", got="none", remedy="deploy"), AWAY)
    with pytest.raises(DeploymentError):
        node.run()
    assert node.events == [AWAY]


def test_it_does_not_wait_for_ever() -> None:
    node = Script(AWAY, slow(0), AWAY, slow(0.1), AWAY, *[AWAY] * 10_000, patience=0.05)
    with pytest.raises(RpcUnavailable):
        node.run()
    assert 0 < len(node.events) < 10_000


def test_a_long_tick_uses_up_no_patience() -> None:
    def works_long_and_then_asks() -> None:
        sleep(0.2)
        raise AWAY

    assert Script(works_long_and_then_asks, patience=0.05).run() is ExitCode.INTERRUPTED


def test_the_outcome_ends_it() -> None:
    node = Script(slow(0), slow(0))
    node.outcome = ExitCode.FRAUD
    assert node.run(once=True) is ExitCode.FRAUD
    assert len(node.events) == 1


def test_it_is_stopped_only_once_nothing_is_due_and_rests_until_then() -> None:
    node = Script(*[slow(0)] * 5, poll=0.05)
    node._stop.ask()
    node.busy = 2
    began = monotonic()
    assert node.run() is ExitCode.INTERRUPTED
    assert len(node.events) == 2, "two looks with a move due, and the one that ended it"
    assert monotonic() - began >= 0.1, "a node that was asked to stop does not look without a pause"


def test_what_keeps_one_deployment_waiting_holds_no_other() -> None:
    ticked: list[str] = []
    old = Script(AWAY, lambda: ticked.append("old"), lambda: ticked.append("old"))
    new = Script(*[lambda: ticked.append("new")] * 3, earlier=[old])
    old.unprepared = [AWAY]
    assert new.run() is ExitCode.INTERRUPTED
    assert ticked == ["new", "new", "old", "new", "old"]


def test_a_move_that_is_due_under_earlier_contracts_keeps_it_from_stopping() -> None:
    old = Script(*[slow(0)] * 5)
    new = Script(*[slow(0)] * 5, earlier=[old])
    old.busy = 2
    new._stop.ask()
    assert new.run() is ExitCode.INTERRUPTED
    assert (len(old.events), len(new.events)) == (2, 2)


class Counted(Script):
    """A node, idle or not, on a chain with a block every `block_time` seconds."""

    def __init__(self, idle: bool, block_time: float, poll: float | None) -> None:
        super().__init__()
        self._settings = NodeSettings(account="dev:1", poll=poll)
        self._client = cast(Client, SimpleNamespace(connection=SimpleNamespace(block_time=block_time)))
        self.idle = idle

    def _is_idle(self) -> bool:
        return self.idle


@pytest.mark.parametrize(
    ("idle", "block_time", "poll", "pause"),
    [
        (True, 12.0, None, 12.0),
        (True, 0.25, None, PACE),
        (True, 600.0, None, LONGEST),
        (False, 12.0, None, PACE),
        (True, 12.0, 2.0, 2.0),
        (False, 12.0, 2.0, 2.0),
    ],
)
def test_who_has_nothing_to_do_looks_once_a_block(
    idle: bool, block_time: float, poll: float | None, pause: float
) -> None:
    assert Counted(idle, block_time, poll)._pause() == pause
