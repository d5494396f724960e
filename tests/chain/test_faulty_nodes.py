"""Nodes that fail or send arbitrary answers: the error is typed and comes in time, and the next node is asked."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from protocol.chain.accounts import development_account
from protocol.chain.answers import FORMS, require_form
from protocol.chain.client import Client
from protocol.chain.connection import Connection
from protocol.chain.devnet import Devnet
from protocol.chain.errors import ChainError, RpcRefused, RpcUnavailable, WrongChain
from protocol.chain.rpc import Query
from protocol.chain.transactions import Sender, Sending
from protocol.chain.transport import NotAnAnswer
from tests.chain.rpc_proxy import PRESETS, Faults, Garbage, RpcProxy
from tests.chain.sending import NOWHERE, transfer, wait_mined
from tests.timing import require_quick

pytestmark = pytest.mark.chain

TIMEOUT = 3.0
"""Seconds to wait for an answer that does not come in time."""
DELAYED = {"slow", "garbage-trickling"}
"""Faults whose answers do not come in time."""
PATIENCE = 20.0
"""Seconds to wait for any other answer: a busy machine may take seconds. Delayed answers take much longer."""
FAULTS: dict[str, type[ChainError]] = {
    "down": RpcUnavailable,
    "errors": RpcRefused,
    "unavailable": RpcUnavailable,
    "rate-limited": RpcUnavailable,
    "slow": RpcUnavailable,
    "wrong-chain": WrongChain,
    "garbage-no-JSON": RpcUnavailable,
    "garbage-no-object": RpcUnavailable,
    "garbage-another-id": RpcUnavailable,
    "garbage-no-hex": RpcUnavailable,
    "garbage-cut-short": RpcUnavailable,
    "garbage-huge": RpcRefused,
    "garbage-trickling": RpcUnavailable,
}
"""Presets of the proxy, and the error that each causes in a request that is sent only once."""
QUESTIONS = [Query("eth_getBalance", (NOWHERE, "latest"), "balance"), Query("eth_blockNumber", (), "head")]


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protocol.chain.transport.MOST", 1 << 20)
    monkeypatch.setattr("protocol.chain.rpc.RECHECK_SECONDS", 0.0)


@pytest.fixture
def near(young: Devnet) -> Iterator[RpcProxy]:
    with RpcProxy(young.url) as made:
        yield made


@pytest.fixture
def far(young: Devnet) -> Iterator[RpcProxy]:
    with RpcProxy(young.url) as made:
        yield made


def slower(proxy: RpcProxy) -> None:
    """Make the proxy's delay, if it has one, longer than `PATIENCE`. A trickling answer also takes longer, for
    it has more than 40 bytes; each of them comes well before `TIMEOUT`.
    """
    delay = 10 * PATIENCE if proxy.faults.delay else 0.0
    proxy.faults = replace(proxy.faults, delay=delay, pause=PATIENCE / 40)


def timeout(fault: str) -> float:
    """Seconds that a connection waits for the answers of a node with a fault."""
    return TIMEOUT if fault in DELAYED else PATIENCE


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_node_is_an_error_in_time_and_is_asked_again(near: RpcProxy, fault: str) -> None:
    alone = Connection(near.url, timeout(fault))
    head = alone.block()
    with PRESETS[fault](near):
        slower(near)

        def asked() -> None:
            with pytest.raises(FAULTS[fault]):
                alone.request("eth_getBalance", NOWHERE, "latest", attempts=1)

        require_quick(2.5 * TIMEOUT if fault in DELAYED else 2.5, asked)
        near.hang_up()  # do not wait for delayed or trickling answers
    assert alone.block() == head
    alone.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_instead_of_a_faulty_node_the_next_one_is_asked(near: RpcProxy, far: RpcProxy, fault: str) -> None:
    both = Connection((near.url, far.url), timeout(fault))
    head = both.block()
    balance = hex(both.balance(NOWHERE))
    with PRESETS[fault](near):
        slower(near)
        asked = far.requests
        assert both.request("eth_getBalance", NOWHERE, "latest", attempts=1) == balance
        assert far.requests > asked
        assert both.request_all(QUESTIONS) == [balance, hex(head.number)]
        near.hang_up()
    both.close()


def test_a_body_without_an_end_is_not_kept(near: RpcProxy) -> None:
    alone = Connection(near.url, 20.0)
    alone.block()
    with PRESETS["garbage-huge"](near):
        tracemalloc.start()
        try:
            with pytest.raises(RpcRefused, match="more than 67108864 bytes"):
                alone.request("eth_blockNumber")
            assert tracemalloc.get_traced_memory()[1] < 1 << 23
        finally:
            tracemalloc.stop()
    alone.close()
    assert near.sent < 1 << 24, "and of that most lies in buffers of the system"


@pytest.mark.parametrize("kind", ["no JSON", "no object", "another id", "no hex", "cut short"])
def test_what_is_sent_through_a_node_that_garbles_answers_arrives_once(
    young: Devnet, near: RpcProxy, kind: Garbage
) -> None:
    """Each transaction arrives, although the answer does not say so."""
    before = young.connection.balance(NOWHERE)
    connection = Connection(near.url, 20.0)
    near.faults = Faults(garbage=kind, garbage_method="eth_sendRawTransaction")
    with Sender(connection, development_account(4, young.chain_id), Sending(timeout=30, poll=0.02)) as sender:
        for amount in (1, 2, 4):
            sender.send(transfer(amount), f"{kind} {amount}")
    connection.close()
    assert young.connection.balance(NOWHERE) - before == 7


def test_a_node_that_gives_hashes_where_transactions_are_asked_for_is_refused(young: Devnet) -> None:
    wait_mined(
        young.connection,
        young.connection.request(
            "eth_sendTransaction", {"from": development_account(4, young.chain_id).address}
        ),
    )
    alone = Connection(young.url)
    head = alone.block().number

    def hashes(number: int, *, whole: bool) -> dict[str, Any]:
        assert whole
        return young.connection.raw_block(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alone, "raw_block", hashes)
        with pytest.raises(RpcRefused, match="got hashes"):
            alone.has_nonce(head, NOWHERE, 0)
    with pytest.raises(RpcRefused, match="block"):
        alone.has_nonce(head + 1, NOWHERE, 0)  # a node that lags behind says nothing of the nonce
    alone.close()


WRONG: list[Any] = [
    None,
    "soon",
    "0x",
    "0xg",
    7,
    1.5,
    True,
    [],
    ["0x1"],
    {},
    {"hash": "0x1"},
    [None],
    "0x" + "1" * 65,
]
MAY_BE_NULL = ("Block", "Receipt", "TransactionByHash")


@pytest.mark.parametrize("method", FORMS)
def test_results_of_another_form_are_no_answers(method: str) -> None:
    fitting: list[Any] = []
    for wrong in WRONG:
        try:
            require_form(method, wrong)
        except NotAnAnswer:
            continue
        fitting.append(wrong)
    if method == "eth_getLogs":
        assert fitting == [[]]
    elif method in ("eth_call", "eth_getCode"):
        assert fitting == ["0x"]
    elif method == "eth_blockNumber" or not method.endswith(("Number", "Hash", "Receipt")):
        assert fitting == []
    else:
        assert fitting == [None]


def test_results_of_a_real_node_have_their_forms(client: Client) -> None:
    """Covers logs, an unknown block and a block with whole transactions too."""
    connection = client.connection
    receipt = client.token.mint(client.address, 1)
    fields = connection.receipt(receipt.transaction)
    assert fields is not None
    assert fields["logs"]
    block = hex(receipt.block)
    asked: list[tuple[str, list[Any]]] = [
        ("eth_blockNumber", []),
        ("eth_call", [{"to": client.token.address, "data": "0x18160ddd"}, "latest"]),
        ("eth_chainId", []),
        ("eth_estimateGas", [{"from": client.address, "to": NOWHERE, "value": "0x1"}]),
        ("eth_gasPrice", []),
        ("eth_getBalance", [client.address, "latest"]),
        ("eth_getBlockByHash", [receipt.block_hash, False]),
        ("eth_getBlockByNumber", [block, True]),
        ("eth_getBlockByNumber", ["0xffffff", False]),
        ("eth_getCode", [client.token.address, "latest"]),
        ("eth_getLogs", [{"blockHash": receipt.block_hash}]),
        ("eth_getTransactionByHash", [receipt.transaction]),
        ("eth_getTransactionCount", [client.address, "pending"]),
        ("eth_getTransactionReceipt", [receipt.transaction]),
        ("eth_maxPriorityFeePerGas", []),
    ]
    assert {method for method, _ in asked} == FORMS.keys() - {
        "eth_sendRawTransaction"
    }  # its result gave the receipt
    for method, parameters in asked:
        require_form(method, connection.request(method, *parameters))
