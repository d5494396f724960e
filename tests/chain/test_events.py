"""Following events: all are found, in order and in bounded ranges, and re-organisations are reported."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from protocol.chain.client import Client
from protocol.chain.connection import Connection
from protocol.chain.devnet import Devnet
from protocol.chain.errors import RpcRefused, RpcUnavailable, UnstableChain
from protocol.chain.events import NEWEST, Batch, Follower, first_block

pytestmark = pytest.mark.chain

Deposit = Callable[[int], None]


@pytest.fixture
def deposit(client: Client) -> Deposit:
    client.token.mint(client.address, 1_000_000)
    client.token.approve(client.vault.address, 1_000_000)

    def make(amount: int) -> None:
        client.vault.deposit(amount)

    return make


def follow(client: Client, **options: Any) -> Follower:
    contracts = {client.vault.address: client.vault.contract}
    return Follower(client.connection, contracts, client.deployment.block, **options)


def amounts(batch: Batch) -> list[int]:
    return [event.arguments["amount"] for event in batch.events if event.name == "Deposited"]


def test_earlier_events_are_filled_in_and_later_ones_follow(client: Client, deposit: Deposit) -> None:
    for amount in (1, 2, 3):
        deposit(amount)
    follower = follow(client, span=2)
    batch = follower.poll()
    assert (amounts(batch), batch.rewound) == ([1, 2, 3], None)
    assert batch.events[0].arguments["account"] == client.address
    assert amounts(follower.poll()) == []
    deposit(4)
    assert amounts(follower.poll()) == [4]


def test_a_depth_of_confirmations_is_kept(chain: Devnet, client: Client, deposit: Deposit) -> None:
    follower = follow(client, confirmations=2)
    deposit(7)
    assert amounts(follower.poll()) == []
    chain.mine(2)
    assert amounts(follower.poll()) == [7]


def test_topics_choose_among_a_contracts_events(client: Client, deposit: Deposit) -> None:
    deposit(5)
    mine = bytes.fromhex(client.address[2:]).rjust(32, b"\0")
    assert amounts(follow(client, topics=[None, mine]).poll()) == [5]
    assert amounts(follow(client, topics=[None, bytes(32)]).poll()) == []


def test_a_reorganisation_rewinds_to_the_last_common_block(
    chain: Devnet, client: Client, deposit: Deposit
) -> None:
    deposit(1)
    follower = follow(client)
    follower.poll()
    common = client.connection.block().number
    deposit(2)
    deposit(3)
    assert amounts(follower.poll()) == [2, 3]
    # Two blocks are replaced by empty ones; their transactions and events are gone.
    chain.connection.request("anvil_reorg", 2, [])
    batch = follower.poll()
    assert batch.rewound == common
    assert amounts(batch) == []
    deposit(4)  # the dropped transactions are sent again first
    batch = follower.poll()
    assert (amounts(batch), batch.rewound) == ([2, 3, 4], None)


def test_a_shorter_chain_is_a_reorganisation_too(chain: Devnet, client: Client, deposit: Deposit) -> None:
    follower = follow(client)
    follower.poll()
    snapshot = chain.connection.request("evm_snapshot")
    deposit(2)
    assert amounts(follower.poll()) == [2]
    assert chain.connection.request("evm_revert", snapshot)
    batch = follower.poll()
    assert batch.rewound is not None
    assert amounts(batch) == []


def test_a_node_that_limits_ranges_is_asked_for_less(
    chain: Devnet, client: Client, deposit: Deposit, monkeypatch: pytest.MonkeyPatch
) -> None:
    for amount in (1, 2, 3, 4):
        deposit(amount)
    chain.mine(NEWEST)
    real = client.connection.request
    asked: list[int] = []

    def stingy(method: str, *parameters: Any, **options: Any) -> Any:
        if method == "eth_getLogs":
            asking = parameters[0]
            span = int(asking["toBlock"], 16) - int(asking["fromBlock"], 16) + 1 if "toBlock" in asking else 1
            asked.append(span)
            if span > 3:
                raise RpcRefused("eth_getLogs", "query exceeds max block range 3")
        return real(method, *parameters, **options)

    monkeypatch.setattr(client.connection, "request", stingy)
    assert amounts(follow(client).poll()) == [1, 2, 3, 4]
    assert max(asked) > 3 >= min(asked)


def test_hashes_that_never_settle_are_an_error(
    chain: Devnet, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.mine(NEWEST)
    real = client.connection.raw_block
    count = iter(range(1000))

    def restless(block: Any) -> dict[str, Any]:
        return real(block) | {"hash": f"0x{next(count):064x}"}

    monkeypatch.setattr(client.connection, "raw_block", restless)
    with pytest.raises(UnstableChain, match="more confirmations"):
        follow(client).poll()


def unanswered_once(client: Client, monkeypatch: pytest.MonkeyPatch, question: int) -> None:
    """Make the node fail to answer one request for logs: number `question`, counted from 0."""
    real = client.connection.request
    asked = iter(range(1_000_000))

    def frail(method: str, *parameters: Any, **options: Any) -> Any:
        if method == "eth_getLogs" and next(asked) == question:
            raise RpcUnavailable(client.connection.url, ConnectionResetError())
        return real(method, *parameters, **options)

    monkeypatch.setattr(client.connection, "request", frail)


def test_what_was_read_before_an_error_is_returned_by_the_next_poll(
    client: Client, deposit: Deposit, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = follow(client, span=1)
    follower.poll()
    for amount in (1, 2, 3):
        deposit(amount)
    unanswered_once(client, monkeypatch, 2)
    with pytest.raises(RpcUnavailable):
        follower.poll()
    assert amounts(follower.poll()) == [1, 2, 3]


def test_a_reorganisation_is_told_by_the_next_poll_that_returns(
    client: Client, deposit: Deposit, monkeypatch: pytest.MonkeyPatch
) -> None:
    deposit(1)
    follower = follow(client)
    follower.poll()
    common = client.connection.block().number
    deposit(2)
    assert amounts(follower.poll()) == [2]
    client.connection.request("anvil_reorg", 1, [])
    unanswered_once(client, monkeypatch, 0)
    with pytest.raises(RpcUnavailable):
        follower.poll()
    assert follower.poll().rewound == common


@pytest.mark.parametrize(("time", "number"), [(0, 5), (110, 5), (111, 6), (130, 15), (139, 20), (1_000, 20)])
def test_the_first_block_after_a_time_is_found(time: int, number: int) -> None:
    """The search is over blocks 5 to 20. Block n has the time 100 + 2 n."""

    def block(asked: int = 20) -> SimpleNamespace:
        return SimpleNamespace(number=asked, time=100 + 2 * asked)

    assert first_block(cast(Connection, SimpleNamespace(block=block)), 5, time) == number
