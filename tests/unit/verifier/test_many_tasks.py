"""A verifier does its duties however many tasks strangers post. The chain's node is a fake that counts
requests; the connection and the market's client are the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest
from eth_abi.abi import encode
from eth_utils.abi import get_abi_output_types

from protocol.beacon.networks import DEVELOPMENT
from protocol.chain.abi import contract
from protocol.chain.blocks import Block
from protocol.chain.client import Client
from protocol.chain.connection import Connection
from protocol.chain.errors import ChainError, RpcRefused
from protocol.chain.market import Market
from protocol.chain.parameters import DEVNET
from protocol.chain.rpc import Query
from protocol.chain.views import NEVER, TaskStatus
from protocol.node.home import Home
from protocol.node.party.exits import Observation
from tests.unit.verifier.test_seats import AUDIT, ME, NOW, OTHER, VIEW, seat
from verifier import auditing
from verifier.jobs import Job
from verifier.node import VerifierNode
from verifier.settings import VerifierSettings

STRANGERS = 1_000
OURS = STRANGERS + 1
MARKET = contract("TaskMarket")


class Nodes:
    """A chain with `STRANGERS` tasks that take bids, and one submitted task. It refuses reads of a block
    after `lasts` requests since the block was asked for.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.lasts = 1 << 30
        self._blocks: dict[str, int] = {}
        """The number of requests before each block was made."""

    def compare(self) -> None:
        """There is only one node."""

    def ask(self, query: Query, _needed: str = "") -> Any:
        """The answer to one question, in one request."""
        (answer,) = self.ask_all([query])
        if isinstance(answer, ChainError):
            raise answer
        return answer

    def ask_all(self, queries: Sequence[Query]) -> list[Any]:
        """The answers to several questions, in one request."""
        self.requests += 1
        return [self._answer(query) for query in queries]

    def _answer(self, query: Query) -> Any:
        if query.method == "eth_getBlockByNumber":
            number = len(self._blocks) + 1
            block = f"0x{number:064x}"
            self._blocks[block] = self.requests
            fields = {"parentHash": "0x0", "timestamp": hex(NOW), "gasLimit": "0x0"}
            return {"number": hex(number), "hash": block, **fields}
        called, at = query.parameters
        if self.requests - self._blocks[at["blockHash"]] > self.lasts:
            return RpcRefused(query.label, "missing trie node")
        if query.method == "eth_getCode":
            return "0x00"
        return "0x" + self._called(query.label, bytes.fromhex(called["data"][2:])).hex()

    def _called(self, label: str, data: bytes) -> bytes:
        function = label.removeprefix("TaskMarket.")
        if function == label:
            return b""
        task = MARKET.arguments(data).get("task", 0)
        status = TaskStatus.SUBMITTED if task == OURS else TaskStatus.BIDDING
        view = replace(VIEW, task=task, status=status, bids_until=NEVER)
        values = {"tasks": OURS, "statusOf": int(status), "taskOf": astuple(view)[1:]}
        return encode(get_abi_output_types(MARKET._functions[function]), [values[function]])


@pytest.fixture
def chain() -> Nodes:
    return Nodes()


@pytest.fixture
def node(tmp_path: Path, chain: Nodes, monkeypatch: pytest.MonkeyPatch) -> Iterator[VerifierNode]:
    monkeypatch.setattr("protocol.chain.connection.WAITS", ())
    connection = Connection("http://127.0.0.1:1")
    monkeypatch.setattr(connection, "_nodes", chain)
    monkeypatch.setattr(Connection, "genesis", "0x" + "22" * 32)
    monkeypatch.setattr(Connection, "chain_id", 31337)
    market = Market(MARKET, ME, connection, None)
    terms = SimpleNamespace(attest_period=40, move_time=20, jurors=0, look_chance=0, segments_per_verifier=1)
    monkeypatch.setattr(market, "terms", lambda _task: terms)

    def asked(answer: Any) -> Callable[[int], Any]:
        """A read that takes one request for each task."""

        def ask(task: int) -> Any:
            connection.call_data(OTHER, bytes([task & 255]), label="AuditBoard")
            return answer

        return ask

    client = SimpleNamespace(
        connection=connection,
        deployment=SimpleNamespace(beacon=DEVELOPMENT, parameters=DEVNET),
        beacon=SimpleNamespace(is_signed_round=None),
        market=market,
        audit=SimpleNamespace(audit=asked(AUDIT), seats=asked((seat(0, ME),))),
        inclusion=1.0,
        address=ME,
    )
    made = VerifierNode(cast(Client, client), VerifierSettings(), Home(tmp_path / "home"))
    monkeypatch.setattr(made._engagements, "see", lambda _seen: None)
    monkeypatch.setattr(made._games, "make_ready", lambda _seen: [])
    monkeypatch.setattr(made, "_take_earnings", lambda: None)
    monkeypatch.setattr(auditing, "offer", lambda *_arguments: None)
    yield made
    made._close()


@pytest.fixture
def attested(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Set by the attestation of our seat, which is due at each look."""
    done = Event()

    def attestations(_context: object, seen: Observation) -> list[Job]:
        return [Job(OURS, "attest 0", done.set)] if seen.view.task == OURS else []

    monkeypatch.setattr(auditing, "attestations", attestations)
    return done


def look(node: VerifierNode) -> Block:
    """One look at a new block."""
    with node.context.client.connection.view() as block:
        node.turn(block)
    node._workers.sends.wait()
    return block


def test_a_look_at_many_tasks_takes_few_requests(node: VerifierNode, chain: Nodes, attested: Event) -> None:
    look(node)
    assert attested.is_set()
    assert chain.requests <= 30


def test_no_task_is_left_out_where_the_chain_soon_forgets_a_block(
    node: VerifierNode, chain: Nodes, attested: Event
) -> None:
    """A look ends when its block is gone. The next one goes on from there, and later ones begin with our task."""
    chain.lasts = 20
    look(node)
    assert not attested.is_set(), "the block was gone before"
    look(node)
    assert attested.is_set()
    chain.lasts = 8
    for _ in range(3):
        attested.clear()
        look(node)
        assert attested.is_set(), "our own task comes first"
    assert not any(node._observer._rests.lost(task) for task in range(1, OURS + 1)), "no task has failed"
