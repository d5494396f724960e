"""The monitoring listener of a node: whether the node is alive, whether it is ready and if not why, and which
conditions raise alerts.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep, time
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from prometheus_client import CollectorRegistry

from protocol.chain.client import Client
from protocol.node import logs
from protocol.node.http import PortTaken
from protocol.node.monitoring.alerts import Alarm
from protocol.node.monitoring.deadlines import Deadline, Deadlines
from protocol.node.monitoring.pulse import LEAST_SECONDS, PERIODS, STALE_SECONDS, START_SECONDS, Pulse
from protocol.node.party import monitor as module
from protocol.node.party.collector import Known
from protocol.node.party.monitor import BLOCK_SECONDS, Monitor
from protocol.node.party.settings import NodeSettings
from protocol.node.settings import SettingsError, load
from solver.settings import SolverSettings
from tests.receiver import SECRET, Receiver
from verifier.settings import VerifierSettings

PATIENCE = 60.0
MARKET = "0xmarket"
CLIENT = cast(
    Client,
    SimpleNamespace(
        connection=SimpleNamespace(chain_id=31337, genesis="0xgenesis"),
        market=SimpleNamespace(address=MARKET),
        address="0xaccount",
    ),
)


class Node:
    """A monitored node. It has no loop: the test does what the loop would do."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.known, self.registry = Known(), CollectorRegistry()
        self.known.lacks = ""
        self.full: Exception | None = None
        self.answered()
        chosen = NodeSettings.model_validate({"account": "dev:1", "low_disk_gib": 0, **settings})
        self.monitor = Monitor(
            "solver",
            chosen,
            CLIENT,
            folder,
            self.known,
            logs.get("test"),
            self.registry,
            self._write,
            rest=0.01,
        )

    def answered(self, late: float = 0.0, block_age: float = 0.0) -> None:
        """Record that the chain answered and the loop turned `late` seconds ago, and that the block is
        `block_age` seconds old.
        """
        now = monotonic() - late
        self.known.pulse.answer(now, 7, int(time() - block_age))
        self.known.pulse.turn(now, 0.5)

    def get(self, path: str) -> tuple[int, Any]:
        answer = httpx.get(self.monitor.url + path, timeout=PATIENCE)
        return answer.status_code, answer.json()

    def wrong(self) -> dict[str, str]:
        """The failed checks of /readyz."""
        self.monitor._written = None
        status, body = self.get("/readyz")
        found = {name: text for name, text in body["checks"].items() if text}
        assert status == (503 if found else 200)
        assert body["ready"] is not bool(found)
        return found

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"assay_node_{name}", labels)

    def _write(self) -> None:
        if self.full is not None:
            raise self.full


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    with made.monitor:
        yield made


def test_it_is_alive_while_its_loop_turns(node: Node) -> None:
    assert node.get("/healthz") == (200, {"version": 1, "status": "alive"})
    node.answered(late=LEAST_SECONDS + 1)
    assert node.get("/healthz") == (503, {"version": 1, "status": "stalled"})


def test_it_is_ready_while_nothing_is_wrong(node: Node) -> None:
    assert node.wrong() == {}
    began = monotonic()
    node.answered(late=STALE_SECONDS + 1)
    said = re.fullmatch(r"the chain has not answered for (\d+) s", node.wrong()["chain"])
    assert said is not None
    assert STALE_SECONDS + 1 <= int(said[1]) <= STALE_SECONDS + 2 + monotonic() - began
    began = monotonic()
    node.answered(block_age=BLOCK_SECONDS + 100)
    said = re.fullmatch(r"the newest block is (\d+) s old", node.wrong()["chain"])
    assert said is not None
    assert BLOCK_SECONDS + 100 <= int(said[1]) <= BLOCK_SECONDS + 102 + monotonic() - began
    node.answered()
    node.full = sqlite3.OperationalError("database or disk is full")
    assert node.wrong() == {"database": "the database cannot be written: database or disk is full"}
    node.full = None
    node.known.lacks = "0 tokens of 1000 for stakes"
    assert node.wrong() == {"account": "0 tokens of 1000 for stakes"}
    assert node.sample("ready", check="account") == 0
    assert node.sample("ready", check="chain") == 1
    node.known.lacks = None
    assert node.wrong() == {"account": "not known yet"}


@pytest.mark.parametrize(("seconds", "expected"), [(3_600.0, 1), (-1.0, 3)])
def test_the_database_is_not_written_at_each_question(
    node: Node, monkeypatch: pytest.MonkeyPatch, seconds: float, expected: int
) -> None:
    monkeypatch.setattr(module, "WRITE_SECONDS", seconds)
    writes = list[None]()
    node.monitor._writable = lambda: writes.append(None)
    node.monitor._written = None
    for _ in range(3):
        node.get("/readyz")
    assert len(writes) == expected


def test_what_it_knows_is_in_its_metrics(node: Node) -> None:
    text = httpx.get(f"{node.monitor.url}/metrics", timeout=PATIENCE)
    assert text.headers["content-type"].startswith("text/plain; version=")
    assert 'assay_node_info{account="0xaccount",chain="31337",node="solver"} 1.0' in text.text
    assert "process_resident_memory_bytes" in text.text
    assert node.sample("block_number") == 7
    assert (node.sample("disk_size_bytes") or 0) > (node.sample("disk_free_bytes") or 0) > 0
    assert httpx.get(f"{node.monitor.url}/tasks/1", timeout=PATIENCE).status_code == 404
    assert httpx.post(f"{node.monitor.url}/metrics", timeout=PATIENCE).status_code == 405


