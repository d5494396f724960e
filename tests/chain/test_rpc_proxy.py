"""The proxy that acts as a faulty node: garbage, presets, and re-organisations of the chain behind it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from protocol.chain.accounts import development_account
from protocol.chain.devnet import Devnet
from protocol.chain.transactions import Sender
from tests.chain.conftest import QUICK
from tests.chain.rpc_proxy import GARBAGE, PRESETS, Faults, RpcProxy
from tests.chain.sending import NOWHERE, transfer, wait_mined

pytestmark = pytest.mark.chain

LIFTED = [name for name in PRESETS if not name.startswith("reorg-")]


@pytest.fixture
def proxy(young: Devnet) -> Iterator[RpcProxy]:
    before = set(threading.enumerate())
    with RpcProxy(young.url) as made:
        yield made
    assert set(threading.enumerate()) <= before


def ask(proxy: RpcProxy, method: str = "eth_chainId", number: int = 7, seconds: float = 20.0) -> bytes:
    """Send a request; returns the body of the answer. No piece of the answer may take longer than `seconds`."""
    query: Any = {"jsonrpc": "2.0", "id": number, "method": method, "params": []}
    with requests.post(proxy.url, json=query, timeout=seconds, stream=True) as answer:
        return next(answer.iter_content(1 << 20), b"")


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_no_answer(proxy: RpcProxy, kind: str) -> None:
    true = ask(proxy)
    proxy.faults.garbage = kind  # type: ignore[assignment]
    proxy.faults.pause = 10.0
    if kind in ("cut short", "trickling"):
        with pytest.raises(requests.RequestException):
            ask(proxy, seconds=1.0)
    else:
        assert ask(proxy) != true
    proxy.faults.garbage = None
    assert ask(proxy) == true


@pytest.mark.parametrize("preset", LIFTED)
def test_a_preset_is_lifted_when_it_ends(proxy: RpcProxy, preset: str) -> None:
    true = ask(proxy)
    with PRESETS[preset](proxy):
        assert proxy.faults != Faults()
    assert proxy.faults == Faults()
    assert ask(proxy) == true


def test_presets_are_applied_together_and_lifted_one_by_one(proxy: RpcProxy) -> None:
    with PRESETS["slow"](proxy):
        with PRESETS["stale"](proxy):
            assert proxy.faults == Faults(delay=1.0, stale_share=0.3)
        assert proxy.faults == Faults(delay=1.0)


def places(chain: Devnet, sent: list[str]) -> list[int | None]:
    """The block numbers of transactions; None for a transaction that is not mined."""
    found: list[Any] = [chain.connection.receipt(hash_) for hash_ in sent]
    return [None if receipt is None else int(receipt["blockNumber"], 16) for receipt in found]


@pytest.mark.parametrize("depth", [1, 3, 8])
@pytest.mark.parametrize("again", [False, True])
def test_a_re_organisation_replaces_the_newest_blocks(
    young: Devnet, proxy: RpcProxy, depth: int, again: bool
) -> None:
    """Nine blocks have one transaction each, from two accounts in turn."""
    accounts = [development_account(4, young.chain_id), development_account(5, young.chain_id)]
    with (
        Sender(young.connection, accounts[0], QUICK) as one,
        Sender(young.connection, accounts[1], QUICK) as two,
    ):
        receipts = [(one, two)[k % 2].send(transfer()) for k in range(9)]
    sent, blocks = [receipt.transaction for receipt in receipts], [receipt.block for receipt in receipts]
    before, balance = young.connection.block(), young.connection.balance(NOWHERE)
    kept = 9 - depth
    stands = young.connection.block(blocks[kept - 1])
    with PRESETS[f"reorg-{depth}-{'again' if again else 'dropped'}"](proxy):
        after = young.connection.block(before.number)
    assert after.hash != before.hash
    assert young.connection.block(blocks[kept - 1]) == stands
    assert places(young, sent[:kept]) == blocks[:kept]
    if again:
        for hash_ in sent[kept:]:
            wait_mined(young.connection, hash_)
        assert places(young, sent[kept:]) == [block + 1 for block in blocks[kept:]]
        assert young.connection.balance(NOWHERE) == balance
    else:
        assert places(young, sent[kept:]) == [None] * depth
        assert not young.connection.known(sent[kept:])
        young.mine()
        assert places(young, sent[kept:]) == [None] * depth
        assert young.connection.balance(NOWHERE) == balance - depth