def test_a_condition_is_told_once_as_long_as_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    with Receiver(500) as receiver:
        node = Node(tmp_path, webhook=receiver.url)
        with node.monitor:
            node.answered(late=STALE_SECONDS + 1)
            until(receiver, "rpc_stale")
            node.known.deadlines.put(MARKET, "games", [Deadline(MARKET, 3, "move", time() + 30, 350)])
            node.answered()
            until(receiver, "deadline")
            # The look that told of the deadline may have begun before the answer.
            while Alarm.RPC_STALE in node.monitor._firing:
                sleep(0.01)
            node.answered(late=max(STALE_SECONDS, LEAST_SECONDS) + 1)
            until(receiver, "stalled")
            node.known.lacks = "no coin"
            until(receiver, "account")
    assert sorted(receiver.events) == ["account", "deadline", "rpc_stale", "rpc_stale", "stalled"]
    (deadline,) = [one for one in receiver.taken if one["event"] == "deadline"]
    assert (deadline["task"], deadline["market"], deadline["node"]) == (3, MARKET, "solver")


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(module, "room", lambda _folder, _spare: -(1 << 30))
    with Receiver() as receiver:
        node = Node(tmp_path, webhook=receiver.url)
        with node.monitor:
            until(receiver, "disk_low")
            assert node.wrong() == {"disk": "1.00 GiB less are free than are to be kept"}


def test_what_is_not_taken_waits_for_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POST_SECONDS", 0.2)
    with Receiver(*[500] * 100) as refusing:
        first = Node(tmp_path, webhook=refusing.url)
        with first.monitor:
            first.monitor.alerts.tell(Alarm.SETTLED, "paid", MARKET, 1)
    with Receiver() as receiver:
        second = Node(tmp_path, webhook=receiver.url)
        with second.monitor:
            until(receiver, "settled")


def until(receiver: Receiver, event: str) -> None:
    deadline = monotonic() + PATIENCE
    while event not in receiver.events:
        assert monotonic() < deadline, receiver.events
        sleep(0.01)


def test_a_port_that_is_taken_is_refused(node: Node, tmp_path: Path) -> None:
    port = int(node.monitor.url.rpartition(":")[2])
    with pytest.raises(PortTaken, match="choose another --monitor-port"):
        Node(tmp_path, monitor_port=port)


def test_each_party_has_a_port_of_its_own() -> None:
    assert (SolverSettings().monitor_port_bound, VerifierSettings().monitor_port_bound) == (8711, 8713)
    assert SolverSettings(port=0).monitor_port_bound == 0, "where any port will do"
    assert SolverSettings(port=0, monitor_port=9).monitor_port_bound == 9


def test_the_webhook_is_shown_nowhere(tmp_path: Path) -> None:
    good, bad = f"https://example.org/{SECRET}", f"http://example.org/{SECRET}"
    found = load(SolverSettings, "solver", tmp_path / "none", {}, {"ASSAY_WEBHOOK": good})
    assert {name: value for name, value, _ in found.rows()}["webhook"] == "********"
    assert SECRET not in repr(found.values)
    with pytest.raises(SettingsError, match=r"setting webhook .*expected an https address") as raised:
        load(SolverSettings, "solver", tmp_path / "none", {}, {"ASSAY_WEBHOOK": bad})
    assert SECRET not in str(raised.value)


def test_a_pulse_allows_what_a_loop_may_take() -> None:
    pulse = Pulse(began=0.0)
    assert pulse.is_alive(START_SECONDS)
    assert not pulse.is_alive(START_SECONDS + 1)
    assert pulse.chain_time(5.0) == 0
    pulse.turn(10.0, 60.0)
    assert pulse.is_alive(10.0 + PERIODS * 60)
    assert not pulse.is_alive(11.0 + PERIODS * 60)
    pulse.answer(20.0, 3, 1_000)
    assert (pulse.rpc_age(25.0), pulse.rpc_limit, pulse.chain_time(25.0)) == (5.0, 180.0, 1_005.0)


def test_the_earliest_deadline_of_a_kind_counts() -> None:
    deadlines = Deadlines()
    deadlines.put(MARKET, "games", [Deadline(MARKET, 1, "move", at, 350) for at in (30, 20, 40)])
    deadlines.put(MARKET, "tasks", [Deadline(MARKET, 2, "train", 90, 10_000)])
    assert sorted((one.task, one.at) for one in deadlines) == [(1, 20), (2, 90)]
    deadlines.put(MARKET, "games", [])
    assert [one.task for one in deadlines] == [2]


@pytest.mark.parametrize(
    ("now", "near"), [(0, False), (830, False), (831, True), (1_000, True), (1_001, False)]
)
def test_a_deadline_is_near_in_the_last_fifth_of_its_period(now: float, near: bool) -> None:
    assert Deadline(MARKET, 1, "train", 1_000, 850).is_near(now, 3_600) is near
    assert Deadline(MARKET, 1, "train", 1_000, 10**6).is_near(now, 170) is near
